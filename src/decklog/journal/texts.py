"""Checks texts and bytes that are stored by digest. A missing one needs an event that explains it.

Retention drops old texts, keeps their digests, and appends an event `pruned` to their stream. Recovery lists lost texts in
events `recovered`. Any other missing text is a problem.
"""

from collections.abc import Iterable, Iterator
from hashlib import sha256
from itertools import islice
from typing import Any, NamedTuple

from decklog.db.base import Database
from decklog.db.packing import decompress_bytes, decompress_start
from decklog.journal.entry import EntryKind
from decklog.journal.findings import Verification, parse_object
from decklog.journal.rows import STREAM_SIZE

PRUNED, RECOVERED = "pruned", "recovered"
_BATCH_SIZE = 500
# The longest possible value; a damaged size may be larger.
_LARGEST = 1 << 30


class StoredText(NamedTuple):
    """A text that a record refers to by digest, and the fields for reporting a problem."""

    digest: object
    name: str
    where: dict[str, Any]


class Texts:
    """Looks up texts by digest, and reports missing ones."""

    def __init__(self, db: Database, result: Verification) -> None:
        self._db = db
        self._result = result
        self._lost: set[object] | None = None
        # The missing digests by stream.
        self.gone: dict[str, set[str]] = {}

    def check_blobs(self) -> None:
        """Compare every blob with its digest and size."""
        for digest, size, stored in self._db.each_as_is("select digest, size, bytes from blobs", {}):
            where = {"table": "blobs", "record_id": str(digest)}
            content = _decompress_matching(digest, size, stored) if isinstance(stored, bytes) else None
            if content is None:
                self._result.bad(f"blob {digest} does not match its digest", **where, column="bytes")
            elif type(size) is not int or size != len(content):
                self._result.bad(f"blob {digest} has {len(content)} bytes, and is said to have {size}", **where, column="size")

    def check_entries(self, number: int, stream: str, named: list[tuple[int, str, str, str, object]]) -> None:
        """Check the texts of a stream's entries (number, time, kind, column, digest), and events that explain missing ones."""
        missing = self._find_missing(digest for *_, digest in named)
        bound = {"start": number * STREAM_SIZE, "end": (number + 1) * STREAM_SIZE}
        events = list(self._events(PRUNED, "and pos >= :start and pos < :end", bound)) if missing else []
        for seq, at, kind, name, digest in named:
            where = {"stream": stream, "seq": seq, "table": "entries", "record_id": f"{stream}:{seq}", "column": name}
            if kind == EntryKind.CHANGE:
                self._result.bad(f"the {name} of a change was taken out", **where)
            elif (
                digest in missing and not any(_is_pruned(event, seq, at, kind) for event in events) and not self._is_lost(digest)
            ):
                self._report_missing(f"the {name} is gone, and no event records that it was pruned", digest, where)

    def check_records(self, named: Iterable[StoredText]) -> None:
        """Check the blobs of records. Retention never drops those."""
        named = list(named)
        missing = self._find_missing(text.digest for text in named)
        for text in named:
            if text.digest in missing and not self._is_lost(text.digest):
                self._report_missing(f"blob {text.digest}, the {text.name}, is gone", text.digest, text.where)

    def _report_missing(self, what: str, digest: object, where: dict[str, Any]) -> None:
        self.gone.setdefault(where["stream"], set()).add(str(digest))
        self._result.bad(what, **where)

    def _find_missing(self, digests: Iterable[object]) -> set[object]:
        wanted = iter(dict.fromkeys(digests))
        absent: set[object] = set()
        while some := list(islice(wanted, _BATCH_SIZE)):
            bound = {f"d{place}": str(digest) for place, digest in enumerate(some)}
            marks = ", ".join(f":{name}" for name in bound)
            here = {row[0] for row in self._db.each_as_is(f"select digest from blobs where digest in ({marks})", bound)}
            absent |= set(some) - here
        return absent

    def _events(self, subtype: str, condition: str = "", bound: dict[str, Any] | None = None) -> Iterator[tuple[int, Any]]:
        sql = f"select seq, payload from entries where subtype = :subtype and kind <> 'change' and kind = 'event' {condition}"
        for seq, payload in self._db.each_as_is(sql, {"subtype": subtype, **(bound or {})}):
            said = parse_object(payload)
            if said is not None:
                yield seq, said

    def _is_lost(self, digest: object) -> bool:
        """Return whether recovery reported a text as lost."""
        if self._lost is None:
            self._lost = set()
            for _, said in self._events(RECOVERED):
                lost = said.get("lost")
                self._lost.update(map(str, lost) if isinstance(lost, list) else ())
        return digest in self._lost


def _is_pruned(event: tuple[int, Any], seq: int, at: str, kind: str) -> bool:
    """Return whether a prune event covers the texts of an entry."""
    event_seq, payload = event
    before, only = payload.get("before"), payload.get("kind")
    return event_seq > seq and isinstance(before, str) and at < before and only in (None, kind)


def _decompress_matching(digest: object, size: object, stored: bytes) -> bytes | None:
    """Return the content of a blob even if its size is wrong; None if nothing matches the digest."""
    for content in (decompress_bytes(stored, size), stored):
        if sha256(content).hexdigest() == digest:
            return content
    content = decompress_start(stored, _LARGEST)
    # With the right size, a checksum mismatch would have been found above.
    return content if len(content) != size and sha256(content).hexdigest() == digest else None
