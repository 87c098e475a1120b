"""Follows the journal: yields each entry once, in order, as it is committed; and finds streams with new entries.

Entry numbers are assigned under the lock of the stream, without gaps, so "after number N" misses no late commit.
"""

import time
from collections.abc import Generator
from math import inf
from typing import Any

from decklog.core.errors import Invalid, NotFound
from decklog.db.base import Database
from decklog.db.where import suggest_id
from decklog.journal.entry import Entry
from decklog.journal.rows import RESERVED, SELECT, STREAM_SIZE, StreamChanges, StreamRange, find_stream_number, load_entries
from decklog.records.operations import WaitStep, check_committed, read_step, wait_step
from decklog.records.values import from_json, to_json

_BATCH = 500
_LONGEST_WAIT = 15.0


class Tail:
    """The position of one reader in the streams it follows."""

    def __init__(self, db: Database) -> None:
        self._db = db
        self._last_seen: dict[str, int] = {}

    def entries(
        self, stream: str | None, *, after: int | None, follow: bool, timeout_seconds: float | None
    ) -> Generator[WaitStep | list[Entry], Any, None]:
        if stream is not None:
            yield read_step(lambda: self._check_stream(stream))
            self._last_seen[stream] = after or 0
        timeout = inf if timeout_seconds is None else timeout_seconds
        end = time.monotonic() + timeout
        while True:
            check_committed(self._db, "journal.tail")
            found: list[Entry] = yield read_step(lambda: self._read_new(stream))
            # Advance only now: a reader cancelled during the read continues from its old position.
            self._last_seen |= {entry.stream: entry.seq for entry in found}
            yield found
            if found:
                end = time.monotonic() + timeout
            elif not follow or (left := end - time.monotonic()) <= 0:
                return
            else:
                yield wait_step(min(left, _LONGEST_WAIT), stream)

    def _check_stream(self, stream: str) -> None:
        number = find_stream_number(self._db, stream)
        if number is None and not stream.startswith("@"):
            raise NotFound(f"there is no run {stream!r} to follow", hint=suggest_id(self._db, "runs", stream), stream=stream)

    def _read_new(self, stream: str | None) -> list[Entry]:
        found: list[Entry] = []
        for name in [stream] if stream is not None else self._find_grown():
            found += self._read_batch(name)
        return found

    def _find_grown(self) -> list[str]:
        """Return the streams with entries that this reader has not seen."""
        _, rows = self._db.rows("select name, head_seq from stream_heads order by no", {})
        return [name for name, newest in rows if newest > self._last_seen.get(name, 0)]

    def _read_batch(self, stream: str) -> list[Entry]:
        number = find_stream_number(self._db, stream)
        if number is None:
            return []
        _, rows = self._db.rows(
            f"{SELECT} where pos > :seen and pos < :end order by pos limit {_BATCH}",
            {"seen": number * STREAM_SIZE + self._last_seen.get(stream, 0), "end": (number + 1) * STREAM_SIZE},
        )
        return load_entries(self._db, rows)


# Streams with entries after a cursor

_ALL_STREAMS = "select s.no, s.name, s.head_seq from stream_heads s"
_NAMES = ", ".join(f"'{name}'" for name in sorted(RESERVED))
# Each part uses an index, so finished runs are not read.
_UNFINISHED = f"""
select s.no, s.name, s.head_seq
  from (
    select r.id as name from runs r where r.status = 'active' or r.status = 'planning' or r.status = 'paused'
    union
    select n.name from streams n where n.name in ({_NAMES})
    union
    select n.name from streams n where n.no > :known
  ) w
  join stream_heads s on s.name = w.name
"""


def cursor_at_heads(db: Database, *, going_on: bool) -> str:
    """Build a cursor at the last entry of every stream, or of unfinished ones."""
    if going_on:
        known = db.rows("select coalesce(max(no), 0) from streams", {})[1][0][0]
        rows = db.rows(_UNFINISHED, {"known": known})[1]
        return _format_cursor(known, {name: head for _, name, head in rows})
    rows = db.rows(_ALL_STREAMS, {})[1]
    return _format_cursor(max((row[0] for row in rows), default=0), {name: head for _, name, head in rows})


def find_stream_changes(db: Database, cursor: str, *, going_on: bool) -> StreamChanges:
    """Return the streams with entries after a cursor, and the next cursor."""
    known, heads = _parse_cursor(cursor)
    rows = db.rows(_UNFINISHED, {"known": known})[1] if going_on else db.rows(_ALL_STREAMS, {})[1]
    newest = {name: head for _, name, head in sorted(rows)}
    found: list[StreamRange] = [
        {"stream": name, "first": heads.get(name, 0) + 1, "last": head}
        for name, head in newest.items()
        if head > heads.get(name, 0)
    ]
    return {"moved": found, "cursor": _format_cursor(max([known, *(row[0] for row in rows)]), {**heads, **newest})}


def _format_cursor(known: int, heads: dict[str, int]) -> str:
    return to_json([known, heads])


def _parse_cursor(cursor: str) -> tuple[int, dict[str, int]]:
    try:
        known, heads = from_json(cursor)
    except (ValueError, TypeError, RecursionError):
        known, heads = None, None
    is_valid = isinstance(known, int) and isinstance(heads, dict) and all(isinstance(seq, int) for seq in heads.values())
    if not is_valid:
        raise Invalid("this is not a cursor of `now` or `since`; get one with: decklog journal now", field="cursor")
    return known, heads
