"""`decklog commit`: commits by origin."""

import click

from decklog.cli import terminal
from decklog.cli.call import Invocation
from decklog.cli.commands.origins.opening import opened
from decklog.cli.meant import SuggestingGroup
from decklog.cli.screens.lines import say
from decklog.cli.show import show as show_data


@click.group(cls=SuggestingGroup)
def commit() -> None:
    """Show a commit by origin: files, shares of agents and people, sessions, tasks and cost."""


@commit.command()
@click.argument("rev", default="HEAD")
@click.pass_obj
def show(call: Invocation, rev: str) -> int:
    """Show the files of a commit, who wrote its lines, and the sessions behind them; HEAD unless named."""
    from decklog.agents.origins.commit_story import explain_commit
    from decklog.cli.screens.origins import commit_screen

    with opened(call) as (log, repo):
        found = explain_commit(repo, log, rev)
        if call.json:
            return show_data(found.as_dict(), as_json=True)
        say(commit_screen(found, terminal.width()))
    return 0
