"""Deduplication of events that two sources report without a shared id, by time and text: prompts, turn ends, starts."""

from datetime import timedelta
from typing import TYPE_CHECKING

from decklog.agents.events import Begun, Compacted, Prompted, Rested
from decklog.journal.entry import EntryKind
from decklog.redaction import redact

if TYPE_CHECKING:
    from datetime import datetime

    from decklog.agents.events import SessionEvent
    from decklog.journal.entry import Entry
    from decklog.log import Decklog

# An editor connection sees a prompt before the program accepts it, and the program may be busy.
_LATE = timedelta(minutes=10)
_EARLY = timedelta(seconds=5)
# A hook process starts late on a busy machine. Session starts and compactions are rare.
_TURN = timedelta(seconds=15)
_BEGINNING = timedelta(minutes=1)
_LOOKED_AT = 200
# Call site of a charge for a whole turn, reported by an editor connection.
TURN = "editor turn"


def newest_connection(log: "Decklog", run_id: str) -> str | None:
    """Return the id of the latest editor connection of a run, if any. Each connection first records its editor."""
    for entry in log.journal.find(run_id, kind=EntryKind.EVENT, subtype="editor", limit=1):
        return str(entry.payload.get("connection")) if isinstance(entry.payload, dict) else None
    return None


def turns_paid(log: "Decklog", run_id: str) -> "list[tuple[datetime, datetime]]":
    """Return the time ranges of turns that were charged as a whole, each from prompt to charge."""
    if newest_connection(log, run_id) is None:
        return []
    found, more = [], None
    while True:
        page = log.ledger.find(run_id, call_site=TURN, limit=_LOOKED_AT, after=more)
        found += [(_begun_at(log, run_id, charge.occurred_at), charge.occurred_at) for charge in page]
        if (more := page.next) is None:
            return found


def _begun_at(log: "Decklog", run_id: str, end: "datetime") -> "datetime":
    prompts = log.journal.find(run_id, kind=EntryKind.INTERACTION, subtype="prompt", until=end, limit=_LOOKED_AT)
    return max((entry.at for entry in prompts if _way(entry) is not None), default=log.runs.get(run_id).started_at)


def is_told_otherwise(log: "Decklog", run_id: str, event: "SessionEvent") -> bool:
    """Return whether another source has reported the same event."""
    return any(_way(entry) != event.way for entry in _same(log, run_id, event))


def is_told_then(log: "Decklog", run_id: str, event: "SessionEvent") -> bool:
    """Return whether any source has reported the same event around that time."""
    return any(_same(log, run_id, event))


def _same(log: "Decklog", run_id: str, event: "SessionEvent") -> "list[Entry]":
    if event.at is None:
        return []
    kind = EntryKind.INTERACTION if isinstance(event, Prompted) else EntryKind.EVENT
    before, after = _span(event)
    found = log.journal.find(run_id, kind=kind, since=event.at - before, until=event.at + after, limit=_LOOKED_AT)
    return [entry for entry in found if _is_same(entry, event)]


def _span(event: "SessionEvent") -> tuple[timedelta, timedelta]:
    """Return how long before and after an event another source may report it."""
    if isinstance(event, Prompted):
        return (_EARLY, _LATE) if event.way else (_LATE, _EARLY)
    return (_BEGINNING, _BEGINNING) if isinstance(event, Begun | Compacted) else (_TURN, _TURN)


def _way(entry: "Entry") -> str | None:
    return entry.payload.get("way") if isinstance(entry.payload, dict) else None


def _is_same(entry: "Entry", event: "SessionEvent") -> bool:
    match event:
        case Prompted():
            # One source appends attachments to the prompt; the other omits them.
            told, known = _words(redact(event.text)), _words(entry.body or "")
            return (
                entry.subtype == "prompt" and bool(known) and (told.startswith(known) or (bool(told) and known.startswith(told)))
            )
        case Begun():
            return entry.subtype == "session" and entry.body == f"session {event.source}"
        case Rested():
            return entry.subtype == "turn"
        case Compacted():
            return entry.subtype == "compacted"
        case _:
            return False


def _words(text: str) -> str:
    return " ".join(text.split())
