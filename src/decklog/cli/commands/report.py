"""Reports over several runs, to hand on."""

import os
from typing import Any

import click

from decklog.cli.call import Invocation
from decklog.cli.meant import SuggestingGroup
from decklog.cli.show import show
from decklog.cli.styles import STRONG, painted
from decklog.cli.terminal import put, visible


@click.group(cls=SuggestingGroup)
def report() -> None:
    """Summarize all runs as Markdown or as an HTML page."""


@report.command()
@click.option("--of", "day", metavar="DAY", help="a day of the week that is meant, such as 2026-11-15, or `last`; default today")
@click.option("--html", "path", metavar="FILE", help="write a page to FILE instead of Markdown to stdout")
@click.option("--overwrite", is_flag=True, help="replace FILE if it is there already")
@click.pass_obj
def week(call: Invocation, day: str | None, path: str | None, overwrite: bool) -> int:
    """Sum up one week over all runs: money, tasks done, answers given, what waits for a person, what was learned.

    A week begins on Monday, in UTC.
    """
    from decklog.transfer.report.week import day_of_week_option, markdown, week_of

    with call.open(writing=False) as log:
        now = log.clock.now()
        found = week_of(log, day_of_week_option(day, now.date()))
    if path is not None:
        return show(_write_page(found, path, now, overwrite=overwrite), as_json=call.json)
    if call.json:
        return show(found, as_json=True)
    lines = (visible(line) for line in markdown(found))
    put("\n".join(painted(line, STRONG) if line.startswith("#") else line for line in lines))
    return 0


def _write_page(found: Any, path: str, now: Any, *, overwrite: bool) -> dict[str, Any]:
    from decklog.transfer.report.document import document, write_file
    from decklog.transfer.report.week import page

    path = os.path.abspath(path)
    size = write_file(path, document(found.title, page(found), now), overwrite=overwrite)
    return {"week": found.title, "path": path, "bytes": size}
