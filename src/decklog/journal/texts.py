"""Texts and bytes that are kept by their digests: whether they are there, and whether something explains that they are not.

Retention drops old texts and leaves their digests, after an event `pruned` in their stream has said so. Recovery names what it
could not find in events `recovered`. A text that is missing for no such reason was taken away.
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
_TOGETHER = 500
# No value is longer; a damaged one may pretend to be.
_LARGEST = 1 << 30


class StoredText(NamedTuple):
    """A text that a record has only the digest of, and the fields of a problem with it."""

    digest: object
    name: str
    where: dict[str, Any]


class Texts:
    """Looks for what is named by a digest, and names what is missing."""

    def __init__(self, db: Database, result: Verification) -> None:
        self._db = db
        self._result = result
        self._lost: set[object] | None = None
        # The digests of what is missing and was found to be, by stream.
        self.gone: dict[str, set[str]] = {}

    def check_blobs(self) -> None:
        """Compare everything that is kept with its digest and its size."""
        for digest, size, stored in self._db.each_as_is("select digest, size, bytes from blobs", {}):
            where = {"table": "blobs", "record_id": str(digest)}
            content = _plain(digest, size, stored) if isinstance(stored, bytes) else None
            if content is None:
                self._result.bad(f"blob {digest} does not match its digest", **where, column="bytes")
            elif type(size) is not int or size != len(content):
                self._result.bad(f"blob {digest} has {len(content)} bytes, and is said to have {size}", **where, column="size")

    def check_entries(self, number: int, stream: str, named: list[tuple[int, str, str, str, object]]) -> None:
        """Look for the texts that a stream's entries name (number, time, kind, column, digest), and for what explains a gap."""
        missing = self._absent(digest for *_, digest in named)
        bound = {"start": number * STREAM_SIZE, "end": (number + 1) * STREAM_SIZE}
        said = list(self._events(PRUNED, "and pos >= :start and pos < :end", bound)) if missing else []
        for seq, at, kind, name, digest in named:
            where = {"stream": stream, "seq": seq, "table": "entries", "record_id": f"{stream}:{seq}", "column": name}
            if kind == EntryKind.CHANGE:
                self._result.bad(f"the {name} of a change was taken out", **where)
            elif digest in missing and not any(_covers(event, seq, at, kind) for event in said) and not self._is_lost(digest):
                self._bad(f"the {name} is gone, and no event records that it was pruned", digest, where)

    def check_records(self, named: Iterable[StoredText]) -> None:
        """Look for the bytes that records name. Retention never drops those."""
        named = list(named)
        missing = self._absent(text.digest for text in named)
        for text in named:
            if text.digest in missing and not self._is_lost(text.digest):
                self._bad(f"blob {text.digest}, the {text.name}, is gone", text.digest, text.where)

    def _bad(self, what: str, digest: object, where: dict[str, Any]) -> None:
        self.gone.setdefault(where["stream"], set()).add(str(digest))
        self._result.bad(what, **where)

    def _absent(self, digests: Iterable[object]) -> set[object]:
        wanted = iter(dict.fromkeys(digests))
        absent: set[object] = set()
        while some := list(islice(wanted, _TOGETHER)):
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
        """Return whether recovery found no trace of a text, and said so."""
        if self._lost is None:
            self._lost = set()
            for _, said in self._events(RECOVERED):
                lost = said.get("lost")
                self._lost.update(map(str, lost) if isinstance(lost, list) else ())
        return digest in self._lost


def _covers(event: tuple[int, Any], seq: int, at: str, kind: str) -> bool:
    """Return whether an event of pruning covers texts such as this entry's."""
    told_at, said = event
    before, only = said.get("before"), said.get("kind")
    return told_at > seq and isinstance(before, str) and at < before and only in (None, kind)


def _plain(digest: object, size: object, stored: bytes) -> bytes | None:
    """Return what is kept under a digest as it was, even where its size is wrong; None when nothing matches the digest."""
    for content in (decompress_bytes(stored, size), stored):
        if sha256(content).hexdigest() == digest:
            return content
    content = decompress_start(stored, _LARGEST)
    # With the right size it would have been read above: its checksum differs.
    return content if len(content) != size and sha256(content).hexdigest() == digest else None
