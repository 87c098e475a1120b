"""Entries as database rows: their columns, positions and cursors."""

from collections.abc import Sequence
from itertools import zip_longest
from typing import TypedDict

from decklog.core.errors import Invalid
from decklog.db.base import STREAM_SIZE as STREAM_SIZE
from decklog.db.base import Database, Row
from decklog.db.where import parse_position
from decklog.journal.blobs import load_blob_text
from decklog.journal.entry import Entry
from decklog.records.values import from_json

# Streams that belong to no run. Add new ones at the end: on PostgreSQL the place determines the number.
RESERVED_PLACES = ("@desk", "@memory", "@workflow", "@ledger", "@edits", "@archive")
RESERVED = frozenset(RESERVED_PLACES)
COLUMNS = (
    *("pos", "stream", "seq", "at", "hash", "kind", "subtype", "agent", "agent_id", "group_id", "task_id", "iteration", "phase"),
    *("confidence", "redacted", "key", "record_table", "record_id", "refs", "body_digest", "payload_digest", "body", "payload"),
)
SELECT = f"select {', '.join(COLUMNS)} from entries"
HEAD = "select pos, hash, at from entries where pos >= :start and pos < :end order by pos desc limit 1"
# Positions per query, padded with nulls, so that one statement is prepared once.
_BATCH_SIZE = 128
_MARKS = [f"pos_{number}" for number in range(_BATCH_SIZE)]
_AT_POSITIONS = f"{SELECT} where pos in ({', '.join(':' + mark for mark in _MARKS)})"
_FIELDS = COLUMNS[1:]
_HASH_MARK = "-"
_BODY_DIGEST, _PAYLOAD_DIGEST = COLUMNS.index("body_digest"), COLUMNS.index("payload_digest")


class StreamHead(TypedDict):
    """The last entry of a stream."""

    stream: str
    seq: int
    hash: str


class StreamRange(TypedDict):
    """A range of entries of a stream."""

    stream: str
    first: int
    last: int


class StreamChanges(TypedDict):
    """The streams with entries after a cursor, and the cursor after those entries."""

    moved: list[StreamRange]
    cursor: str


def find_stream_number(db: Database, stream: str) -> int | None:
    """Return the number of a stream in this database; None if the stream does not exist."""
    row = db.one("select no from streams where name = :stream", {"stream": stream})
    return row[0] if row else None


def newest_position(db: Database, number: int) -> int:
    """Return the position of a stream's last entry, or of its start if it has none."""
    row = db.one("select head_pos from stream_heads where no = :number", {"number": number})
    return row[0] if row else number * STREAM_SIZE


def list_heads(db: Database) -> list[StreamHead]:
    """List every stream with the number and hash of its last entry, reserved streams last."""
    _, rows = db.rows(
        """
        select s.name, s.head_seq, s.head_hash
          from stream_heads s
         order by case when substr(s.name, 1, 1) = '@' then 1 else 0 end, s.name
        """,
        {},
    )
    return [{"stream": stream, "seq": seq, "hash": hash} for stream, seq, hash in rows]


def newest_time(db: Database) -> str:
    """Return the latest time among the last entries of all streams."""
    row = db.one("select max(head_at) from stream_heads", {})
    return str(row[0]) if row and row[0] is not None else ""


def load_entry(db: Database, row: Row) -> Entry:
    """Build an entry from a whole row, and load its blobs."""
    entry = Entry.from_rows(_FIELDS, [row[1:]])[0]
    if row[_BODY_DIGEST] is not None or row[_PAYLOAD_DIGEST] is not None:
        _load_blobs(db, entry)
    return entry


def load_entries(db: Database, rows: list[Row]) -> list[Entry]:
    """Build entries from whole rows, and load their blobs."""
    entries = Entry.from_rows(_FIELDS, [row[1:] for row in rows])
    for entry, row in zip(entries, rows, strict=True):
        if row[_BODY_DIGEST] is not None or row[_PAYLOAD_DIGEST] is not None:
            _load_blobs(db, entry)
    return entries


def _load_blobs(db: Database, entry: Entry) -> None:
    """Load the texts of an entry that are stored as blobs."""
    if entry.body is None and entry.body_digest and (text := load_blob_text(db, entry.body_digest)) is not None:
        object.__setattr__(entry, "body", text)
    if entry.payload is None and entry.payload_digest and (text := load_blob_text(db, entry.payload_digest)):
        object.__setattr__(entry, "payload", from_json(text))


def format_cursor(db: Database, position: int) -> str:
    """Return the cursor after an entry. Inside a transaction it includes the hash, because the entry may be rolled back."""
    if not db.is_in_transaction:
        return str(position)
    return f"{position}{_HASH_MARK}{_hash_at(db, position)}"


def parse_cursor(db: Database, cursor: str | int | None) -> int | None:
    """Parse a cursor; raise Invalid if its entry was rolled back, since another entry may have its number now."""
    place, mark, hash = str(cursor or "").partition(_HASH_MARK)
    if not (place and mark):
        return parse_position(cursor)
    position = parse_position(place)
    assert position is not None
    if db.read(lambda: _hash_at(db, position)) != hash:
        raise Invalid("this cursor is of an entry that was rolled back", hint="Start again without a cursor.", field="after")
    return position


def _hash_at(db: Database, position: int) -> str | None:
    row = db.one("select hash from entries where pos = :pos", {"pos": position})
    return None if row is None else str(row[0])


def entry_at(db: Database, position: int) -> Entry:
    """Return the entry at a position."""
    return db.read(lambda: load_entry(db, db.rows(f"{SELECT} where pos = :pos", {"pos": position})[1][0]))


def rows_at(db: Database, positions: Sequence[int]) -> dict[int, Row]:
    """Return the whole rows at many positions, read in batches."""
    found: dict[int, Row] = {}
    for start in range(0, len(positions), _BATCH_SIZE):
        bound = dict(zip_longest(_MARKS, positions[start : start + _BATCH_SIZE]))
        found.update({row[0]: row for row in db.rows(_AT_POSITIONS, bound)[1]})
    return found


def entries_between(db: Database, start: int, until: int) -> list[Entry]:
    """List the entries after one position up to another, oldest first."""
    _, rows = db.rows(f"{SELECT} where pos > :start and pos <= :until order by pos", {"start": start, "until": until})
    return load_entries(db, rows)
