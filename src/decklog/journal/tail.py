"""Follow the journal: each entry of a stream once, in order, as it is committed; and which streams have moved.

Numbers within a stream are given out under that stream's lock and have no gap, so "after number N" misses no late commit.
"""

import time
from collections.abc import Generator
from math import inf
from typing import Any

from decklog.core.errors import Invalid, NotFound
from decklog.db.base import Database
from decklog.db.where import suggest_id
from decklog.journal.entry import Entry
from decklog.journal.rows import RESERVED, SELECT, STREAM_SIZE, StreamChanges, StreamRange, load_all, number_of
from decklog.records.operations import WaitStep, check_committed, reading, waiting
from decklog.records.values import from_json, to_json

_BATCH = 500
_LONGEST_WAIT = 15.0


class Tail:
    """One reader's place in the streams it follows."""

    def __init__(self, db: Database) -> None:
        self._db = db
        self._places: dict[str, int] = {}

    def entries(
        self, stream: str | None, *, after: int | None, follow: bool, timeout_seconds: float | None
    ) -> Generator[WaitStep | list[Entry], Any, None]:
        if stream is not None:
            yield reading(lambda: self._known(stream))
            self._places[stream] = after or 0
        timeout = inf if timeout_seconds is None else timeout_seconds
        end = time.monotonic() + timeout
        while True:
            check_committed(self._db, "journal.tail")
            found: list[Entry] = yield reading(lambda: self._next(stream))
            # Only here: a reader who was cancelled while it looked looks again from where it was.
            self._places |= {entry.stream: entry.seq for entry in found}
            yield found
            if found:
                end = time.monotonic() + timeout
            elif not follow or (left := end - time.monotonic()) <= 0:
                return
            else:
                yield waiting(min(left, _LONGEST_WAIT), stream)

    def _known(self, stream: str) -> None:
        number = number_of(self._db, stream)
        if number is None and not stream.startswith("@"):
            raise NotFound(f"there is no run {stream!r} to follow", hint=suggest_id(self._db, "runs", stream), stream=stream)

    def _next(self, stream: str | None) -> list[Entry]:
        found: list[Entry] = []
        for name in [stream] if stream is not None else self._moved():
            found += self._batch(name)
        return found

    def _moved(self) -> list[str]:
        """Name the streams that have entries this reader has not seen."""
        _, rows = self._db.rows("select name, head_seq from stream_heads order by no", {})
        return [name for name, newest in rows if newest > self._places.get(name, 0)]

    def _batch(self, stream: str) -> list[Entry]:
        number = number_of(self._db, stream)
        if number is None:
            return []
        _, rows = self._db.rows(
            f"{SELECT} where pos > :seen and pos < :end order by pos limit {_BATCH}",
            {
                "seen": number * STREAM_SIZE + self._places.get(stream, 0),
                "end": (number + 1) * STREAM_SIZE,
            },
        )
        return load_all(self._db, rows)


# Which streams have moved since a cursor

_ALL = "select s.no, s.name, s.head_seq from stream_heads s"
_NAMES = ", ".join(f"'{name}'" for name in sorted(RESERVED))
# Each part by an index: what is over is not looked at.
_GOING_ON = f"""
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
    """Build a cursor at the last entry of every stream, or of those that go on."""
    if going_on:
        known = db.rows("select coalesce(max(no), 0) from streams", {})[1][0][0]
        rows = db.rows(_GOING_ON, {"known": known})[1]
        return _written(known, {name: head for _, name, head in rows})
    rows = db.rows(_ALL, {})[1]
    return _written(max((row[0] for row in rows), default=0), {name: head for _, name, head in rows})


def moved(db: Database, cursor: str, *, going_on: bool) -> StreamChanges:
    """Return which streams have entries after a cursor, and give the cursor behind them."""
    known, heads = _read(cursor)
    rows = db.rows(_GOING_ON, {"known": known})[1] if going_on else db.rows(_ALL, {})[1]
    newest = {name: head for _, name, head in sorted(rows)}
    found: list[StreamRange] = [
        {"stream": name, "first": heads.get(name, 0) + 1, "last": head}
        for name, head in newest.items()
        if head > heads.get(name, 0)
    ]
    return {"moved": found, "cursor": _written(max([known, *(row[0] for row in rows)]), {**heads, **newest})}


def _written(known: int, heads: dict[str, int]) -> str:
    return to_json([known, heads])


def _read(cursor: str) -> tuple[int, dict[str, int]]:
    try:
        known, heads = from_json(cursor)
    except (ValueError, TypeError, RecursionError):
        known, heads = None, None
    is_whole = isinstance(known, int) and isinstance(heads, dict) and all(isinstance(seq, int) for seq in heads.values())
    if not is_whole:
        raise Invalid("this is not a cursor of `now` or `since`; ask for one with: decklog journal now", field="cursor")
    return known, heads
