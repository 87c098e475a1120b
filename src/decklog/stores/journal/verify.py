"""Proving a log: the chains link, and every row is what its newest entry says."""

import json
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import islice
from operator import itemgetter

from decklog.errors import NotFound
from decklog.records import Record
from decklog.stores.journal import chain
from decklog.stores.journal.anchors import Anchors
from decklog.stores.journal.chain import AT, HASH, SEQ, STREAM, flaw
from decklog.stores.journal.rows import SELECT, STREAM_SIZE, heads, number_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from decklog.db.base import Database, Row

    # The value of a primary key, or the values of one with several parts.
    Key = Any
    # A record's id, the stream and number of its newest entry, and what that says.
    _Newest = tuple[str, str, int, str | None]
    # Names what is in the journal and should not be, each as the fields of a problem.
    Audit = Callable[[dict[str, type[Record]]], Iterator[dict[str, Any]]]

_MOST_PROBLEMS = 100
_TOGETHER = 500
_PLAIN = (str, int)
_WRONG = {
    "hash": "the entry does not match its hash",
    "body": "the body does not match its digest",
    "payload": "the payload does not match its digest",
}


@dataclass(frozen=True, kw_only=True)
class Problem:
    """One thing that is not as it was written."""

    what: str
    stream: str | None = None
    seq: int | None = None
    table: str | None = None
    record_id: str | None = None


@dataclass(kw_only=True)
class Verification:
    """What was checked, and what was found wrong; `first` is the first bad thing."""

    streams: int = 0
    entries: int = 0
    records: int = 0
    anchored: int = 0
    problems: list[Problem] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        return not self.problems

    @property
    def first(self) -> Problem | None:
        return self.problems[0] if self.problems else None

    def as_dict(self) -> "dict[str, Any]":
        return {
            "ok": self.ok,
            "streams": self.streams,
            "entries": self.entries,
            "records": self.records,
            "anchored": self.anchored,
            "problems": [vars(problem) for problem in self.problems],
        }


class Verifier:
    """Walks one stream or all of them, in one consistent read."""

    def __init__(self, db: "Database", record_classes: "dict[str, type[Record]]", audit: "Audit | None" = None) -> None:
        self._db = db
        self._classes = record_classes
        self._audit = audit
        self.result = Verification()

    def run(self, stream: str | None, anchor: str | None) -> Verification:
        anchors = Anchors(anchor) if anchor else None
        self._db.read(lambda: self._check(stream, anchors))
        if anchors is not None and self.result.ok:
            anchors.keep(self._db.read(lambda: heads(self._db)))
        return self.result

    def run_chains(self) -> Verification:
        """Walk every stream, and leave the tables aside."""
        self._db.read(self._check_chains)
        return self.result

    def run_tables(self) -> Verification:
        """Compare every table with the newest entries, and leave the chains aside."""
        self._db.read(self._check_tables)
        return self.result

    def _check(self, stream: str | None, anchors: "Anchors | None") -> None:
        self._check_chains(stream)
        if stream is None:
            self._check_tables()
            # Rows are looked up by their keys: an index that says another key than the row does would hide what became of it.
            for what in (*self._db.check_wal(), *self._db.check_indexes(_MOST_PROBLEMS)):
                self._bad(what)
            self._check_proofs()
        else:
            self._check_records_of(stream)
        if anchors is not None:
            self._check_anchors(anchors)

    def _check_chains(self, stream: str | None = None) -> None:
        streams = self._streams(stream)
        self.result.streams = len(streams)
        for name, (number, in_order) in streams.items():
            self._walk(name, number, in_order)
        if stream is None:
            self._find_stray_entries()

    def _check_tables(self) -> None:
        for record_class in self._classes.values():
            self._compare(record_class)
        self._check_blobs()

    def _check_records_of(self, stream: str) -> None:
        """Compare the records that one stream tells of."""
        for table, images in self._images_of(self._streams(stream)[stream][0]).items():
            if table in self._classes:
                record_class = self._classes[table]
                self._compare_with(record_class, (Image(record_class, *image) for image in images))
            else:
                self._bad(f"there is no table {table}", stream=stream, seq=images[0][2])

    def _images_of(self, number: int) -> "dict[str, list[_Newest]]":
        """Give the newest image of every record of one stream, table by table."""
        sql = """
            select record_table, record_id, stream, seq, payload
              from entries
             where pos >= :start
               and pos < :end
               and record_table is not null
             order by pos
        """
        newest: dict[str, dict[str, _Newest]] = {}
        bounds = {"start": number * STREAM_SIZE, "end": (number + 1) * STREAM_SIZE}
        for table, *image in self._db.each(sql, bounds):
            newest.setdefault(table, {})[image[0]] = tuple(image)
        return {table: list(images.values()) for table, images in newest.items()}

    def _streams(self, stream: str | None) -> dict[str, tuple[int, bool]]:
        _, rows = self._db.rows("select name, no, in_order from streams order by no", {})
        streams = {name: (number, bool(in_order)) for name, number, in_order in rows}
        if stream is None:
            return streams
        if stream not in streams:
            raise NotFound(f"there is no stream {stream!r}")
        return {stream: streams[stream]}

    def _bad(self, what: str, **where: "Any") -> None:
        if len(self.result.problems) < _MOST_PROBLEMS:
            self.result.problems.append(Problem(what=what, **where))

    # The chain

    def _find_stray_entries(self) -> None:
        """Look for entries in no stream that is known; removing a stream's row must not hide its entries."""
        row = self._db.one("select count(*) from entries", {})
        if row is None or row[0] <= self.result.entries:
            return
        _, strays = self._db.rows(
            f"""
            select stream, seq
              from entries
             where pos / {STREAM_SIZE} not in (select no from streams)
             order by pos
             limit {_MOST_PROBLEMS}
            """,
            {},
        )
        for stream, seq in strays:
            self._bad("the entry belongs to no known stream", stream=stream, seq=seq)

    def _walk(self, stream: str, number: int, in_order: bool) -> None:
        previous, expected, latest, start = chain.START, 1, "", number * STREAM_SIZE
        sql = f"{SELECT} where pos >= :start and pos < :end order by pos"
        for row in self._db.each(sql, {"start": start, "end": start + STREAM_SIZE}):
            seq, at = row[SEQ], row[AT]
            self.result.entries += 1
            if type(seq) is not int or type(at) is not str:
                # A page that was cut off or overwritten gives rows of anything.
                self._bad("the entry can't be read", stream=stream, seq=expected)
                previous, expected = str(row[HASH]), expected + 1
                continue
            if row[STREAM] != stream:
                self._bad(f"the entry names another stream, {row[STREAM]}", stream=stream, seq=seq)
            if row[0] != start + seq:
                self._bad(f"the entry stands at position {row[0]}", stream=stream, seq=seq)
            if seq != expected:
                self._bad(f"entries {expected} to {seq - 1} are missing", stream=stream, seq=expected)
            if (what := flaw(previous, row)) is not None:
                self._bad(_WRONG[what], stream=stream, seq=seq)
            if in_order and at < latest:
                self._bad("the stream is said to be in order of time, and is not", stream=stream, seq=seq)
            previous, expected, latest = row[HASH], seq + 1, at

    # The records

    def _compare(self, record_class: type[Record]) -> None:
        """Compare each row with its newest post-image, and look for rows without one."""
        found = self._compare_with(record_class, self._newest_images(record_class))
        count = self._db.one(f"select count(*) from {record_class.table}", {})
        if count is not None and count[0] > found:
            self._find_strangers(record_class)

    def _compare_with(self, record_class: type[Record], newest: "Iterator[Image]") -> int:
        """Compare rows with images; count the rows that are there."""
        found = 0
        for images in _some(newest):
            names, rows = self._rows(record_class, [image.key for image in images if image.key is not None])
            found += len(rows)
            in_order = itemgetter(*names) if names else None
            for image in images:
                row = rows.get(image.key)
                if row is None or in_order is None or not image.says(row, in_order):
                    self._tell(record_class, image, dict(zip(names, row, strict=True)) if row else None)
                else:
                    self.result.records += 1
        return found

    def _tell(self, record_class: type[Record], image: "Image", row: "dict[str, Any] | None") -> None:
        """Say how a row differs from its newest image, if it does."""
        table, record_id = record_class.table, image.record_id
        where = {"stream": image.stream, "seq": image.seq, "table": table, "record_id": record_id}
        if image.values is None:
            self._bad(f"the newest entry of {table} {record_id} does not say what it is", **where)
            return
        gone, said = image.is_removal, record_class.upcast(image.values)
        self.result.records += not gone
        if row is None and not gone:
            self._bad(f"{table} {record_id} is gone", **where)
        elif row is not None and gone:
            self._bad(f"{table} {record_id} was removed, and is there", **where)
        elif row is not None and (differing := [name for name in row if row[name] != said.get(name)]):
            self._bad(f"{table} {record_id} differs from its newest entry in {', '.join(differing)}", **where)

    def _newest_images(self, record_class: type[Record]) -> "Iterator[Image]":
        sql = """
            select record_id, stream, seq, payload
              from entries
             where record_table = :table
             order by record_table, record_id, seq
        """
        last: _Newest | None = None
        for row in self._db.each(sql, {"table": record_class.table}):
            if last is not None and last[0] != row[0]:
                yield Image(record_class, *last)
            last = row
        if last is not None:
            yield Image(record_class, *last)

    def _rows(self, record_class: type[Record], keys: "list[Key]") -> "tuple[tuple[str, ...], dict[Key, Row]]":
        """Look many rows up at once: one by one they would cost a server more than walking the chain."""
        identity = record_class.identity
        if not keys:
            return (), {}
        parts = [[key] if len(identity) == 1 else key for key in keys]
        bound = {f"k{place}_{part}": value for place, key in enumerate(parts) for part, value in enumerate(key)}
        columns = ", ".join(identity) if len(identity) == 1 else f"({', '.join(identity)})"
        marks = [", ".join(f":k{place}_{part}" for part in range(len(identity))) for place in range(len(keys))]
        chosen = ", ".join(marks) if len(identity) == 1 else f"values ({'), ('.join(marks)})"
        names, rows = self._db.rows(f"select * from {record_class.table} where {columns} in ({chosen})", bound)
        if not rows:
            return (), {}
        key_of = itemgetter(*map(names.index, identity))
        return names, {key_of(row): row for row in rows}

    def _find_strangers(self, record_class: type[Record]) -> None:
        names, rows = self._db.rows(f"select * from {record_class.table}", {})
        for row in rows:
            record_id = record_class.id_of(dict(zip(names, row, strict=True)))
            known = self._db.one(
                "select 1 from entries where record_table = :table and record_id = :id limit 1",
                {"table": record_class.table, "id": record_id},
            )
            if known is None:
                self._bad(
                    f"{record_class.table} {record_id} is in no entry",
                    table=record_class.table,
                    record_id=record_id,
                )

    def _check_blobs(self) -> None:
        for digest, content in self._db.each("select digest, bytes from blobs", {}):
            if sha256(content).hexdigest() != digest:
                self._bad(f"blob {digest} does not match its digest", table="blobs", record_id=digest)

    # The manager's proofs

    def _check_proofs(self) -> None:
        """Replay what the manager signed. A journal that can't be read was told of before."""
        if self._audit is None:
            return
        try:
            for problem in self._audit(self._classes):
                self._bad(**problem)
        except (ValueError, KeyError, TypeError) as damage:
            self._bad(f"what the manager signed can't be replayed: {type(damage).__name__} {damage}", stream="@desk")

    # The anchors

    def _check_anchors(self, anchors: "Anchors") -> None:
        for stream, seq, expected in anchors.kept():
            self.result.anchored += 1
            number = number_of(self._db, stream) or 0
            row = self._db.one("select hash from entries where pos = :pos", {"pos": number * STREAM_SIZE + seq})
            if row is None:
                self._bad("entries up to the anchored one are cut off", stream=stream, seq=seq)
            elif row[0] != expected:
                self._bad("the entry is not the one that was anchored", stream=stream, seq=seq)


class Image:
    """What the newest entry of a record says that it is. `values` and `key` are None when that can't be read."""

    def __init__(self, record_class: type[Record], record_id: str, stream: str, seq: int, payload: str | None) -> None:
        self.record_id = record_id
        self.stream = stream
        self.seq = seq
        said = _object_of(payload)
        self.is_removal = said is not None and said.get("removed") is True
        # Most entries are of the table's present form, which the number of their columns shows soonest.
        fits = said is not None and len(said) == len(record_class.columns()) and record_class.identity[0] in said
        self.values = said if said is None or fits else record_class.upcast(said)
        self.key: Key = None
        if self.values is not None:
            parts = [self.values.get(name) for name in record_class.identity]
            if all(type(part) in _PLAIN for part in parts):
                self.key = parts[0] if len(parts) == 1 else tuple(parts)
            else:
                self.values = None

    def says(self, row: "Row", in_order: "itemgetter[Any]") -> bool:
        """Say whether a row is just what the image says; False also when that takes a closer look."""
        assert self.values is not None
        try:
            return bool(in_order(self.values) == row) and not self.is_removal
        except KeyError:
            return False  # a column has another name than it had then


def _object_of(payload: str | None) -> "dict[str, Any] | None":
    try:
        image = json.loads(payload if isinstance(payload, str) else "")
    except ValueError:
        return None
    return image if isinstance(image, dict) else None


def _some(images: "Iterator[Image]") -> "Iterator[list[Image]]":
    while some := list(islice(images, _TOGETHER)):
        yield some
