"""Proving a log: the chains link, every row is what its newest entry says, and what is derived is what it is derived from."""

from decklog.errors import Denied, NotFound, ReadOnly
from decklog.stores.journal.anchors import Anchors
from decklog.stores.journal.findings import MOST_PROBLEMS, Problem, Verification, resumable
from decklog.stores.journal.projections import Projections
from decklog.stores.journal.rows import STREAM_SIZE, heads, number_of
from decklog.stores.journal.texts import Texts
from decklog.stores.journal.walk import Stream, Walk

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from decklog.db.base import Database
    from decklog.records import Record

    # Name what is in the log and should not be, each as the fields of a problem; each goes by the name of what it looks at.
    Audit = Callable[[dict[str, type[Record]]], Iterator[dict[str, Any]]]

__all__ = ["Problem", "Verification", "Verifier"]


class Verifier:
    """Walks one stream or all of them, in one consistent read."""

    def __init__(
        self, db: "Database", record_classes: "dict[str, type[Record]]", audits: "dict[str, Audit] | None" = None
    ) -> None:
        self._db = db
        self._classes = record_classes
        self._audits = audits or {}
        self._begin()

    def _begin(self) -> None:
        self.result = Verification()
        self.texts = Texts(self._db, self.result)

    def run(self, stream: str | None, anchor: str | None) -> Verification:
        anchors = Anchors(anchor) if anchor else None
        self._read(lambda: self._check(stream, anchors))
        if anchors is not None and self.result.ok:
            anchors.keep(self._db.read(lambda: heads(self._db)))
        return self.result

    def run_chains(self) -> Verification:
        """Walk every stream, and leave the tables aside."""
        self._read(self._check_chains)
        return self.result

    def run_entries(self) -> Verification:
        """Walk every stream and compare every table with it, and leave what is derived aside."""
        self._read(self._check_entries)
        return self.result

    def run_tables(self) -> Verification:
        """Compare every table with the newest entries, and leave the chains aside."""
        self._read(self._check_tables)
        return self.result

    def _read(self, job: "Callable[[], None]") -> None:
        """Check in one consistent read, which goes on where something can't be read."""

        def check() -> None:
            # A read whose server went away is asked again, from its beginning.
            self._begin()
            with resumable(self._db):
                job()

        self._db.read(check)

    def _check(self, stream: str | None, anchors: "Anchors | None") -> None:
        if stream is None:
            self._check_entries()
            self._check_derived()
        else:
            self._check_stream(stream)
        if anchors is not None:
            self._check_anchors(anchors)

    def _check_entries(self) -> None:
        self._check_chains()
        self._check_tables()

    def _check_chains(self) -> None:
        streams, unreadable = self._streams()
        Walk(self._db, self.result, self.texts).all(streams, unreadable)

    def _check_tables(self) -> None:
        Projections(self._db, self._classes, self.result, self.texts).check_all()
        with self.result.checking(self._db, "the table blobs", table="blobs"):
            self.texts.check_blobs()

    def _streams(self) -> "tuple[list[Stream], set[object]]":
        """List the streams in the order of their numbers, and the numbers of those whose names can't be read."""
        streams: list[Stream] = []
        unreadable: set[object] = set()
        for row in self._db.each_as_is("select name, no, created_at, in_order from streams order by no", {}):
            stream = Stream(*row)
            if type(stream.name) is str and type(stream.number) is int:
                streams.append(stream)
            else:
                unreadable.add(stream.number)
                where = {"table": "streams", "record_id": str(stream.name), "column": "name"}
                self.result.bad(f"the stream {stream.name!r} can't be read", **where)
        return streams, unreadable

    def _check_stream(self, name: str) -> None:
        """Walk one stream, and compare the records that it tells of."""
        stream = next((one for one in self._streams()[0] if one.name == name), None)
        if stream is None:
            from decklog.db.near_ids import meant

            raise NotFound(f"there is no stream {name!r}", hint=meant(self._db, "streams", name, column="name"), stream=name)
        Walk(self._db, self.result, self.texts).one(stream)
        Projections(self._db, self._classes, self.result, self.texts).check_stream(name, stream.number)

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

    def _bad_entry(self, what: str, stream: str, seq: int) -> None:
        self.result.bad(what, stream=stream, seq=seq, table="entries", record_id=f"{stream}:{seq}")
