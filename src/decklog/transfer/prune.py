"""Retention: drop old texts and keep their digests, so that the chain still verifies. Record changes are never dropped."""

from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from decklog.core.clock import to_text
from decklog.core.errors import Invalid, NotFound
from decklog.db.where import parse_enum
from decklog.journal import chain
from decklog.journal.entry import EntryKind
from decklog.journal.rows import STREAM_SIZE, StreamHead, find_stream_number
from decklog.log import Decklog
from decklog.transfer.reading import DIGEST_IN_TEXT, Progress, WorkResult, no_progress

_UNITS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
# Entries and free pages per transaction: a few milliseconds of work, so that others can write in between.
_ENTRIES, _PAGES = 500, 256
# Dropping the words of one entry from the index costs as much as indexing this many entries.
_ENTRIES_PER_WORDS_DROPPED = 40
# Keep the entries that explain missing texts.
_NOT_A_NOTICE = "coalesce(subtype, '') not in ('pruned', 'recovered')"


def parse_age(text: str) -> timedelta:
    """Parse an age such as `30d`, `12h` or `8w`."""
    number, unit = text[:-1], text[-1:]
    if unit not in _UNITS or not number.isdecimal():
        raise Invalid(f"{text!r} is not an age; write 30d, 12h or 8w", field="older_than")
    return timedelta(**{_UNITS[unit]: int(number)})


@dataclass(kw_only=True)
class PruneResult(WorkResult):
    """What goes, or went when `applied`. `bytes` counts entries' own texts, `blob_bytes` those kept in the table of blobs.

    `freed_bytes` is by how much a SQLite file became smaller.
    """

    before: str
    applied: bool
    entries: int = 0
    bytes: int = 0
    blobs: int = 0
    blob_bytes: int = 0
    freed_bytes: int = 0
    # Refs of the git repository that kept files of old sessions.
    git_refs: int = 0
    streams: dict[str, int] = field(default_factory=dict)


class Prune:
    """Finds texts by age and kind, and drops them batch by batch while others write."""

    def __init__(
        self,
        log: Decklog,
        older_than: timedelta,
        *,
        kind: str | None = None,
        stream: str | None = None,
        progress: Progress = no_progress,
    ) -> None:
        kind = kind and parse_enum(EntryKind, kind, "kind").value
        if kind == EntryKind.CHANGE:
            raise Invalid("entries of kind change say what records were, and are never dropped", field="kind")
        self._log = log
        self._db = log.db
        self._kind = kind
        self._progress = progress
        # Streams that have an entry about dropped texts, and streams that named dropped blobs.
        self._notified: set[str] = set()
        self._owners: set[str] = set()
        self._bound: dict[str, Any] = {"before": to_text(log.clock.now() - older_than), "kind": kind}
        self._matches = f"kind <> 'change' and at < :before and {_NOT_A_NOTICE}" + (" and kind = :kind" if kind else "")
        self._span = 0, 2**63 - 1
        if stream is not None:
            number = self._db.read(lambda: find_stream_number(self._db, stream))
            if number is None:
                raise NotFound(f"there is no run {stream!r}")
            self._span = number * STREAM_SIZE, (number + 1) * STREAM_SIZE

    def run(self, *, apply: bool = False) -> PruneResult:
        """Count what would be dropped; with `apply`, drop it, after an entry about it in each stream."""
        heads = self._log.journal.heads()
        result = PruneResult(before=self._bound["before"], applied=apply)
        self._progress("counting entries", 0, 0)
        self._count(result)
        unneeded = self._find_unneeded_blobs()
        result.blobs, result.blob_bytes = len(unneeded), sum(unneeded.values())
        if apply:
            self._drop_all(result, unneeded, heads)
        return result

    def _drop_all(self, result: PruneResult, unneeded: dict[str, int], heads: list[StreamHead]) -> None:
        size = self._db.file_bytes()
        entries = sum(head["seq"] for head in heads)
        indexes_anew = self._db.forgets_words_slowly and result.entries * _ENTRIES_PER_WORDS_DROPPED > entries
        if indexes_anew:
            self._db.forget_all_text()  # the next search rebuilds the index
        self._drop_texts(result)
        dropped = self._db.write(lambda: self._drop_unneeded(unneeded, heads)) if unneeded else {}
        result.blobs, result.blob_bytes = len(dropped), sum(dropped.values())
        self._shrink()
        result.freed_bytes = max(0, size - self._db.file_bytes())

    def _shrink(self) -> None:
        """Return free pages to the system, a few at a time."""
        whole = left = self._db.free_pages()
        while left:
            self._db.write(lambda: self._db.give_back(_PAGES))
            before, left = left, self._db.free_pages()
            if left >= before:
                break  # others use up pages as fast
            self._progress("giving pages back", whole - left, whole)
        self._db.checkpoint()

    # Texts in entries

    def _count(self, result: PruneResult) -> None:
        """Count the entries to drop, and their bytes, stream by stream."""
        size_of = self._db.size_of
        sql = f"""
            select stream, count(*), sum(coalesce({size_of("body")}, 0) + coalesce({size_of("payload")}, 0))
              from entries
             where pos > :place and pos < :end and {self._matches}
               and (body is not null or payload is not null)
             group by stream
             order by stream
        """
        bound = {**self._bound, "place": self._span[0], "end": self._span[1]}
        for stream, count, size in self._db.read(lambda: self._db.rows(sql, bound)[1]):
            result.entries, result.bytes = result.entries + count, result.bytes + int(size)
            result.streams[stream] = count

    def _drop_texts(self, result: PruneResult) -> None:
        place, end = self._span
        done = 0
        sql = f"""
            select pos, stream, body, payload, body_digest, payload_digest
              from entries
             where pos > :place and pos < :end and {self._matches}
               and (body is not null or payload is not null)
             order by pos
             limit :most
        """
        while True:
            bound = {**self._bound, "place": place, "end": end, "most": _ENTRIES}
            rows = self._db.read(lambda bound=bound: self._db.rows(sql, bound)[1])  # type: ignore[misc]
            if not rows:
                return
            streams = {row[1] for row in rows} - self._notified
            given = _compute_digests(rows)
            self._db.write(lambda given=given, streams=streams: self._drop_batch(given, streams, result))  # type: ignore[misc]
            self._notified |= streams
            place, done = rows[-1][0], done + len(rows)
            self._progress("pruning entries", done, max(done, result.entries))

    def _drop_batch(self, given: list[dict[str, Any]], unnotified: set[str], result: PruneResult) -> None:
        for stream in sorted(unnotified):
            self._notify(stream, result.streams.get(stream, 0))
        self._db.drop_texts(given)
        self._db.forget_text([one["pos"] for one in given])

    def _notify(self, stream: str, count: int) -> None:
        what = f"the texts of {count} entries" if count else "kept texts"
        self._log.journal.append(
            stream,
            f"Dropped {what} from before {self._bound['before']}; their digests stay.",
            kind=EntryKind.EVENT,
            subtype="pruned",
            payload={"before": self._bound["before"], "kind": self._kind, "entries": count},
        )

    # Blobs

    def _find_unneeded_blobs(self) -> dict[str, int]:
        """Find blobs that only matching entries name, with their sizes; keep the streams of each."""
        if self._db.read(lambda: self._db.one("select 1 from blobs limit 1", {})) is None:
            return {}
        candidates = self._find_named_blobs(f"pos > :start and pos < :end and {self._matches}")
        if not candidates:
            return {}
        others = f"not (pos > :start and pos < :end and {self._matches})"
        needed = self._find_named_blobs(others).keys() | self._find_blobs_in_records("", {})
        sizes: dict[str, int] = self._db.read(lambda: dict(self._db.rows("select digest, size from blobs", {})[1]))
        unneeded = {digest: sizes[digest] for digest in sorted(candidates.keys() - needed)}
        self._owners = {stream for digest in unneeded for stream in candidates[digest]}
        return unneeded

    def _find_named_blobs(self, condition: str) -> dict[str, set[str]]:
        """Find the blobs that entries name, with the streams of these entries."""
        bound = {**self._bound, "start": self._span[0], "end": self._span[1]}
        found: dict[str, set[str]] = {}
        for name in ("body_digest", "payload_digest"):
            sql = f"select {name}, stream from entries where {name} in (select digest from blobs) and {condition}"
            for digest, stream in self._db.read(lambda sql=sql: self._db.rows(sql, bound)[1]):  # type: ignore[misc]
                found.setdefault(digest, set()).add(stream)
        return found

    def _find_blobs_in_records(self, condition: str, bound: dict[str, Any]) -> set[str]:
        sql = f"select payload from entries where record_table is not null {condition}"
        return self._db.read(lambda: {digest for row in self._db.each(sql, bound) for digest in DIGEST_IN_TEXT.findall(row[0])})

    def _drop_unneeded(self, unneeded: dict[str, int], heads: list[StreamHead]) -> dict[str, int]:
        """Delete blobs, except those that were named since the search."""
        for stream in sorted(self._owners - self._notified):
            self._db.lock_stream(stream)
        self._db.hold("blobs")
        seen = {head["stream"]: head["seq"] for head in heads}
        named: set[str] = set()
        for stream, number in self._db.rows("select name, no from streams", {})[1]:
            start = number * STREAM_SIZE
            bound = {"since": start + seen.get(stream, 0), "until": start + STREAM_SIZE}
            sql = "select body_digest, payload_digest from entries where pos > :since and pos < :until"
            named.update(digest for row in self._db.rows(sql, bound)[1] for digest in row if digest)
            named |= self._find_blobs_in_records("and pos > :since and pos < :until", bound)
        for stream in sorted(self._owners - self._notified):
            self._notify(stream, 0)
        left = {digest: size for digest, size in unneeded.items() if digest not in named}
        self._db.many("delete from blobs where digest = :digest", [{"digest": digest} for digest in left])
        return left


def _compute_digests(rows: list[tuple[Any, ...]]) -> list[dict[str, Any]]:
    """Compute the digests to keep, before the transaction begins."""
    return [
        {"pos": pos, "body": body_digest or chain.digest(body), "payload": payload_digest or chain.digest(payload)}
        for pos, _, body, payload, body_digest, payload_digest in rows
    ]
