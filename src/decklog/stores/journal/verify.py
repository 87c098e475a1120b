"""Proving a log: the chains link, every row is what its newest entry says, and what is derived is what it is derived from."""

from decklog.errors import Denied, NotFound, ReadOnly
from decklog.stores.journal import chain
from decklog.stores.journal.anchors import Anchors
from decklog.stores.journal.chain import AT, BODY_DIGEST, HASH, KIND, PAYLOAD_DIGEST, SEQ, STREAM, flaw
from decklog.stores.journal.findings import MOST_PROBLEMS, Problem, Verification
from decklog.stores.journal.projections import Projections
from decklog.stores.journal.rows import COLUMNS, SELECT, STREAM_SIZE, heads, number_of
from decklog.stores.journal.texts import Texts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from decklog.db.base import Database, Row
    from decklog.records import Record

    # Name what is in the log and should not be, each as the fields of a problem; each goes by the name of what it looks at.
    Audit = Callable[[dict[str, type[Record]]], Iterator[dict[str, Any]]]

__all__ = ["Problem", "Verification", "Verifier"]

_WRONG = {
    "hash": "the entry does not match its hash",
    "body": "the body does not match its digest",
    "payload": "the payload does not match its digest",
}
_TEXTS = tuple((name, COLUMNS.index(name), COLUMNS.index(f"{name}_digest")) for name in ("body", "payload"))


class Verifier:
    """Walks one stream or all of them, in one consistent read."""

    def __init__(
        self, db: "Database", record_classes: "dict[str, type[Record]]", audits: "dict[str, Audit] | None" = None
    ) -> None:
        self._db = db
        self._classes = record_classes
        self._audits = audits or {}
        self.result = Verification()
        self.texts = Texts(db, self.result)

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
            self._check_derived()
        else:
            Projections(self._db, self._classes, self.result, self.texts).check_stream(stream, number_of(self._db, stream) or 0)
        if anchors is not None:
            self._check_anchors(anchors)

    def _check_chains(self, stream: str | None = None) -> None:
        streams = self._streams(stream)
        self.result.streams = len(streams)
        for name, row in streams.items():
            with self.result.checking(self._db, f"the stream {name}", stream=name):
                self._walk(name, *row)
        if stream is None:
            with self.result.checking(self._db, "the number of entries", table="entries"):
                self._find_stray_entries()

    def _check_tables(self) -> None:
        Projections(self._db, self._classes, self.result, self.texts).check_all()
        with self.result.checking(self._db, "the table blobs", table="blobs"):
            self.texts.check_blobs()

    def _streams(self, stream: str | None) -> "dict[str, tuple[Any, ...]]":
        sql = "select name, no, created_at, in_order from streams order by no"
        streams = {}
        for name, *row in self._db.each_as_is(sql, {}):
            if type(name) is str and type(row[0]) is int:
                streams[name] = tuple(row)
            else:
                where = {"table": "streams", "record_id": str(name), "column": "name"}
                self.result.bad(f"the stream {name!r} can't be read", **where)
        if stream is None:
            return streams
        if stream not in streams:
            raise NotFound(f"there is no stream {stream!r}")
        return {stream: streams[stream]}

    # The chain

    def _find_stray_entries(self) -> None:
        """Look for entries in no stream that is known; removing a stream's row must not hide its entries."""
        row = self._db.one("select count(*) from entries", {})
        if row is None or row[0] <= self.result.entries:
            return
        strays = self._db.each_as_is(
            f"""
            select stream, seq
              from entries
             where pos / {STREAM_SIZE} not in (select no from streams)
             order by pos
             limit {MOST_PROBLEMS}
            """,
            {},
        )
        for stream, seq in strays:
            self.result.bad("the entry belongs to no known stream", stream=stream, seq=seq, table="entries")

    def _walk(self, stream: str, number: int, created_at: object, in_order: object) -> None:
        previous, expected, latest, start = chain.START, 1, "", number * STREAM_SIZE
        first: object = None
        backwards: int | None = None
        named: list[tuple[int, str, str, str, object]] = []
        others: list[tuple[int, object]] = []
        sql = f"{SELECT} where pos >= :start and pos < :end order by pos"
        for row in self._db.each_as_is(sql, {"start": start, "end": start + STREAM_SIZE}):
            seq, at = row[SEQ], row[AT]
            self.result.entries += 1
            if type(seq) is not int or type(at) is not str:
                # A page that was cut off or overwritten gives rows of anything.
                self._bad_entry("the entry can't be read", stream, expected)
                previous, expected = str(row[HASH]), expected + 1
                continue
            if row[STREAM] != stream:
                others.append((seq, row[STREAM]))
            if row[0] != start + seq:
                self._bad_entry(f"the entry stands at position {row[0]}", stream, seq, column="pos")
            if seq != expected:
                self._bad_entry(f"entries {expected} to {seq - 1} are missing", stream, expected)
            if (what := flaw(previous, row)) is not None:
                self._bad_entry(_WRONG[what], stream, seq, column=None if what == "hash" else what)
            if row[BODY_DIGEST] is not None or row[PAYLOAD_DIGEST] is not None:
                named += _named_by(row)
            if at < latest:
                backwards = backwards or seq
            if first is None:
                first = at
            previous, expected, latest = row[HASH], seq + 1, at
        self._check_name(stream, others, expected - 1)
        self._check_stream(stream, first, created_at, in_order, backwards)
        if named:
            self.texts.check_entries(number, stream, named)

    def _bad_entry(self, what: str, stream: str, seq: int, column: str | None = None) -> None:
        self.result.bad(what, stream=stream, seq=seq, table="entries", record_id=f"{stream}:{seq}", column=column)

    def _check_name(self, stream: str, others: "list[tuple[int, object]]", newest: int) -> None:
        """Tell entries that name another stream from a stream that has another name than all its entries say."""
        names = {name for _, name in others}
        if len(others) == newest and len(names) == 1:
            where: dict[str, Any] = {"stream": stream, "table": "streams", "record_id": stream, "column": "name"}
            self.result.bad(f"the stream {stream} is {names.pop()} to all its entries", **where)
            return
        for seq, name in others:
            self._bad_entry(f"the entry names another stream, {name}", stream, seq, column="stream")

    def _check_stream(self, stream: str, first: object, created_at: object, in_order: object, backwards: int | None) -> None:
        """Compare a stream's own row with its entries."""
        where: dict[str, Any] = {"stream": stream, "table": "streams", "record_id": stream}
        if first is None:
            self.result.bad(f"the stream {stream} has no entry", **where)
        elif created_at != first:
            what = f"the stream {stream} is said to have begun at {created_at}, and its first entry is of {first}"
            self.result.bad(what, **where, column="created_at")
        if in_order == 1 and backwards is not None:
            what = "the stream is said to be in order of time, and is not"
            self.result.bad(what, **where, seq=backwards, column="in_order")
        elif in_order != 1 and (in_order != 0 or (backwards is None and first is not None)):
            self.result.bad("the stream is said not to be in order of time, and is", **where, column="in_order")

    # What is derived, and the schema

    def _check_derived(self) -> None:
        """Check what no entry tells: the schema, the indexes, the words that entries are found by, and what the stores derive."""
        with self.result.checking(self._db, "the schema"):
            self._check_schema()
        for what in self._db.check_wal():
            self.result.bad(what)
        with self.result.checking(self._db, "the indexes"):
            # Rows are looked up by their keys: an index that says another key than the row does would hide what became of it.
            for problem in self._db.check_indexes(MOST_PROBLEMS):
                self.result.bad(**problem)
        with self.result.checking(self._db, "the text index", table="entry_text"):
            for problem in self._db.check_text():
                self.result.bad(**problem)
        for name, audit in self._audits.items():
            with self.result.checking(self._db, name):
                for problem in audit(self._classes):
                    self.result.bad(**problem)

    def _check_schema(self) -> None:
        try:
            for problem in self._db.check_schema():
                self.result.bad(**problem)
        except (Denied, ReadOnly) as refusal:
            self.result.unchecked.append(f"the schema: {refusal.message}")

    # The anchors

    def _check_anchors(self, anchors: "Anchors") -> None:
        for stream, seq, expected in anchors.kept():
            self.result.anchored += 1
            number = number_of(self._db, stream) or 0
            row = self._db.one("select hash from entries where pos = :pos", {"pos": number * STREAM_SIZE + seq})
            if row is None:
                self._bad_entry("entries up to the anchored one are cut off", stream, seq)
            elif row[0] != expected:
                self._bad_entry("the entry is not the one that was anchored", stream, seq)


def _named_by(row: "Row") -> "Iterator[tuple[int, str, str, str, object]]":
    """Give the texts that an entry has only the digest of: number, time, kind, column and digest."""
    for name, text, digest in _TEXTS:
        if row[text] is None and row[digest] is not None:
            yield row[SEQ], row[AT], row[KIND], name, row[digest]
