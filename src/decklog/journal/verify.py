"""Verifies a log: the chains link, every row matches its newest entry, and derived data matches its source."""

import json
import os
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

from decklog.core.disk import sync_descriptor
from decklog.core.errors import Denied, Invalid, NotFound, ReadOnly, SchemaTooNew
from decklog.db.base import Database
from decklog.db.search.entries import indexed, sampled
from decklog.db.search.marks import entries_in
from decklog.db.where import suggest_id
from decklog.journal.findings import MOST_PROBLEMS, Problem, Sound, Verification, resumable
from decklog.journal.projections import Projections
from decklog.journal.rows import STREAM_SIZE, StreamHead, find_stream_number, list_heads
from decklog.journal.texts import Texts
from decklog.journal.walk import Stream, Walk, changed_heads, last_positions, list_streams, load_hashes, spans_after
from decklog.records.record import Record
from decklog.records.values import to_json

# The stream, number and hash of an entry that was verified.
Anchor = tuple[str, int, str]


class Anchors:
    """A file outside the log with the last verified head of every stream, one JSON object a line."""

    def __init__(self, path: str) -> None:
        self._path = path

    def kept(self) -> Iterator[Anchor]:
        if not os.path.exists(self._path):
            return
        for number, line in enumerate(self._lines(), 1):
            try:
                head = json.loads(line)
                stream, seq, hash = head["stream"], head["seq"], head["hash"]
                if (type(stream), type(seq), type(hash)) != (str, int, str) or not 0 < seq < STREAM_SIZE:
                    raise ValueError
                yield stream, seq, hash
            except (ValueError, KeyError, TypeError, RecursionError):
                raise Invalid(f"line {number} of {self._path} is not an anchor") from None

    def _lines(self) -> list[str]:
        try:
            with open(self._path, encoding="utf-8", errors="replace") as file:
                return file.readlines()
        except (OSError, ValueError) as problem:
            raise Invalid(f"the anchors in {self._path!r} can't be read: {problem}") from None

    def keep(self, heads: list[StreamHead]) -> None:
        """Replace the file with the current heads, all or nothing."""
        partial = f"{self._path}.partial"
        try:
            with open(partial, "w", encoding="utf-8") as file:
                file.writelines(to_json(head) + "\n" for head in heads)
                file.flush()
                sync_descriptor(file.fileno())
            os.replace(partial, self._path)
        except (OSError, ValueError) as problem:
            raise Invalid(f"the anchors can't be written to {self._path!r}: {problem}") from None


# Yields problems, each as the fields of a Problem.
Audit = Callable[[Mapping[str, type[Record]]], Iterator[dict[str, Any]]]
Check = Callable[["Verifier"], None]

__all__ = ["Problem", "Verification", "Verifier"]


class Verifier:
    """Walks one stream or all of them, in one consistent read."""

    def __init__(
        self,
        db: Database,
        record_classes: Mapping[str, type[Record]],
        audits: dict[str, Audit] | None = None,
        *,
        full: bool = False,
    ) -> None:
        self.db = db
        self.classes = record_classes
        self._audits = audits or {}
        # Whether the words of all entries are compared with the text index, or only a sample.
        self._full = full
        self._verified: list[StreamHead] = []
        self.begin()

    def begin(self) -> None:
        """Start with an empty result."""
        self.result = Verification()
        self.texts = Texts(self.db, self.result)

    def run(self, stream: str | None, anchor: str | None) -> Verification:
        anchors = Anchors(anchor) if anchor else None
        checks: list[Check] = [Verifier.check_chains, *self.checks().values()]
        if stream is not None:
            checks = [partial(Verifier._check_stream, name=stream)]
        if anchors is not None:
            checks.append(partial(Verifier.check_anchors, anchors=anchors))
        self.run_checks(*checks)
        if anchors is not None and self.result.ok:
            anchors.keep(self._verified)
        return self.result

    def run_checks(self, *checks: Check) -> Verification:
        """Run checks in one consistent read, which continues after data that can't be read."""

        def check_all() -> None:
            # A read is repeated from the start if its server was lost.
            self.begin()
            with resumable(self.db):
                for check in checks:
                    check(self)

        self.db.read(check_all)
        return self.result

    def sound(self, check: Check) -> Sound | None:
        """Run one check in a read; return None if it found a problem."""
        alone = Verifier(self.db, self.classes, self._audits, full=self._full)
        with resumable(self.db):
            check(alone)
        return (alone.result.records, alone.result.unchecked) if alone.result.ok else None

    def check_chains(self) -> None:
        """Walk every stream."""
        self._check_heads()
        streams, unreadable = self._streams()
        Walk(self.db, self.result, self.texts).all(streams, unreadable)

    def check_tables(self) -> None:
        """Compare every table with the newest entries."""
        Projections(self.db, self.classes, self.result, self.texts).check_all()
        with self.result.checking(self.db, "the table blobs", table="blobs"):
            self.texts.check_blobs()

    def _streams(self) -> tuple[list[Stream], set[object]]:
        """Return the streams by number, and the numbers of streams with unreadable names."""
        streams: list[Stream] = []
        unreadable: set[object] = set()
        for stream in list_streams(self.db):
            if type(stream.name) is str and type(stream.number) is int:
                streams.append(stream)
            else:
                unreadable.add(stream.number)
                where = {"table": "streams", "record_id": str(stream.name), "column": "name"}
                self.result.bad(f"the stream {stream.name!r} can't be read", **where)
        return streams, unreadable

    def _check_stream(self, name: str) -> None:
        """Walk one stream, and compare its records."""
        stream = next((one for one in self._streams()[0] if one.name == name), None)
        if stream is None:
            raise NotFound(f"there is no stream {name!r}", hint=suggest_id(self.db, "streams", name, column="name"), stream=name)
        Walk(self.db, self.result, self.texts).one(stream)
        Projections(self.db, self.classes, self.result, self.texts).check_stream(name, stream.number)

    # Data outside of entries: the schema, the indexes, the text index, and derived tables

    def checks(self) -> dict[str, Check]:
        """Return all checks except that of the chains, by subject."""
        return {
            "records": Verifier.check_tables,
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
            except (Denied, ReadOnly, SchemaTooNew) as refusal:
                self.result.unchecked.append(f"the schema: {refusal.message}")

    # The anchors

    def check_anchors(self, anchors: Anchors) -> None:
        """Compare the anchors in a file with their entries."""
        archived = self.db.archived()
        kept = [anchor for anchor in anchors.kept() if anchor[0] not in archived]
        if archived and len(kept) < sum(1 for _ in anchors.kept()):
            self.result.leave_to_archives("anchors")
        self.result.anchored += len(kept)
        numbers = {stream: find_stream_number(self.db, stream) for stream, _, _ in kept}
        for problem in changed_heads(self.db, ((stream, numbers[stream], seq, hash) for stream, seq, hash in kept)):
            self.result.bad(**problem)
        # Read in the same transaction: later entries were not verified.
        self._verified = list_heads(self.db)

    # Entries after the anchors

    def run_since(self, anchor: str) -> Verification:
        """Verify the entries after the anchors in a file, and update the file; without a file, verify everything."""
        anchors = Anchors(anchor)
        kept = list(anchors.kept())
        if not kept or self.db.read(self.db.wrong_heads):
            return self.run(None, anchor)
        self.run_checks(partial(Verifier._check_since, anchors=kept))
        if self.result.ok:
            anchors.keep(self._verified)
        return self.result

    def _check_since(self, anchors: list[Anchor]) -> None:
        """Check the entries after the anchors, and compare their records.

        Older entries, indexes and derived tables are not read.
        """
        archived, result = self.db.archived(), self.result
        anchors = [anchor for anchor in anchors if anchor[0] not in archived]
        result.since_anchor, result.anchored = True, len(anchors)
        streams = {stream.number: stream for stream in list_streams(self.db) if type(stream.name) is str}
        numbers = {stream.name: stream.number for stream in streams.values()}
        for problem in changed_heads(self.db, ((name, numbers.get(name), seq, hash) for name, seq, hash in anchors)):
            result.bad(**problem)
        lasts = last_positions(self.db)
        known = [(number, last) for number, last in lasts if number in streams]
        pieces = spans_after(known, {numbers[name]: seq for name, seq, _ in anchors if name in numbers})
        result.streams += len(pieces)
        walk = Walk(self.db, result, self.texts)
        walked = walk.pieces(pieces, streams)
        for number, start, _ in pieces:
            stream, found = streams[number], walked.get(number)
            is_new = start == number * STREAM_SIZE + 1
            if found is not None and (is_new or found.backwards is not None):
                walk.compare(stream, found.first if is_new else stream.created_at, found.backwards)
        filled = {number for number, _ in lasts}
        for number, stream in streams.items():
            if number not in filled:
                where = {"stream": stream.name, "table": "streams", "record_id": stream.name}
                result.bad(f"the stream {stream.name} has no entry", **where)
        projections = Projections(self.db, self.classes, result, self.texts)
        for number, start, _ in pieces:
            projections.check_stream(streams[number].name, number, start=start)
        # Checks whose cost does not grow with the log.
        self._check_schema()
        self._check_wal()
        hashes = load_hashes(self.db, [last for _, last in known])
        self._verified = [
            {"stream": streams[number].name, "seq": last % STREAM_SIZE, "hash": hashes[last]} for number, last in known
        ]
