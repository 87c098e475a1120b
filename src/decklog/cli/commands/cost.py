"""What was spent, on one screen."""

from datetime import timedelta

import click

from decklog.cli import terminal
from decklog.cli.call import Call
from decklog.cli.screens.cost import BY, gather, screen
from decklog.cli.screens.lines import say
from decklog.cli.show import show

_UNLESS_TERMINAL = 100


@click.command()
@click.option("--by", type=click.Choice([*BY]), default="model", show_default=True, help="one line for each of these")
@click.option("--days", type=click.IntRange(1, 36500), metavar="N", help="only the last N days")
@click.option("--agent", metavar="NAME", help="only calls of this agent, such as claude or codex")
@click.pass_obj
def cost(call: Call, by: str, days: int | None, agent: str | None) -> int:
    """Show what was spent, by model, day, session or repository.

    A session includes its sub-agents. Days are in UTC. Calls without a known price are listed and not in the sum.
    """
    with call.open(writing=False) as log:
        since = None if days is None else log.clock.now() - timedelta(days=days)
        spent = gather(log, by, since=since, agent=agent)
    if call.json:
        return show(spent, as_json=True)
    say(screen(spent, terminal.width(_UNLESS_TERMINAL)))
    return 0
