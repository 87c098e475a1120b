"""The hash chain of a stream: how an entry is written down to be hashed. `docs/journal.md` is this file in words."""

from collections.abc import Mapping, Sequence
from hashlib import sha256
from json.encoder import encode_basestring as _quote
from typing import Any, NamedTuple

from decklog.core.errors import Damaged
from decklog.journal.rows import COLUMNS
from decklog.records.values import from_json

Row = tuple[Any, ...]


START = ""

# Sorted, as they stand in the canonical text. A field without a value is left out, so a field that is added one day changes
# no hash of the past.
FIELDS = (
    "agent",
    "agent_id",
    "at",
    "body",
    "confidence",
    "group_id",
    "iteration",
    "key",
    "kind",
    "payload",
    "phase",
    "record_id",
    "record_table",
    "redacted",
    "refs",
    "seq",
    "stream",
    "subtype",
    "task_id",
)


STREAM, SEQ, AT, HASH = map(COLUMNS.index, ("stream", "seq", "at", "hash"))
RECORD_TABLE, RECORD_ID, BODY, PAYLOAD = map(COLUMNS.index, ("record_table", "record_id", "body", "payload"))
_REDACTED, REFS = COLUMNS.index("redacted"), COLUMNS.index("refs")
KIND, KEY, BODY_DIGEST, PAYLOAD_DIGEST = map(COLUMNS.index, ("kind", "key", "body_digest", "payload_digest"))
# The texts of an entry, with the places of each and of its digest.
TEXTS = (("body", BODY, BODY_DIGEST), ("payload", PAYLOAD, PAYLOAD_DIGEST))
# The fields of a row, each with its start in the canonical text.
_PLACES = tuple((f'"{name}":', COLUMNS.index(name)) for name in FIELDS)


def digest(text: str | None) -> str | None:
    """Digest a body or a payload; the chain holds only this, so that retention may drop the text itself."""
    return None if text is None else sha256(text.encode()).hexdigest()


class _Differs(TypeError):
    """A text of a row does not match its digest, or is no text at all."""


def hash_row(previous: str, row: Sequence[Any]) -> str:
    """Hash a row onto the one before it: its canonical JSON, with the digests of body and payload.

    `redacted` counts only when it is set.
    """
    values = [*row]
    for name, place, digest_place in TEXTS:
        text, kept = row[place], row[digest_place]
        if text is None:
            values[place] = kept
            continue
        found = sha256(text.encode()).hexdigest() if type(text) is str else None
        if found is None or (kept is not None and kept != found):
            raise _Differs(name)
        values[place] = found
    values[_REDACTED] = row[_REDACTED] or None
    fields = [
        start + (_quote(value) if type(value) is str else str(value))
        for start, place in _PLACES
        if (value := values[place]) is not None
    ]
    return sha256(f"{previous}{{{','.join(fields)}}}".encode()).hexdigest()


def hash_entry(previous: str, entry: Mapping[str, Any]) -> str:
    """Hash an entry, given by its columns, onto the one before it; a text with a digest must match it."""
    row = tuple(map(entry.get, COLUMNS))
    try:
        return hash_row(previous, row)
    except _Differs as found:
        raise mismatch_error(row, str(found)) from None


def find_mismatch(previous: str, row: Row) -> str | None:
    """Name what keeps a row from following a hash: its `body` or `payload` does not match its digest, or its `hash` differs."""
    if type(row[SEQ]) is not int or type(row[AT]) is not str or (row[_REDACTED] != 0 and row[_REDACTED] != 1):
        return "hash"  # a damaged page gives rows of anything
    try:
        return None if hash_row(previous, row) == row[HASH] else "hash"
    except _Differs as found:
        return str(found)


def mismatch_error(row: Row, what: str) -> Damaged:
    """Build the error for what `find_mismatch` found."""
    why = "does not match its hash" if what == "hash" else f"has a {what} that does not match its digest"
    return unusable_entry_error(row, why)


class EntryRange(NamedTuple):
    """Rows of one stream, each of which follows from the one before it, and the hash that the first follows from."""

    stream: str
    previous: str
    rows: list[Row]
    # The images of records, by the numbers of their entries. Parsed before they are written, since the writer has more to do.
    images: dict[int, Any]

    @classmethod
    def checked(cls, stream: str, previous: str, rows: list[Row]) -> "EntryRange":
        """Walk the rows, and refuse them at the first that does not follow."""
        if type(rows[0][SEQ]) is not int:
            raise mismatch_error(rows[0], "hash")
        link = previous
        for seq, row in enumerate(rows, rows[0][SEQ]):
            what = find_mismatch(link, row)
            if what is not None or row[STREAM] != stream or row[SEQ] != seq:
                raise mismatch_error(row, what or "hash")
            link = row[HASH]
        images = {row[SEQ]: image_of(row) for row in rows if row[RECORD_TABLE] is not None}
        return cls(stream, previous, rows, images)

    @property
    def size(self) -> int:
        """Estimate the characters of its entries."""
        return size_of(self.rows)


def image_of(row: Row) -> dict[str, Any]:
    """Parse the image of a record from its entry."""
    try:
        image = from_json(row[PAYLOAD])
    except (TypeError, ValueError):
        image = None
    if not isinstance(image, dict):
        raise unusable_entry_error(row, "records a change, and its payload is not a JSON object")
    return image


def unusable_entry_error(row: Row, why: str) -> Damaged:
    return Damaged(f"entry {row[STREAM]}:{row[SEQ]} {why}", stream=row[STREAM], seq=row[SEQ])


def size_of(rows: list[Row]) -> int:
    """Estimate the characters of some entries."""
    return 500 * len(rows) + sum(len(row[BODY] or "") + len(row[PAYLOAD] or "") for row in rows)
