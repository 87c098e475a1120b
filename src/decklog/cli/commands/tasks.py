"""Tasks for a person: the board."""

import click

from decklog.cli import terminal
from decklog.cli.call import Invocation
from decklog.cli.screens.lines import draw, say
from decklog.cli.show import show

_COLUMNS = 4


@click.command()
@click.argument("run_id", metavar="RUN")
@click.option("--width", type=click.IntRange(8, 500), metavar="N", help="characters a column, default by the terminal")
@click.option("--limit", type=click.IntRange(1, 500), default=30, metavar="N", help="cards a column, default 30")
@click.pass_obj
def board(call: Invocation, run_id: str, width: int | None, limit: int) -> int:
    """Show a run's tasks as a board: to do, in progress, blocked or paused, and finished."""
    with call.open(writing=False) as log:
        columns = log.overview.board(run_id, per_column=limit)
    if call.json:
        return show(columns, as_json=True)
    say(draw(columns, width or max(16, (terminal.width() + 3) // _COLUMNS - 3)))
    return 0
