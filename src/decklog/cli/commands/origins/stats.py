"""`decklog stats`: lines by origin over many commits."""

import click

from decklog.cli import terminal
from decklog.cli.call import Invocation
from decklog.cli.commands.origins.opening import opened
from decklog.cli.screens.lines import say
from decklog.cli.show import show

_KEYS = ("agent", "model", "task", "person", "path")


@click.command()
@click.argument("revisions", metavar="[A..B]", default="HEAD")
@click.option("--by", type=click.Choice(_KEYS), default="agent", help="what a row is about; default agent")
@click.option("--markdown", is_flag=True, help="print a Markdown table, such as for a pull request")
@click.pass_obj
def stats(call: Invocation, revisions: str, by: str, markdown: bool) -> int:
    """Count lines written and kept by agents and people, and the cost of each kept line.

    Without a range, all commits up to HEAD are counted. A row per person is about the author of commits.
    The cost of a session is shared among rows by its lines. Lifetime is the median time from the commit that wrote a line
    to the one that removed it.
    """
    from decklog.agents.origins.statistics import StatisticsKey, collect_statistics
    from decklog.cli.screens.origins import statistics_screen

    with opened(call) as (log, repo):
        found = collect_statistics(repo, log, revisions, StatisticsKey(by))
    if call.json:
        return show(found.as_dict(), as_json=True)
    if markdown:
        click.echo(found.as_markdown(), nl=False)
        return 0
    say(statistics_screen(found, terminal.width()))
    return 0
