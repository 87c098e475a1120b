"""What goes on: once, for a person or a shell prompt, and live on the whole terminal."""

import click

from decklog.cli import terminal
from decklog.cli.call import Call
from decklog.cli.screens.lines import say
from decklog.cli.screens.now import screen
from decklog.cli.show import show

PENDING = 7
_NARROW = 80


@click.command()
@click.option("--limit", type=click.IntRange(1, 200), default=12, metavar="N", help="list so many of each, default 12")
@click.pass_obj
def now(call: Call, limit: int) -> int:
    """Say what needs a person, what runs, what has gone quiet and what it costs.

    Exit code 0 when nothing waits for a decision, 7 when something does: `decklog now --brief` fits a shell prompt.
    """
    with call.open(writing=False) as log:
        summary = log.overview.now(limit=limit)
        strips = None if call.json or call.brief else log.overview.pulse([run.id for run in summary.runs])
    if call.json:
        show(_brief(summary.as_dict()) if call.brief else summary, as_json=True)
    elif call.brief:
        terminal.say(summary.sentence)
    else:
        say(screen(summary, terminal.width(_NARROW), strips))
    return PENDING if summary.decisions else 0


def _brief(data: "dict[str, object]") -> "dict[str, object]":
    kept = ("at", "sentence", "decisions", "counts", "agents", "spent_today", "unpriced_today")
    return {name: data[name] for name in kept}
