"""The one line that confirms a change: what was done, to which record, and how it is now. `show` has the rest."""

from typing import TYPE_CHECKING

from decklog.cli import terminal
from decklog.cli.show import print_warnings, to_data
from decklog.cli.table import cut, in_dollars

if TYPE_CHECKING:
    from decklog.records import Record

# What describes a record, and what says how it is; the first that has a value is taken.
_TEXTS = ("goal", "title", "question", "criterion", "insight", "body", "subject", "name", "model", "key", "summary", "scope")
_STATES = ("state", "status", "verdict", "outcome")
_AMOUNTS = ("cost_dollars", "dollars", "limit_dollars", "ceiling")
_WIDTH = 100


def confirm(verb: str, record: "Record", warnings: list[str]) -> int:
    """Print one line about a record that was just written; return the exit code."""
    data = in_dollars(to_data(record))
    names = record.identity if isinstance(record.identity, tuple) else (record.identity,)
    parts = [" ".join(str(data[name]) for name in names if data.get(name) is not None)]
    text = next((str(data[name]) for name in _TEXTS if data.get(name) and name not in names), "")
    parts += [cut(" ".join(text.split()), _WIDTH)] if text else []
    parts += [str(data[name]) for name in _AMOUNTS if data.get(name) is not None][:1]
    state = next((str(data[name]) for name in _STATES if data.get(name)), None)
    notes = [note for note in (state, "already" if getattr(record, "already", False) else None) if note]
    end = f" ({', '.join(notes)})" if notes else ""
    terminal.say(f"{verb}: {'  '.join(part for part in parts if part)}{end}")
    print_warnings(warnings)
    return 0
