"""Money for a person: what is spent against what may be."""

import click

from decklog.cli.call import Call
from decklog.cli.show import show
from decklog.figures import bar, dollars, sparkline

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


@click.command()
@click.pass_obj
def burn(call: Call) -> int:
    """Show what every budget has spent, reserved and left, with the last days as a small chart."""
    with call.open(writing=False) as log:
        budgets = log.budgets.burn()
    if call.json:
        return show(budgets, as_json=True)
    if not budgets:
        click.echo("No budget is set. A manager sets one: decklog budgets set all --period day --limit-microdollars 25000000")
    for budget in budgets:
        click.echo(_line(budget))
    return 0


def _line(budget: "dict[str, Any]") -> str:
    what = f"{budget['scope']} {budget['scope_id'] or ''}".strip()
    spent, ceiling, held = (_amount(budget[name], budget["unit"]) for name in ("spent", "ceiling", "reserved"))
    period = "for ever" if budget["period"] == "forever" else f"a {budget['period']}"
    facts = [f"{spent} of {ceiling} {period}"]
    if budget["reserved"]:
        facts.append(f"{held} reserved")
    if budget["renews_at"]:
        facts.append(f"renews {str(budget['renews_at'])[:16]}")
    days = sparkline([int(day["spent"]) for day in budget["days"]])
    return f"{what:<24} {bar(float(budget['percent']))} {budget['percent']:>4} %  {days}  {', '.join(facts)}  [{budget['state']}]"


def _amount(value: int, unit: str) -> str:
    return dollars(value) if unit == "microdollars" else f"{value:,} tokens"
