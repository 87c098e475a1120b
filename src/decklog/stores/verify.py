"""Proving a log: the chains link, and every row is what its newest entry says."""

import json
import os
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import islice

from decklog.errors import Invalid, NotFound
from decklog.records import Record, to_json
from decklog.stores import chain
from decklog.stores.journal_writer import STREAM_SIZE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

    from decklog.stores.journal import Journal

    # A record's id, the stream and number of its newest entry, and what that says.
    _Image = tuple[str, str, int, str | None]

_MOST_PROBLEMS = 100
_AT_ONCE = 200
_COLUMNS = (*chain.FIELDS, "pos", "hash", "body_digest", "payload_digest")


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

    def __init__(self, journal: "Journal") -> None:
        self._journal = journal
        self._db = journal.db
        self.result = Verification()

    def run(self, stream: str | None, anchor: str | None) -> Verification:
        anchors = Anchors(anchor) if anchor else None
        self._db.read(lambda: self._check(stream, anchors))
        if anchors is not None and self.result.ok:
            anchors.keep(self._journal.heads())
        return self.result

    def _check(self, stream: str | None, anchors: "Anchors | None") -> None:
        streams = self._streams(stream)
        self.result.streams = len(streams)
        for name, (number, in_order) in streams.items():
            self._walk(name, number, in_order)
        classes = self._journal.record_classes()
        if stream is None:
            self._find_stray_entries()
            for record_class in classes.values():
                self._compare_all(record_class)
            self._check_blobs()
        else:
            for table, images in self._images_of(streams[stream][0]).items():
                if table in classes:
                    self._compare(classes[table], images)
                else:
                    self._bad(f"there is no table {table}", stream=stream, seq=images[0][2])
        if anchors is not None:
            self._check_anchors(anchors)

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
        previous, expected, latest = chain.START, 1, ""
        sql = f"select {', '.join(_COLUMNS)} from entries where pos >= :start and pos < :end order by pos"
        bounds = {"start": number * STREAM_SIZE, "end": (number + 1) * STREAM_SIZE}
        for row in self._db.each(sql, bounds):
            values = dict(zip(_COLUMNS, row, strict=True))
            self.result.entries += 1
            if values["stream"] != stream:
                self._bad(f"the entry names another stream, {values['stream']}", stream=stream, seq=values["seq"])
            if values["pos"] != number * STREAM_SIZE + values["seq"]:
                self._bad(f"the entry stands at position {values['pos']}", stream=stream, seq=values["seq"])
            if values["seq"] != expected:
                self._bad(f"entries {expected} to {values['seq'] - 1} are missing", stream=stream, seq=expected)
            if (wrong := self._wrong(values, previous)) is not None:
                self._bad(wrong, stream=stream, seq=values["seq"])
            if in_order and values["at"] < latest:
                self._bad("the stream is said to be in order of time, and is not", stream=stream, seq=values["seq"])
            previous, expected, latest = values["hash"], values["seq"] + 1, values["at"]

    def _wrong(self, values: "dict[str, Any]", previous: str) -> str | None:
        for name in ("body", "payload"):
            text, kept = values[name], values[f"{name}_digest"]
            values[name] = kept if text is None else chain.digest(text)
            if text is not None and kept is not None and kept != values[name]:
                return f"the {name} does not match its digest"
        values["redacted"] = values["redacted"] or None
        if chain.link(previous, values) != values["hash"]:
            return "the entry does not match its hash"
        return None

    # The records

    def _compare_all(self, record_class: type[Record]) -> None:
        """Compare a table's rows with their newest post-images, and look for rows without one."""
        found = self._compare(record_class, self._newest_images(record_class.table))
        count = self._db.one(f"select count(*) from {record_class.table}", {})
        if count is not None and count[0] > found:
            self._find_strangers(record_class)

    def _compare(self, record_class: type[Record], images: "Iterable[_Image]") -> int:
        """Compare rows with their newest post-images; count the rows that are there."""
        found, pending = 0, iter(images)
        # A row by itself is fastest from a file; over a connection every question costs a journey.
        size = 1 if self._db.engine == "sqlite" else _AT_ONCE
        while batch := list(islice(pending, size)):
            readable = [(image, _read(record_class, image[3])) for image in batch]
            rows = self._rows(record_class, [image for _, image in readable if image is not None])
            found += sum(self._judge(record_class, *pair, rows) for pair in readable)
        return found

    def _judge(
        self, record_class: type[Record], place: "_Image", image: "dict[str, Any] | None", rows: "dict[str, dict[str, Any]]"
    ) -> bool:
        """Judge one row by its newest image; say whether it is there."""
        table, (record_id, stream, seq, _) = record_class.table, place
        where = {"stream": stream, "seq": seq, "table": table, "record_id": record_id}
        if image is None:
            self._bad(f"the newest entry of {table} {record_id} does not say what it is", **where)
            return False
        row = rows.get(record_class.id_of(image))
        gone = image.get("removed") is True
        self.result.records += not gone
        if row is None and not gone:
            self._bad(f"{table} {record_id} is gone", **where)
        elif row is not None and gone:
            self._bad(f"{table} {record_id} was removed, and is there", **where)
        elif row is not None and (differing := [name for name in row if row[name] != image.get(name)]):
            self._bad(f"{table} {record_id} differs from its newest entry in {', '.join(differing)}", **where)
        return row is not None

    def _newest_images(self, table: str) -> "Iterator[_Image]":
        sql = """
            select record_id, stream, seq, payload
              from entries
             where record_table = :table
             order by record_table, record_id, seq
        """
        last: _Image | None = None
        for row in self._db.each(sql, {"table": table}):
            if last is not None and last[0] != row[0]:
                yield last
            last = row
        if last is not None:
            yield last

    def _images_of(self, number: int) -> "dict[str, list[_Image]]":
        """Give the newest image of every record of one stream, table by table."""
        sql = """
            select record_table, record_id, stream, seq, payload
              from entries
             where pos >= :start
               and pos < :end
               and record_table is not null
             order by pos
        """
        newest: dict[str, dict[str, _Image]] = {}
        bounds = {"start": number * STREAM_SIZE, "end": (number + 1) * STREAM_SIZE}
        for table, *image in self._db.each(sql, bounds):
            newest.setdefault(table, {})[image[0]] = tuple(image)
        return {table: list(images.values()) for table, images in newest.items()}

    def _rows(self, record_class: type[Record], images: "list[dict[str, Any]]") -> "dict[str, dict[str, Any]]":
        """Look rows up by their keys."""
        if not images:
            return {}
        keys = record_class.identity
        bound = {f"{name}_{place}": image[name] for place, image in enumerate(images) for name in keys}
        # PostgreSQL plans a list at once, and each of many conditions for itself.
        condition = (
            f"{keys[0]} in ({', '.join(':' + name for name in bound)})"
            if len(keys) == 1
            else " or ".join(f"({' and '.join(f'{name} = :{name}_{place}' for name in keys)})" for place in range(len(images)))
        )
        names, rows = self._db.rows(f"select * from {record_class.table} where {condition}", bound)
        found = [dict(zip(names, row, strict=True)) for row in rows]
        return {record_class.id_of(row): row for row in found}

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

    # The anchors

    def _check_anchors(self, anchors: "Anchors") -> None:
        for stream, seq, expected in anchors.kept():
            self.result.anchored += 1
            number = self._journal.number_of(stream) or 0
            row = self._db.one("select hash from entries where pos = :pos", {"pos": number * STREAM_SIZE + seq})
            if row is None:
                self._bad("entries up to the anchored one are cut off", stream=stream, seq=seq)
            elif row[0] != expected:
                self._bad("the entry is not the one that was anchored", stream=stream, seq=seq)


def _read(record_class: type[Record], payload: str | None) -> "dict[str, Any] | None":
    """Read a post-image; None when it was made unreadable."""
    try:
        image = json.loads(payload or "")
    except ValueError:
        return None
    return image if isinstance(image, dict) and image.keys() >= set(record_class.identity) else None


class Anchors:
    """A file outside the log with the last verified head of every stream, one JSON object a line."""

    def __init__(self, path: str) -> None:
        self._path = path

    def kept(self) -> "Iterator[tuple[str, int, str]]":
        if not os.path.exists(self._path):
            return
        for number, line in enumerate(self._lines(), 1):
            try:
                head = json.loads(line)
                yield str(head["stream"]), int(head["seq"]), str(head["hash"])
            except (ValueError, KeyError, TypeError):
                raise Invalid(f"line {number} of {self._path} is not an anchor") from None

    def _lines(self) -> list[str]:
        try:
            with open(self._path, encoding="utf-8", errors="replace") as file:
                return file.readlines()
        except (OSError, ValueError) as problem:
            raise Invalid(f"the anchors in {self._path!r} can't be read: {problem}") from None

    def keep(self, heads: "list[dict[str, Any]]") -> None:
        """Replace the file by the present heads, all or nothing."""
        partial = f"{self._path}.partial"
        try:
            with open(partial, "w", encoding="utf-8") as file:
                file.writelines(to_json(head) + "\n" for head in heads)
                file.flush()
                os.fsync(file.fileno())
            os.replace(partial, self._path)
        except (OSError, ValueError) as problem:
            raise Invalid(f"the anchors can't be kept in {self._path!r}: {problem}") from None
