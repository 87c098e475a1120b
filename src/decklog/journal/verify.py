"""Verifies a log: the chains link, every row matches its newest entry, and derived data matches its source."""

from functools import partial
from typing import TYPE_CHECKING

from decklog.core.errors import Denied, NotFound, ReadOnly
from decklog.db.search.entries_check import indexed, sampled
from decklog.db.search.marks import entries_in
from decklog.journal.anchors import Anchors
from decklog.journal.findings import MOST_PROBLEMS, Problem, Verification, resumable
from decklog.journal.projections import Projections
from decklog.journal.rows import STREAM_SIZE, heads, number_of
from decklog.journal.texts import Texts
from decklog.journal.walk import ALL, Stream, Walk, joined_up, sound, streams_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from decklog.db.base import Database
    from decklog.journal.findings import Sound
    from decklog.records.record import Record
    from decklog.stores.results.journal import StreamHead

    # Name what is in the log and should not be, each as the fields of a problem; each goes by the name of what it looks at.
    Audit = Callable[[dict[str, type[Record]]], Iterator[dict[str, Any]]]
    Check = Callable[["Verifier"], None]

__all__ = ["Problem", "Verification", "Verifier"]

# What is said of a head that was kept when it was verified, and is not there any more as it was.
CUT_OFF, CHANGED = "entries up to the anchored one are cut off", "the entry is not the one that was anchored"


class Verifier:
    """Walks one stream or all of them, in one consistent read."""

    def __init__(
        self,
        db: "Database",
        record_classes: "dict[str, type[Record]]",
        audits: "dict[str, Audit] | None" = None,
        *,
        full: bool = False,
    ) -> None:
        self.db = db
        self.classes = record_classes
        self._audits = audits or {}
        # Whether the words of all entries are compared with the text index, however many there are.
        self._full = full
        self._verified: list[StreamHead] = []
        self.begin()

    def begin(self) -> None:
        """Start with an empty result."""
        self.result = Verification()
        self.texts = Texts(self.db, self.result)

    def run(self, stream: str | None, anchor: str | None) -> Verification:
        anchors = Anchors(anchor) if anchor else None
        if stream is None:
            self._read_all([Verifier._check_chains, *self.checks().values()], anchors)
        else:
            self._read(lambda: self._check_stream(stream, anchors))
        if anchors is not None and self.result.ok:
            anchors.keep(self._verified)
        return self.result

    def run_chains(self) -> Verification:
        """Walk every stream, and leave the tables aside."""
        self._read_all([Verifier._check_chains])
        return self.result

    def run_entries(self) -> Verification:
        """Walk every stream and compare every table with it, and leave what is derived aside."""
        self._read_all([Verifier._check_chains, Verifier._check_tables])
        return self.result

    def run_tables(self) -> Verification:
        """Compare every table with the newest entries, and leave the chains aside."""
        self._read(self._check_tables)
        return self.result

    def _read(self, job: "Callable[[], None]") -> None:
        """Check in one consistent read, which goes on where something can't be read."""

        def check() -> None:
            # A read whose server went away is repeated from its beginning.
            self.begin()
            with resumable(self.db):
                job()

        self.db.read(check)

    def _read_all(self, checks: "list[Check]", anchors: "Anchors | None" = None) -> None:
        """Check one thing after the other in one consistent read."""
        self._read(lambda: self._check_one_by_one(checks, anchors))

    def _check_one_by_one(self, checks: "list[Check]", anchors: "Anchors | None") -> None:
        for check in checks:
            check(self)
        if anchors is not None:
            self._check_anchors(anchors)

    def sound(self, check: "Check") -> "Sound | None":
        """Look at one thing, in a read; None where anything is not as it should be."""
        alone = Verifier(self.db, self.classes, self._audits, full=self._full)
        with resumable(self.db):
            check(alone)
        return (alone.result.records, alone.result.unchecked) if alone.result.ok else None

    def _check_chains(self) -> None:
        self._check_heads()
        if joined_up(self.db, [sound(self.db, *ALL)], self.result):
            return
        streams, unreadable = self._streams()
        Walk(self.db, self.result, self.texts).all(streams, unreadable)

    def _check_tables(self) -> None:
        Projections(self.db, self.classes, self.result, self.texts).check_all()
        with self.result.checking(self.db, "the table blobs", table="blobs"):
            self.texts.check_blobs()

    def _streams(self) -> "tuple[list[Stream], set[object]]":
        """List the streams in the order of their numbers, and the numbers of those whose names can't be read."""
        streams: list[Stream] = []
        unreadable: set[object] = set()
        for stream in streams_of(self.db):
            if type(stream.name) is str and type(stream.number) is int:
                streams.append(stream)
            else:
                unreadable.add(stream.number)
                where = {"table": "streams", "record_id": str(stream.name), "column": "name"}
                self.result.bad(f"the stream {stream.name!r} can't be read", **where)
        return streams, unreadable

    def _check_stream(self, name: str, anchors: "Anchors | None") -> None:
        """Walk one stream, and compare its records."""
        stream = next((one for one in self._streams()[0] if one.name == name), None)
        if stream is None:
            from decklog.db.near_ids import meant

            raise NotFound(f"there is no stream {name!r}", hint=meant(self.db, "streams", name, column="name"), stream=name)
        Walk(self.db, self.result, self.texts).one(stream)
        Projections(self.db, self.classes, self.result, self.texts).check_stream(name, stream.number)
        if anchors is not None:
            self._check_anchors(anchors)

    # What is in no entry: the schema, the indexes, the text index, and what the stores derive

    def checks(self) -> "dict[str, Check]":
        """List all checks but that of the chains, by what they look at."""
        return {
            "records": Verifier._check_tables,
            "the schema": Verifier._check_schema,
            "the write-ahead log": Verifier._check_wal,
            "the indexes": Verifier._check_indexes,
            "the text index": Verifier._check_text,
            **{name: partial(Verifier._check_derived, name=name) for name in self._audits},
        }

    def _check_heads(self) -> None:
        with self.result.checking(self.db, "the heads of streams", table="streams"):
            for name in self.db.wrong_heads():
                where = {"table": "streams", "record_id": str(name), "column": "head_seq"}
                self.result.bad(f"the stream {name} does not have its last entry as its head", stream=str(name), **where)

    def _check_wal(self) -> None:
        damaged, cut_short = self.db.check_wal()
        for what in damaged:
            self.result.bad(what)
        self.result.unchecked += cut_short

    def _check_indexes(self) -> None:
        with self.result.checking(self.db, "the indexes"):
            # Rows are looked up by their keys: an index with another key than the row would hide its changes.
            for problem in self.db.check_indexes(MOST_PROBLEMS):
                self.result.bad(**problem)

    def _check_text(self) -> None:
        with self.result.checking(self.db, "the text index", table="entry_text"):
            pieces = None if self._full else sampled(self.db)
            for problem in self.db.check_text(pieces):
                self.result.bad(**problem)
            if pieces is not None:
                left = entries_in(indexed(self.db)) - entries_in(pieces)
                self.result.unchecked.append(
                    f"the words of {left:,} entries in the text index; compare them: decklog verify --full"
                )

    def _check_derived(self, name: str) -> None:
        with self.result.checking(self.db, name):
            archived = self.db.archived()
            for problem in self._audits[name](self.classes):
                if problem.get("record_id") in archived:
                    self.result.leave_to_archives(name)
                else:
                    self.result.bad(**problem)

    def _check_schema(self) -> None:
        with self.result.checking(self.db, "the schema"):
            try:
                for problem in self.db.check_schema():
                    self.result.bad(**problem)
            except (Denied, ReadOnly) as refusal:
                self.result.unchecked.append(f"the schema: {refusal.message}")

    # The anchors

    def run_anchors(self, anchor: str) -> Verification:
        """Compare the anchors in a file with the entries in their places."""
        self._read(lambda: self._check_anchors(Anchors(anchor)))
        return self.result

    def check_file(self) -> None:
        """Check what does not grow with the log: the schema and the write-ahead log."""
        self._check_schema()
        self._check_wal()

    def _check_anchors(self, anchors: "Anchors") -> None:
        archived = self.db.archived()
        for stream, seq, expected in anchors.kept():
            if stream in archived:
                self.result.leave_to_archives("anchors")
                continue
            self.result.anchored += 1
            number = number_of(self.db, stream) or 0
            row = self.db.one("select hash from entries where pos = :pos", {"pos": number * STREAM_SIZE + seq})
            if row is None:
                self._bad_entry(CUT_OFF, stream, seq)
            elif row[0] != expected:
                self._bad_entry(CHANGED, stream, seq)
        # In the same read: what is written later was not verified.
        self._verified = heads(self.db)

    def _bad_entry(self, what: str, stream: str, seq: int) -> None:
        self.result.bad(what, stream=stream, seq=seq, table="entries", record_id=f"{stream}:{seq}")
