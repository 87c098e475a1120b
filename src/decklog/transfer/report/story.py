"""What happened, entry by entry, in words; what only keeps the books is folded away."""

from html import escape
from typing import TYPE_CHECKING

from decklog.core.figures import counted
from decklog.transfer.reading import entries_of
from decklog.transfer.report.words import EntrySentence, told

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from decklog.log import Decklog

_MOST_TEXT = 4000
_SHORT = 280
# A line for each single one would be as much to read as what it hides.
_WORTH_A_LINE = 8


def story(log: "Decklog", run_id: str, until: int) -> "Iterator[str]":
    """Yield a run's entries up to a number, by day."""
    yield "<h2>What happened</h2>\n"
    day, quiet = "", list[str]()
    for entry in _entries(log, run_id, until):
        words = told(entry)
        if words.is_bookkeeping and entry["at"][:10] == day:
            quiet.append(words.text)
            continue
        if entry["at"][:10] != day:
            yield from _folded(quiet)
            yield f'{"</ol>" if day else ""}<h3>{escape(entry["at"][:10])}</h3>\n<ol class="story">\n'
            day = entry["at"][:10]
        if len(quiet) >= _WORTH_A_LINE:
            yield from _folded(quiet)
        yield _line(entry, words)
    yield from _folded(quiet)
    yield "</ol>\n" if day else ""


def _entries(log: "Decklog", run_id: str, until: int) -> "Iterator[dict[str, Any]]":
    for batch in entries_of(log, run_id, after=0, until=until):
        yield from batch


def _folded(quiet: list[str]) -> "Iterator[str]":
    if quiet:
        listed = "".join(f"<li>{escape(_bounded(text))}</li>" for text in quiet)
        title = f"{counted(len(quiet), 'entry', 'entries')} of bookkeeping up to here"
        yield f"<li><span></span><span></span><details><summary>{title}</summary><ol>{listed}</ol></details></li>\n"
        quiet.clear()


def _line(entry: "dict[str, Any]", words: EntrySentence) -> str:
    # A number and a time are what a reader needs to find the entry itself.
    where = f'<span class="soft" title="entry {entry["seq"]}">{escape(entry["at"][11:19])}</span>'
    who = f'<span class="soft">{escape(entry["agent"] or "")}</span>'
    return f'<li>{where}{who}<div class="text{f" {words.tone}" if words.tone else ""}">{_text(words.text)}</div></li>\n'


def _text(text: str) -> str:
    """Show a text, and the rest of a long one when it is unfolded; a command as one would type it."""
    shown = f"<code>{escape(_bounded(text))}</code>" if text.startswith("$ ") else escape(_bounded(text))
    if len(text) <= _SHORT:
        return shown
    return f"<details><summary>{escape(' '.join(text[:_SHORT].split()))} …</summary>{shown}</details>"


def _bounded(text: str) -> str:
    return text if len(text) <= _MOST_TEXT else f"{text[:_MOST_TEXT]} … ({len(text):,} characters)"
