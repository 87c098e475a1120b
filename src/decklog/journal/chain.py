"""The hash chain of a stream, and the canonical form of an entry. `docs/journal.md` specifies both."""

from collections.abc import Mapping, Sequence
from hashlib import sha256
from json.encoder import encode_basestring as _quote
from typing import Any, NamedTuple

from decklog.core.errors import Damaged
from decklog.journal.rows import COLUMNS
from decklog.records.values import from_json

Row = tuple[Any, ...]


START = ""

# In the order of the canonical text. Empty fields are left out, so that a new field does not change existing hashes.
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
    """Return the digest of a body or payload. The chain covers only digests, so that retention can drop texts."""
    return None if text is None else sha256(text.encode()).hexdigest()


class _DigestMismatch(TypeError):
    """A text of a row does not match its digest, or is no text at all."""


def hash_row(previous: str, row: Sequence[Any]) -> str:
    """Return the hash of a row, chained to the previous hash: of its canonical JSON, with digests of body and payload.

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
            raise _DigestMismatch(name)
        values[place] = found
    values[_REDACTED] = row[_REDACTED] or None
    fields = [
        start + (_quote(value) if type(value) is str else str(value))
        for start, place in _PLACES
        if (value := values[place]) is not None
    ]
    return sha256(f"{previous}{{{','.join(fields)}}}".encode()).hexdigest()


def hash_entry(previous: str, entry: Mapping[str, Any]) -> str:
    """Return the hash of an entry given by its columns. A text must match its digest, if it has one."""
    row = tuple(map(entry.get, COLUMNS))
    try:
        return hash_row(previous, row)
    except _DigestMismatch as found:
        raise mismatch_error(row, str(found)) from None


def find_mismatch(previous: str, row: Row) -> str | None:
    """Return the part of a row that does not match: `body`, `payload` or `hash`; None if the row follows `previous`."""
    if type(row[SEQ]) is not int or type(row[AT]) is not str or (row[_REDACTED] != 0 and row[_REDACTED] != 1):
        return "hash"  # a damaged page can return any values
    try:
        return None if hash_row(previous, row) == row[HASH] else "hash"
    except _DigestMismatch as found:
        return str(found)


def mismatch_error(row: Row, what: str) -> Damaged:
    """Build the error for a result of `find_mismatch`."""
    why = "does not match its hash" if what == "hash" else f"has a {what} that does not match its digest"
    return unusable_entry_error(row, why)


class EntryRange(NamedTuple):
    """Consecutive rows of one stream, and the hash before the first."""

    stream: str
    previous: str
    rows: list[Row]
    # The images of records by entry number, parsed ahead of the write transaction.
    images: dict[int, Any]

    @classmethod
    def checked(cls, stream: str, previous: str, rows: list[Row]) -> "EntryRange":
        """Check the chain of the rows; raise Damaged at the first mismatch."""
        if type(rows[0][SEQ]) is not int:
            raise mismatch_error(rows[0], "hash")
        link = previous
        for seq, row in enumerate(rows, rows[0][SEQ]):
            what = find_mismatch(link, row)
            if what is not None or row[STREAM] != stream or row[SEQ] != seq:
                raise mismatch_error(row, what or "hash")
            link = row[HASH]
        images = {row[SEQ]: parse_image(row) for row in rows if row[RECORD_TABLE] is not None}
        return cls(stream, previous, rows, images)

    @property
    def size(self) -> int:
        """Estimate the number of characters of the entries."""
        return estimate_size(self.rows)


def parse_image(row: Row) -> dict[str, Any]:
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


def estimate_size(rows: list[Row]) -> int:
    """Estimate the number of characters of entries."""
    return 500 * len(rows) + sum(len(row[BODY] or "") + len(row[PAYLOAD] or "") for row in rows)
