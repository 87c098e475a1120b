"""Replicate entries as they are: what moving a log, reading an export and recovery have in common.

An entry that is received keeps its number and its hash. It is checked against the one before it, inserted, and its post-image
is put into the table it is about, so the projections of the receiving log are made from the journal alone.
"""

from collections.abc import Callable, Iterator, Mapping
from hashlib import sha256
from operator import gt
from typing import Any, Protocol, Self

from decklog.core.clock import Clock
from decklog.core.errors import Conflict, Damaged, Invalid, NotFound
from decklog.db.base import Database
from decklog.journal.blobs import load_blob, store_blob
from decklog.journal.chain import (
    AT,
    HASH,
    RECORD_ID,
    RECORD_TABLE,
    SEQ,
    STREAM,
    EntryRange,
    Row,
    find_mismatch,
    mismatch_error,
    parse_image,
    unusable_entry_error,
)
from decklog.journal.rows import COLUMNS, SELECT, STREAM_SIZE, find_stream_number
from decklog.journal.writer import Writer
from decklog.records.record import Record


class Log(Protocol):
    @property
    def db(self) -> Database: ...
    @property
    def clock(self) -> Clock: ...
    def record_classes(self) -> Mapping[str, type[Record]]: ...


FIELDS = tuple(name for name in COLUMNS if name != "pos")
_EMPTY_ROW: dict[str, Any] = dict.fromkeys(COLUMNS)


class Replication:
    """Exports entries and imports them, column by column."""

    def __init__(self, db: Database, clock: Clock, record_classes: Callable[[], Mapping[str, type[Record]]]) -> None:
        self._db = db
        self._writer = Writer(db, clock)
        self._record_classes = record_classes

    @classmethod
    def of(cls, log: Log) -> Self:
        """Replicate a log."""
        return cls(log.db, log.clock, log.record_classes)

    def export_entries(self, stream: str, *, after: int = 0, limit: int = 1000) -> list[dict[str, Any]]:
        """Return the entries of a stream after a number as stored columns, oldest first."""
        return [dict(zip(FIELDS, row[1:], strict=True)) for row in self.rows_after(stream, after, limit)]

    def rows_after(self, stream: str, after: int, limit: int) -> list[Row]:
        """Return the entries of a stream after a number as rows, with the positions of this database."""
        return self._db.read(lambda: self._rows_after(stream, after, limit))

    def _rows_after(self, stream: str, after: int, limit: int) -> list[Row]:
        number = find_stream_number(self._db, stream)
        if number is None:
            return []
        start = number * STREAM_SIZE
        _, rows = self._db.rows(
            f"{SELECT} where pos > :after and pos < :end order by pos limit {limit}",
            {"after": start + after, "end": start + STREAM_SIZE},
        )
        return rows

    def receive(self, entries: list[dict[str, Any]]) -> int:
        """Import entries of another log in their order, all or nothing; return how many were new.

        Each must follow the previous one. Existing entries are compared and skipped.
        """
        return self._db.write(lambda: self._receive(entries))

    def _receive(self, entries: list[dict[str, Any]]) -> int:
        known: dict[int, Row] = {}
        fresh: list[Row] = []
        for entry in entries:
            values: dict[str, Any] = {**_EMPTY_ROW, **entry}
            if len(values) != len(COLUMNS):
                raise Invalid(f"an entry has the fields {', '.join(FIELDS)}; got {', '.join(entry)}")
            row, is_new = self._chain_row(tuple(values.values()))
            if is_new:
                fresh.append(row)
            else:
                known[row[0]] = row
        self._check_same(known)
        images = {row[0]: parse_image(row) for row in fresh if row[RECORD_TABLE] is not None}
        self._write_rows(fresh, images, [row[STREAM] for row in fresh])
        return len(fresh)

    def take(self, entry_ranges: list[EntryRange]) -> int:
        """Import checked ranges of another log, all or nothing; each must follow the end of its stream here."""
        return self._db.write(lambda: self._take(entry_ranges))

    def _take(self, entry_ranges: list[EntryRange]) -> int:
        fresh: list[Row] = []
        images: dict[int, Any] = {}
        for entry_range in entry_ranges:
            rows = self._append_range(entry_range)
            start = rows[0][0] - rows[0][SEQ]
            images.update((start + seq, image) for seq, image in entry_range.images.items())
            fresh += rows
        self._write_rows(fresh, images, [entry_range.stream for entry_range in entry_ranges])
        return len(fresh)

    def _append_range(self, entry_range: EntryRange) -> list[Row]:
        """Append a range to its stream, update the head, and return the rows with their new positions."""
        stream, seq = entry_range.stream, entry_range.rows[0][SEQ]
        pos, hash, at = self._writer.lock_head(stream, new_stream=True, at=entry_range.rows[0][AT])
        start = pos - pos % STREAM_SIZE
        if start + seq != pos + 1 or entry_range.previous != hash:
            raise Conflict(
                f"{stream} ends at {pos - start} here, and entry {seq} does not follow from that",
                hint="Another process wrote to the target. Move into a log that nobody else writes to.",
                stream=stream,
                seq=seq,
            )
        rows = [(start + row[SEQ], *row[1:]) for row in entry_range.rows]
        times = [at, *(row[AT] for row in rows)]
        if any(map(gt, times, times[1:])):
            self._writer.mark_out_of_order(stream)
        self._db.memo["head", stream] = (rows[-1][0], rows[-1][HASH], rows[-1][AT])
        return rows

    def _write_rows(self, rows: list[Row], images: dict[int, Any], streams: list[str]) -> None:
        """Insert rows and apply the images of their records, given by position; notify readers of the streams."""
        self._db.insert("entries", COLUMNS, rows)
        self._writer.store_heads({stream: self._db.memo["head", stream] for stream in streams})
        self._apply_images([row for row in rows if row[RECORD_TABLE] is not None], images)
        # Clear everything that stores have cached, except the new heads.
        for key in [key for key in self._db.memo if key[0] != "head"]:
            del self._db.memo[key]

    def _chain_row(self, row: Row) -> tuple[Row, bool]:
        """Check a row against the head of its stream and make it the head. Return the row, and whether it is new."""
        stream, seq = row[STREAM], row[SEQ]
        head = self._writer.lock_head(stream, new_stream=True, at=row[AT])
        seen = head[0] % STREAM_SIZE
        row = (head[0] - seen + seq, *row[1:])
        if seq <= seen:
            return row, False
        if seq != seen + 1:
            raise Conflict(f"{stream} has entries up to {seen}; {seq} would leave a gap", stream=stream, seq=seq)
        what = find_mismatch(head[1], row)
        if what is not None:
            raise mismatch_error(row, what)
        if row[AT] < head[2]:
            self._writer.mark_out_of_order(stream)
        self._db.memo["head", stream] = (row[0], row[HASH], row[AT])
        return row, True

    def _check_same(self, known: dict[int, Row]) -> None:
        """Raise Conflict if an existing entry differs from the imported one."""
        if not known:
            return
        _, rows = self._db.rows(f"select pos, hash from entries where pos in ({', '.join(map(str, known))})", {})
        here: dict[int, str] = dict(rows)
        for pos, row in known.items():
            if here.get(pos) != row[HASH]:
                raise Conflict(
                    f"entry {row[STREAM]}:{row[SEQ]} is a different one here",
                    hint="The two logs have diverged; import the stream into an empty log.",
                    stream=row[STREAM],
                    seq=row[SEQ],
                )

    def _apply_images(self, changes: list[Row], images: dict[int, Any]) -> None:
        """Apply images to their tables."""
        if not changes:
            return
        try:
            self._db.write(lambda: self._apply_newest(changes, images))
        except (Conflict, NotFound):
            # A unique value moved between records within the batch, so apply the changes in order.
            for row in changes:
                self._apply_newest([row], images)

    def _apply_newest(self, changes: list[Row], images: dict[int, Any]) -> None:
        """Apply the last image of each record; removals first, to free unique values."""
        newest = {(row[RECORD_TABLE], row[RECORD_ID]): row for row in changes}
        classes = self._record_classes()
        kept: dict[str, list[dict[str, Any]]] = {table: [] for table in classes}
        removed: dict[str, list[dict[str, Any]]] = {table: [] for table in classes}
        for (table, _), row in newest.items():
            if table not in classes:
                raise unusable_entry_error(row, f"records {table!r}, a record type that this Decklog does not know")
            image = images[row[0]]
            (removed if image.get("removed") else kept)[table].append(image)
        for table in reversed(list(classes)):
            self._remove_all(classes[table], removed[table])
        for table, record_class in classes.items():
            self._upsert_all(record_class, kept[table])

    def _remove_all(self, record_class: type[Record], images: list[dict[str, Any]]) -> None:
        if images:
            condition = " and ".join(f"{name} = :{name}" for name in record_class.identity)
            self._db.many(f"delete from {record_class.table} where {condition}", list(map(record_class.upcast, images)))

    def _upsert_all(self, record_class: type[Record], images: list[dict[str, Any]]) -> None:
        if images:
            names = record_class.columns()
            all_names = set(names)
            whole = [image if image.keys() == all_names else record_class.upcast(image) for image in images]
            self._db.put(record_class.table, names, record_class.identity, whole)

    def blob_digests(self, *, after: str = "", limit: int | None = None) -> list[str]:
        """Return the digests of stored blobs in order: all, or `limit` of them after one."""
        most = "" if limit is None else f"limit {limit}"
        sql = f"select digest from blobs where digest > :after order by digest {most}"
        _, rows = self._db.read(lambda: self._db.rows(sql, {"after": after}))
        return [row[0] for row in rows]

    def find_missing_blobs(self, digests: list[str]) -> list[str]:
        """Return the digests without a blob."""
        bound = {f"d{place}": digest for place, digest in enumerate(digests)}
        sql = f"select digest from blobs where digest in ({', '.join(':' + name for name in bound)})"
        here = {row[0] for row in self._db.read(lambda: self._db.rows(sql, bound))[1]}
        return [digest for digest in digests if digest not in here]

    def find_missing_texts(self, stream: str) -> Iterator[int]:
        """Yield the numbers of entries with a missing text, in order. Call it inside a read."""
        start = (find_stream_number(self._db, stream) or 0) * STREAM_SIZE
        gone = "{0} is null and {0}_digest is not null and not exists (select 1 from blobs where digest = {0}_digest)"
        sql = f"""
            select seq
              from entries
             where pos >= :start
               and pos < :end
               and (({gone.format("body")}) or ({gone.format("payload")}))
             order by pos
        """
        for row in self._db.each(sql, {"start": start, "end": start + STREAM_SIZE}):
            yield row[0]

    def blobs(self, digests: list[str]) -> Iterator[tuple[str, bytes]]:
        """Yield blobs by their digests."""
        for digest in digests:
            content = self._db.read(lambda digest=digest: load_blob(self._db, digest))  # type: ignore[misc]
            if content is not None:
                yield digest, content

    def import_blobs(self, blobs: list[tuple[str, bytes]]) -> None:
        """Import blobs of another log, all or nothing; each must match its digest."""
        self._db.write(lambda: self._store_all(blobs))

    def _store_all(self, blobs: list[tuple[str, bytes]]) -> None:
        for digest, content in blobs:
            if sha256(content).hexdigest() != digest:
                raise Damaged(f"blob {digest} does not match its digest", digest=digest)
            store_blob(self._db, content, digest)
