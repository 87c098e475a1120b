"""Money for a person: what is spent against what may be."""

import click

from decklog.cli.call import Call
from decklog.cli.show import show
from decklog.cli.terminal import is_terminal, say, width
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
        say("No budget is set. A manager sets one: decklog budgets set all --period day --limit-microdollars 25000000")
    size = max((len(_what(budget)) for budget in budgets), default=0)
    for budget in budgets:
        say(_line(budget, size))
    return 0


def _what(budget: "dict[str, Any]") -> str:
    return f"{budget['scope']} {budget['scope_id'] or ''}".strip()


def _line(budget: "dict[str, Any]", size: int) -> str:
    spent, ceiling, held = (_amount(budget[name], budget["unit"]) for name in ("spent", "ceiling", "reserved"))
    period = "in all" if budget["period"] == "forever" else f"a {budget['period']}"
    facts = [f"{spent} of {ceiling} {period}"]
    if budget["reserved"]:
        facts.append(f"{held} reserved")
    if budget["unpriced_calls"]:
        facts.append(f"{budget['unpriced_calls']} calls of unknown price")
    if budget["renews_at"]:
        facts.append(f"renews {str(budget['renews_at'])[:16].replace('T', ' ')}")
    days = sparkline([int(day["spent"]) for day in budget["days"]])
    shown = f"{bar(float(budget['percent']))} {budget['percent']:>4} %  {days}"
    head, tail = f"{_what(budget):<{size}}  {shown}", f"{', '.join(facts)}  [{budget['state']}]"
    fits = not is_terminal() or len(head) + 2 + len(tail) <= width()
    return f"{head}  {tail}" if fits else f"{head}\n    {tail}"


def _amount(value: int, unit: str) -> str:
    return dollars(value) if unit == "microdollars" else f"{value:,} tokens"
