"""Approvals for a person: the question, and the exact thing that it is about."""

import click

from decklog.cli.call import Invocation
from decklog.cli.screens.approval import lines
from decklog.cli.screens.lines import say
from decklog.cli.show import show as shown
from decklog.cli.terminal import width


@click.command()
@click.argument("approval_id")
@click.pass_obj
def show(call: Invocation, approval_id: str) -> int:
    """Show an approval with the exact thing it is about, whose digest is computed anew and compared with the one asked about.

    The check is one of: matches; parts redacted, where the thing had secrets; not in the log, where only its digest was given.
    """
    with call.open(writing=False) as log:
        approval, now = log.approvals.show(approval_id), log.clock.now()
    if call.json:
        return shown(approval, as_json=True)
    say(lines(approval, now, width(100)))
    return 0
