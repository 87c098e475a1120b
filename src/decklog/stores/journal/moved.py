"""What has come since somebody last looked: stream by stream, since no number is shared by all."""

from typing import TYPE_CHECKING

from decklog.errors import Invalid
from decklog.stores.journal.rows import RESERVED, STREAM_SIZE
from decklog.values import from_json, to_json

if TYPE_CHECKING:
    from decklog.db.base import Database
    from decklog.stores.results.journal import StreamChanges, StreamRange

_HEAD = f"(select max(pos) from entries where pos >= s.no * {STREAM_SIZE} and pos < (s.no + 1) * {STREAM_SIZE})"
_ALL = f"select s.no, s.name, {_HEAD} from streams s"
_NAMES = ", ".join(f"'{name}'" for name in sorted(RESERVED))
# Each part by an index: what is over is not looked at.
_GOING_ON = f"""
select s.no, s.name, {_HEAD}
  from (
    select r.id as name from runs r where r.status = 'active' or r.status = 'planning' or r.status = 'paused'
    union
    select n.name from streams n where n.name in ({_NAMES})
    union
    select n.name from streams n where n.no > :known
  ) w
  join streams s on s.name = w.name
"""


def cursor_at_heads(db: "Database", *, going_on: bool) -> str:
    """Write a cursor that stands at the last entry of every stream, or of those that go on."""
    if going_on:
        known = db.rows("select coalesce(max(no), 0) from streams", {})[1][0][0]
        rows = db.rows(_GOING_ON, {"known": known})[1]
        return _written(known, {name: (head or 0) % STREAM_SIZE for _, name, head in rows})
    rows = db.rows(_ALL, {})[1]
    return _written(max((row[0] for row in rows), default=0), {name: (head or 0) % STREAM_SIZE for _, name, head in rows})


def moved(db: "Database", cursor: str, *, going_on: bool) -> "StreamChanges":
    """Say which streams have entries after a cursor, and give the cursor behind them."""
    known, heads = _read(cursor)
    rows = db.rows(_GOING_ON, {"known": known})[1] if going_on else db.rows(_ALL, {})[1]
    newest = {name: (head or 0) % STREAM_SIZE for _, name, head in sorted(rows)}
    found: list[StreamRange] = [
        {"stream": name, "first": heads.get(name, 0) + 1, "last": head}
        for name, head in newest.items()
        if head > heads.get(name, 0)
    ]
    return {"moved": found, "cursor": _written(max([known, *(row[0] for row in rows)]), {**heads, **newest})}


def _written(known: int, heads: "dict[str, int]") -> str:
    return to_json([known, heads])


def _read(cursor: str) -> "tuple[int, dict[str, int]]":
    try:
        known, heads = from_json(cursor)
    except (ValueError, TypeError, RecursionError):
        known, heads = None, None
    is_whole = isinstance(known, int) and isinstance(heads, dict) and all(isinstance(seq, int) for seq in heads.values())
    if not is_whole:
        raise Invalid("this is not a cursor of `now` or `since`; ask for one with: decklog journal now", field="cursor")
    return known, heads
