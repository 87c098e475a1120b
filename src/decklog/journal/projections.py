"""Compares the tables with the journal: every row matches its newest entry."""

from collections.abc import Iterator, Mapping
from dataclasses import fields
from functools import cached_property, lru_cache
from itertools import groupby, islice
from operator import itemgetter
from typing import Any

from decklog.core.errors import Damaged, Invalid
from decklog.db.base import Database, Row
from decklog.journal.findings import Verification, ignore_damage, parse_object
from decklog.journal.rows import STREAM_SIZE
from decklog.journal.texts import StoredText, Texts
from decklog.records.record import Record

# The value of a primary key, or the values of one with several parts.
Key = Any
# A record's id, the stream and number of its newest entry, and its image.
_Newest = tuple[str, str, int, str | None]

_BATCH_SIZE = 500
_KEY_TYPES = (str, int)


class Projections:
    """Compares rows with the newest images of their records."""

    def __init__(self, db: Database, record_classes: Mapping[str, type[Record]], result: Verification, texts: Texts) -> None:
        self._db = db
        self._texts = texts
        self._classes = record_classes
        self._result = result

    def check_all(self) -> None:
        filled = self._count_rows()
        for table, record_class in self._classes.items():
            has_entries, count = filled.get(table, (True, None))
            if has_entries or count:
                with self._result.checking(self._db, f"the table {table}", table=table):
                    self._compare(record_class, count)

    def _count_rows(self) -> dict[str, tuple[bool, int]]:
        """Return for each table whether it has entries, and its number of rows; empty if that can't be read."""
        counted = " union all ".join(f"select '{table}', count(*) from {table}" for table in self._classes)
        # One query for all tables, because planning one per table takes longer.
        sql = f"""
            with counted (name, number) as ({counted})
            select name, exists (select 1 from entries where record_table = name), number from counted
        """
        with ignore_damage(self._db):
            rows = self._db.rows(sql, {})[1]
            return {table: (bool(has_entries), count) for table, has_entries, count in rows}
        return {}

    def check_stream(self, stream: str, number: int, *, start: int | None = None) -> None:
        """Compare the records that one stream describes, or its entries from a position on."""
        for table, images in self._images_of(number, start).items():
            if table in self._classes:
                record_class = self._classes[table]
                with self._result.checking(self._db, f"the table {table}", table=table):
                    self.compare_with(record_class, (Image(record_class, *image) for image in images))
            else:
                self._result.bad(f"there is no table {table}", stream=stream, seq=images[0][2])

    def _images_of(self, number: int, start: int | None) -> dict[str, list[_Newest]]:
        """Return the newest image of every record of one stream, table by table."""
        sql = """
            select record_table, record_id, stream, seq, payload
              from entries
             where pos >= :start
               and pos < :end
               and record_table is not null
             order by pos
        """
        newest: dict[str, dict[str, _Newest]] = {}
        bounds = {"start": number * STREAM_SIZE if start is None else start, "end": (number + 1) * STREAM_SIZE}
        for table, *image in self._db.each_as_is(sql, bounds):
            newest.setdefault(table, {})[image[0]] = tuple(image)
        return {table: list(images.values()) for table, images in newest.items()}

    def _compare(self, record_class: type[Record], count: int | None) -> None:
        """Compare each row with its newest image, and find rows without one."""
        found = self.compare_with(record_class, self._newest_images(record_class))
        if count is None:
            counted = self._db.one(f"select count(*) from {record_class.table}", {})
            count = counted[0] if counted else 0
        if count > found:
            self._report_unrecorded(record_class)
        if record_class.blob_columns:
            self._texts.check_records(self._list_blobs(record_class))

    def compare_with(self, record_class: type[Record], newest: "Iterator[Image]") -> int:
        """Compare rows with images; return the number of existing rows."""
        found = 0
        names = record_class.columns()
        while images := list(islice(newest, _BATCH_SIZE)):
            rows = self._rows(record_class, [image.key for image in images if image.key is not None])
            found += len(rows)
            for image in images:
                row = rows.get(image.key)
                if row is None or not image.matches(names, row):
                    self._report(record_class, image, dict(zip(names, row, strict=True)) if row else None)
                else:
                    self._result.records += 1
        return found

    def _report(self, record_class: type[Record], image: "Image", row: dict[str, Any] | None) -> None:
        """Report how a row differs from its newest image, if it does."""
        table, record_id = record_class.table, image.record_id
        where = {"stream": image.stream, "seq": image.seq, "table": table, "record_id": record_id}
        if image.values is None:
            self._result.bad(f"the newest entry of {table} {record_id} has no readable image", **where)
            return
        is_gone, expected = image.is_removal, record_class.upcast(image.values)
        self._result.records += not is_gone
        if row is None and not is_gone:
            self._result.bad(f"{table} {record_id} is gone", **where)
        elif row is not None and is_gone:
            self._result.bad(f"{table} {record_id} was removed, but exists", **where)
        elif row is not None and (differing := ", ".join(name for name in row if row[name] != expected.get(name))):
            self._result.bad(f"{table} {record_id} differs from its newest entry in {differing}", **where, column=differing)

    def _newest_images(self, record_class: type[Record]) -> "Iterator[Image]":
        for _, images in groupby(self._images(record_class), key=itemgetter(0)):
            *_, newest = images
            yield Image(record_class, *newest)

    def _images(self, record_class: type[Record]) -> Iterator[Any]:
        """Return all images of a table, by record."""
        sql = """
            select record_id, stream, seq, payload
              from entries
             where record_table = :table
             order by record_table, record_id, seq
        """
        return self._db.each_as_is(sql, {"table": record_class.table})

    def _list_blobs(self, record_class: type[Record]) -> Iterator[StoredText]:
        """Yield the blobs that records refer to, or did."""
        for record_id, stream, seq, payload in self._images(record_class):
            image = parse_object(payload)
            if image is not None and (digest := record_class.blob_digest(record_class.upcast(image))) is not None:
                where = {"stream": stream, "seq": seq, "table": "blobs", "record_id": str(digest)}
                yield StoredText(digest, f"bytes of {record_class.table} {record_id}", where)

    def _rows(self, record_class: type[Record], keys: list[Key]) -> dict[Key, Row]:
        """Load many rows by key with one query."""
        identity, names = record_class.identity, record_class.columns()
        if not keys:
            return {}
        parts = [[key] if len(identity) == 1 else key for key in keys]
        bound = {f"k{place}_{part}": value for place, key in enumerate(parts) for part, value in enumerate(key)}
        columns = ", ".join(identity) if len(identity) == 1 else f"({', '.join(identity)})"
        marks = [", ".join(f":k{place}_{part}" for part in range(len(identity))) for place in range(len(keys))]
        chosen = ", ".join(marks) if len(identity) == 1 else f"values ({'), ('.join(marks)})"
        sql = f"select {', '.join(names)} from {record_class.table} where {columns} in ({chosen})"
        key_of = itemgetter(*map(names.index, identity))
        try:
            rows = self._db.rows(sql, bound)[1]
        except Damaged:
            rows = list(self._db.each_as_is(sql, bound))
        return {key_of(row): row for row in rows}

    def _report_unrecorded(self, record_class: type[Record]) -> None:
        identity, archived = record_class.identity, self._db.archived()
        of_run = "run_id" if "run_id" in record_class.columns() else identity[0] if record_class.table == "runs" else "null"
        sql = f"select {', '.join(identity)}, {of_run} from {record_class.table}"
        for *row, run_id in list(self._db.each_as_is(sql, {})):
            if archived and (of_run == "null" or run_id in archived):
                self._result.leave_to_archives("records")
                continue
            record_id = record_class.id_of(dict(zip(identity, row, strict=True)))
            known = self._db.one(
                "select 1 from entries where record_table = :table and record_id = :id limit 1",
                {"table": record_class.table, "id": record_id},
            )
            if known is None:
                where = {"table": record_class.table, "record_id": record_id}
                self._result.bad(f"{record_class.table} {record_id} is in no entry", **where)


class Image:
    """The image of a record in its newest entry. `values` and `key` are None if it can't be read.

    Most rows equal their image when encoded as JSON, which is faster than decoding the image. It is decoded only if they
    differ, or if the key has several parts.
    """

    def __init__(self, record_class: type[Record], record_id: str, stream: str, seq: int, payload: str | None) -> None:
        self._record_class = record_class
        self._payload = payload
        self.record_id = record_id
        self.stream = stream
        self.seq = seq
        is_known = type(record_id) is str and type(payload) is str and _has_text_key(record_class)  # type: ignore[arg-type]
        self.key: Key = record_id if is_known else self._read_key()

    @cached_property
    def _payload_object(self) -> dict[str, Any] | None:
        return parse_object(self._payload)

    @property
    def is_removal(self) -> bool:
        return self._payload_object is not None and self._payload_object.get("removed") is True

    @cached_property
    def values(self) -> dict[str, Any] | None:
        record_class, said = self._record_class, self._payload_object
        if said is None:
            return None
        # Most images have the current columns; their number shows that fastest.
        fits = len(said) == len(record_class.columns()) and record_class.identity[0] in said
        values = said if fits else record_class.upcast(said)
        return values if all(type(values.get(name)) in _KEY_TYPES for name in record_class.identity) else None

    def _read_key(self) -> Key:
        if self.values is None:
            return None
        parts = [self.values[name] for name in self._record_class.identity]
        return parts[0] if len(parts) == 1 else tuple(parts)

    def matches(self, names: tuple[str, ...], row: Row) -> bool:
        """Return whether a row equals the image; False also if that is uncertain."""
        try:
            if self._record_class.image_of(names, row) == self._payload:
                return True
        except Invalid:
            return False  # a damaged page can return any values
        if self.values is None or self.is_removal:
            return False
        try:
            return bool(itemgetter(*names)(self.values) == row)
        except KeyError:
            return False  # a column was renamed since


@lru_cache
def _has_text_key(record_class: type[Record]) -> bool:
    """Return whether the id in entries equals the key in the row."""
    types = {field.name: field.type for field in fields(record_class)}
    name, *more = record_class.identity
    return not more and isinstance(kind := types[name], type) and issubclass(kind, str)
