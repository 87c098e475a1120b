"""`decklog why`: what is behind a line."""

import click

from decklog.cli import terminal
from decklog.cli.call import Invocation, WrongUsage
from decklog.cli.commands.origins.opening import opened
from decklog.cli.commands.origins.paths import path_in
from decklog.cli.screens.lines import say
from decklog.cli.show import show


@click.command()
@click.argument("place", metavar="FILE:LINE")
@click.argument("rev", required=False)
@click.pass_obj
def why(call: Invocation, place: str, rev: str | None) -> int:
    """Show where a line comes from: prompt, tool call, task, checks, approval, cost and earlier version.

    Without REV the line is that of the file as it is now. With REV, a later change of the line is shown too.
    """
    from decklog.agents.origins.line_story import explain_line
    from decklog.cli.screens.origins import line_screen

    name, _, number = place.rpartition(":")
    if not name or not (number.isascii() and number.isdecimal()):
        raise WrongUsage(f"{place!r} is not FILE:LINE", hint="Such as: decklog why src/app.py:12")
    with opened(call) as (log, repo):
        found = explain_line(repo, log, path_in(repo, name), int(number), rev)
        if call.json:
            return show(found.as_dict(), as_json=True)
        say(line_screen(found, terminal.width()))
    return 0
