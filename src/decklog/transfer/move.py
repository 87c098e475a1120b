"""Move a log to another engine or another place, entry by entry, and prove that it arrived."""

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from decklog.core.errors import Conflict, Damaged, Invalid
from decklog.journal import chain
from decklog.journal.chain import HASH, SEQ, EntryRange
from decklog.journal.replication import Replication
from decklog.journal.rows import StreamHead
from decklog.journal.verify import Verification, Verifier
from decklog.log import Decklog
from decklog.transfer.archive import refuse_archived
from decklog.transfer.reading import MOST_CHARACTERS, MOST_ENTRIES, Progress, WorkResult, digest_batches_of, rows_of, silent

# A stream, the number and hash of the entry to go on after, and the number of the last that is wanted.
Lacking = tuple[str, int, str, int]


_HINT = "The source is as it was. Move it into an empty target."


def _refuse(result: Verification) -> None:
    if result.first is not None:
        place = f"{result.first.stream}:{result.first.seq} " if result.first.stream else ""
        raise Damaged(f"the target does not verify: {place}{result.first.what}", hint=_HINT)


_MOST_PASSES = 5


@dataclass(kw_only=True)
class Moved(WorkResult):
    """What is now in the target too. `behind` counts what the source got in the meantime."""

    streams: int = 0
    entries: int = 0
    already: int = 0
    blobs: int = 0
    behind: int = 0
    verified: int = 0
    warnings: list[str] = field(default_factory=list)


class Move:
    """Copies what the target lacks, then proves that it arrived. Killed at any moment, it goes on where it was."""

    def __init__(self, source: Decklog, target: Decklog, progress: Progress = silent) -> None:
        if is_same(source.db.target, target.db.target):
            raise Invalid("the log can't be moved onto itself", hint="Name another target.")
        self._source = source
        self._target = target
        self._progress = progress
        self._done = Moved()

    def run(self, *, prove: bool = True) -> Moved:
        refuse_archived(self._source)
        heads = self._copy_all()
        self._done.streams = len(heads)
        # The running sums of budgets and the memory's index are in no entry: they are made from the records that came.
        self._target.rebuild()
        if prove:
            self._done.verified = self._prove(heads)
        else:
            self._compare(heads)
        return self._done

    def _copy_all(self) -> list[StreamHead]:
        for _ in range(_MOST_PASSES):
            heads = self._source.journal.heads()
            self._copy_blobs()
            self._copy(heads)
            self._done.behind = self._behind(heads)
            if not self._done.behind:
                break
        return heads

    def _behind(self, copied: list[StreamHead]) -> int:
        """Count what the source got since its heads were read."""
        now = sum(int(head["seq"]) for head in self._source.journal.heads())
        return now - sum(int(head["seq"]) for head in copied)

    # Blobs come first: an entry that is in the target never names one that is still to come.

    def _copy_blobs(self) -> None:
        for digests in digest_batches_of(self._source):
            waiting: list[tuple[str, bytes]] = []
            for blob in Replication.of(self._source).blobs(Replication.of(self._target).find_missing_blobs(digests)):
                waiting.append(blob)
                if sum(len(content) for _, content in waiting) > MOST_CHARACTERS:
                    self._take_blobs(waiting)
                    waiting = []
            self._take_blobs(waiting)

    def _take_blobs(self, blobs: list[tuple[str, bytes]]) -> None:
        if blobs:
            Replication.of(self._target).import_blobs(blobs)
            self._done.blobs += len(blobs)
            self._progress("moving blobs", self._done.blobs, 0)

    # Entries

    def _copy(self, heads: list[StreamHead]) -> None:
        here = {head["stream"]: head for head in self._target.journal.heads()}
        lacking = [(head["stream"], *self._start(head, here.get(head["stream"])), int(head["seq"])) for head in heads]
        already, whole = sum(start for _, start, _, _ in lacking), sum(head["seq"] for head in heads)
        self._done.already = self._done.already or already
        for batch in _even(_entry_ranges(self._source, lacking)):
            self._done.entries += Replication.of(self._target).take(batch)
            self._progress("moving entries", self._done.already + self._done.entries, whole)

    def _start(self, head: StreamHead, here: StreamHead | None) -> tuple[int, str]:
        """Return the entry to continue after, and its hash. Raise Conflict if the two logs differ there."""
        if here is None:
            return 0, chain.START
        meeting = Replication.of(self._source).rows_after(head["stream"], here["seq"] - 1, 1)
        if not meeting or meeting[0][SEQ] != here["seq"] or meeting[0][HASH] != here["hash"]:
            raise Conflict(
                f"{head['stream']} in the target is not the beginning of {head['stream']} in the source",
                hint="It was written there since, or is another log's. Move into an empty target.",
                stream=head["stream"],
                source=head["seq"],
                target=here["seq"],
            )
        return int(here["seq"]), str(here["hash"])

    # Proof

    def _prove(self, heads: list[StreamHead]) -> int:
        """Prove that the target has all that the source had up to these heads; return how many entries were read."""
        self._progress("verifying the target", 0, 0)
        walked = self._target.db.read(lambda: self._walk(heads))
        _refuse(Verifier(self._target.db, self._target.record_classes()).run_checks(Verifier.check_tables))
        self._source.db.read(lambda: self._target.db.read(lambda: self._look_for_texts(heads)))
        self._look_for_blobs(heads)
        return walked

    def _walk(self, heads: list[StreamHead]) -> int:
        result = Verifier(self._target.db, self._target.record_classes()).run_checks(Verifier.check_chains)
        _refuse(result)
        self._compare(heads)
        return result.entries

    def _compare(self, heads: list[StreamHead]) -> None:
        """Compare the heads; where every entry was walked, a head's hash covers all of them."""
        there = {head["stream"]: head["hash"] for head in self._target.journal.heads()}
        for head in heads:
            if there.get(head["stream"]) != head["hash"]:
                raise Damaged(f"{head['stream']} ended differently in the target", hint=_HINT, stream=head["stream"])

    def _look_for_blobs(self, heads: list[StreamHead]) -> None:
        """Check that the target has all blobs of the source, except of entries after these heads."""
        for digests in digest_batches_of(self._source):
            lacking = Replication.of(self._target).find_missing_blobs(digests)
            if lacking and self._source.journal.heads() == heads:
                raise Damaged(f"blob {lacking[0]} did not arrive in the target", hint=_HINT, digest=lacking[0])

    def _look_for_texts(self, heads: list[StreamHead]) -> None:
        """Check that the target has every text that the source has."""
        for head in heads:
            stream = head["stream"]
            in_source = Replication.of(self._source).find_missing_texts(stream)
            latest = 0
            for seq in Replication.of(self._target).find_missing_texts(stream):
                while latest < seq:
                    latest = next(in_source, seq + 1)
                if latest != seq:
                    raise Damaged(
                        f"a text of entry {stream}:{seq} did not arrive in the target", hint=_HINT, stream=stream, seq=seq
                    )


def _entry_ranges(log: Decklog, lacking: Iterable[Lacking]) -> Iterator[EntryRange]:
    """Yield what is lacking, each entry checked against the one before it."""
    for stream, after, previous, until in lacking:
        for rows in rows_of(log, stream, after=after, until=until):
            yield EntryRange.checked(stream, previous, rows)
            previous = rows[-1][HASH]


def _even(entry_ranges: Iterator[EntryRange]) -> Iterator[list[EntryRange]]:
    """Join the stretches of small streams, so that a thousand of them do not cost a thousand commits."""
    waiting: list[EntryRange] = []
    entries = size = 0
    for entry_range in entry_ranges:
        if waiting and (entries + len(entry_range.rows) > MOST_ENTRIES or size > MOST_CHARACTERS // 2):
            yield waiting
            waiting, entries, size = [], 0, 0
        waiting.append(entry_range)
        entries, size = entries + len(entry_range.rows), size + entry_range.size
    if waiting:
        yield waiting


def is_same(one: str, other: str) -> bool:
    """Return whether two targets are one log, as far as their names tell."""
    if "://" in one or "://" in other:
        return one == other
    return os.path.realpath(one) == os.path.realpath(other)
