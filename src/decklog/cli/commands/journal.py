"""Following and searching the journal."""

import click

from decklog.cli.call import Invocation
from decklog.cli.show import show, show_stream


@click.command()
@click.argument("stream", required=False)
@click.option("--after", type=int, metavar="N", help="start behind this entry of the stream")
@click.option("--follow/--no-follow", default=True, help="wait for what comes (the default)")
@click.option("--timeout", type=float, metavar="SECONDS", help="stop after so long with nothing new")
@click.pass_obj
def watch(call: Invocation, stream: str | None, after: int | None, follow: bool, timeout: float | None) -> int:
    """Show entries as they happen, of one run or of all.

    With --json each entry is one line.
    """
    with call.open(writing=False) as log:
        entries = log.journal.tail(stream, after=after, follow=follow, timeout_seconds=timeout)
        return show_stream(entries, as_json=call.json, of_one_stream=stream is not None)


@click.command()
@click.argument("words", nargs=-1, required=True)
@click.option("--run", "stream", metavar="RUN", help="only in this run")
@click.option("--limit", type=int, default=20, metavar="N", show_default=True, help="most entries to return")
@click.option("--after", metavar="CURSOR", help="the `next` of the page before")
@click.pass_obj
def search(call: Invocation, words: tuple[str, ...], stream: str | None, limit: int, after: str | None) -> int:
    """Find entries that have all the words, newest first; `word*` matches a beginning."""
    with call.open(writing=False) as log:
        return show(log.journal.search(" ".join(words), stream=stream, limit=limit, after=after), as_json=call.json)
