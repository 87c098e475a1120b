"""Show current work and costs, once or live on the terminal."""

import sys
from datetime import timedelta
from typing import TYPE_CHECKING

import click

from decklog.cli import terminal
from decklog.cli.call import Invocation, WrongUsage
from decklog.cli.groups import for_the_owner
from decklog.cli.lines import Line, StyledText
from decklog.cli.screens.cost import GROUPINGS, cost_screen, gather_costs
from decklog.cli.screens.now import LISTED, show_now
from decklog.cli.show import show
from decklog.cli.store_verbs import attribute_writes
from decklog.cli.terminal import DIM, PLAIN, escape_for_terminal, is_terminal, status_style, width
from decklog.core.display import bar, counted, dollars, sparkline

if TYPE_CHECKING:
    from decklog import BudgetUsage


@click.command()
@click.option(
    "--limit",
    type=click.IntRange(1, 200),
    default=LISTED,
    metavar="N",
    help=f"number of items to list of each kind, default {LISTED}",
)
@click.pass_obj
def now(call: Invocation, limit: int) -> int:
    """Show what needs a person, what runs, what has stalled and what it costs.

    Exit code 0 when nothing waits for a decision, 7 when something does: `decklog now --brief` fits a shell prompt.
    """
    return show_now(call, limit)


@for_the_owner
@click.command()
@click.option("--seconds", type=click.FloatRange(0.1, 3600), default=2.0, metavar="X", help="seconds between updates, default 2")
@click.pass_obj
def top(call: Invocation, seconds: float) -> int:
    """Show `now` live, on the whole terminal: move, open, read, approve or deny, quit.

    `?` shows the keys. An approval is decided with a reason and, where an owner is registered, the owner's password or key.
    """
    if not (sys.stdin.isatty() and terminal.is_terminal()):
        raise WrongUsage("top needs a terminal", hint="decklog now prints the same once.")
    import curses

    from decklog.cli.screens.top import run

    with call.open() as log, attribute_writes(log, call):
        try:
            run(log, seconds=seconds)
        except curses.error as problem:
            raise WrongUsage(f"this terminal can't show it: {problem}", hint="decklog now prints the same once.") from None
    return 0


_UNLESS_TERMINAL = 100


@click.command()
@click.pass_obj
def burn(call: Invocation) -> int:
    """Show what every budget has spent, reserved and left, with the last days as a small chart."""
    with call.open(writing=False) as log:
        budgets = log.budgets.burn()
    none = "No budget is set. To set one: decklog budgets set all --period day --limit 25.00"
    size = max((len(_scope_name(budget)) for budget in budgets), default=0)
    lines = [line for budget in budgets for line in _budget_lines(budget, size)]
    return show(budgets, as_json=call.json, text=lines or none)


def _scope_name(budget: "BudgetUsage") -> str:
    return escape_for_terminal("everything" if budget["scope"] == "all" else f"{budget['scope']} {budget['scope_id']}")


def _budget_lines(budget: "BudgetUsage", size: int) -> list[Line]:
    """Return a budget as one line, or as two on a narrow terminal."""
    state = str(budget["state"])
    days = sparkline([int(day["spent"]) for day in budget["days"]])
    style = PLAIN if state == "ok" else status_style(state)
    head = [
        StyledText(f"{_scope_name(budget):<{size}}  "),
        StyledText(f"{bar(float(budget['percent']))} {budget['percent']:>4} %", style),
        StyledText(f"  {days}", DIM),
    ]
    tail = [StyledText(", ".join(_budget_facts(budget))), StyledText(f"  [{state}]", status_style(state))]
    fits = not is_terminal() or sum(len(piece.text) for piece in (*head, *tail)) + 2 <= width()
    return [[*head, StyledText("  "), *tail]] if fits else [head, [StyledText("    "), *tail]]


def _budget_facts(budget: "BudgetUsage") -> list[str]:
    spent, ceiling, held = (
        _amount(figure, budget["unit"]) for figure in (budget["spent"], budget["ceiling"], budget["reserved"])
    )
    period = "in all" if budget["period"] == "forever" else f"a {budget['period']}"
    facts = [f"{spent} of {ceiling} {period}"]
    if budget["reserved"]:
        facts.append(f"{held} reserved")
    if budget["unpriced_calls"]:
        facts.append(f"{counted(budget['unpriced_calls'], 'call')} of unknown price")
    if budget["renews_at"]:
        facts.append(f"renews {str(budget['renews_at'])[:16].replace('T', ' ')}")
    return facts


def _amount(value: int, unit: str) -> str:
    return dollars(value) if unit == "microdollars" else f"{value:,} tokens"


@click.command()
@click.option("--by", type=click.Choice([*GROUPINGS]), default="model", show_default=True, help="one line for each of these")
@click.option("--days", type=click.IntRange(1, 36500), metavar="N", help="only the last N days")
@click.option("--agent", metavar="NAME", help="only calls of this agent, such as claude or codex")
@click.pass_obj
def cost(call: Invocation, by: str, days: int | None, agent: str | None) -> int:
    """Show what was spent, by model, day, session or repository.

    A session includes its sub-agents. Days are in UTC. Calls without a known price are listed and not in the sum.
    """
    with call.open(writing=False) as log:
        since = None if days is None else log.clock.now() - timedelta(days=days)
        spent = gather_costs(log, by, since=since, agent=agent)
    return show(spent, as_json=call.json, text=cost_screen(spent, width(_UNLESS_TERMINAL)))
