"""Copy a log to another file or server, entry by entry, and verify the copy."""

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
from decklog.transfer.reading import (
    MOST_CHARACTERS,
    MOST_ENTRIES,
    Progress,
    WorkResult,
    no_progress,
    read_blob_digests,
    read_rows,
)

# A stream, the number and hash of the entry to continue after, and the number of the last entry.
MissingEntries = tuple[str, int, str, int]


_HINT = "The source is as it was. Move it into an empty target."


def _raise_if_unsound(result: Verification) -> None:
    if result.first is not None:
        place = f"{result.first.stream}:{result.first.seq} " if result.first.stream else ""
        raise Damaged(f"the target does not verify: {place}{result.first.what}", hint=_HINT)


_MOST_PASSES = 5


@dataclass(kw_only=True)
class MoveResult(WorkResult):
    """The result of a move. `behind` counts entries that the source got in the meantime."""

    streams: int = 0
    entries: int = 0
    already: int = 0
    blobs: int = 0
    behind: int = 0
    verified: int = 0
    warnings: list[str] = field(default_factory=list)


class Move:
    """Copies what the target lacks, then verifies the target. After a kill, a second run continues."""

    def __init__(self, source: Decklog, target: Decklog, progress: Progress = no_progress) -> None:
        if is_same(source.db.target, target.db.target):
            raise Invalid("the log can't be moved onto itself", hint="Name another target.")
        self._source = source
        self._target = target
        self._progress = progress
        self._result = MoveResult()

    def run(self, *, prove: bool = True) -> MoveResult:
        refuse_archived(self._source)
        heads = self._copy_all()
        self._result.streams = len(heads)
        # Budget sums and the memory's index are not in entries, so rebuild them from the records.
        self._target.rebuild()
        if prove:
            self._result.verified = self._verify_target(heads)
        else:
            self._compare_heads(heads)
        return self._result

    def _copy_all(self) -> list[StreamHead]:
        for _ in range(_MOST_PASSES):
            heads = self._source.journal.heads()
            self._copy_blobs()
            self._copy_entries(heads)
            self._result.behind = self._count_new_entries(heads)
            if not self._result.behind:
                break
        return heads

    def _count_new_entries(self, copied: list[StreamHead]) -> int:
        """Count the entries that the source got since its heads were read."""
        now = sum(int(head["seq"]) for head in self._source.journal.heads())
        return now - sum(int(head["seq"]) for head in copied)

    # Copy blobs first: an entry in the target must never name a missing blob.

    def _copy_blobs(self) -> None:
        for digests in read_blob_digests(self._source):
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
            self._result.blobs += len(blobs)
            self._progress("moving blobs", self._result.blobs, 0)

    # Entries

    def _copy_entries(self, heads: list[StreamHead]) -> None:
        here = {head["stream"]: head for head in self._target.journal.heads()}
        lacking = [(head["stream"], *self._find_start(head, here.get(head["stream"])), int(head["seq"])) for head in heads]
        already, whole = sum(start for _, start, _, _ in lacking), sum(head["seq"] for head in heads)
        self._result.already = self._result.already or already
        for batch in _join_small_ranges(_entry_ranges(self._source, lacking)):
            self._result.entries += Replication.of(self._target).take(batch)
            self._progress("moving entries", self._result.already + self._result.entries, whole)

    def _find_start(self, head: StreamHead, here: StreamHead | None) -> tuple[int, str]:
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

    # Verification
    def _verify_target(self, heads: list[StreamHead]) -> int:
        """Verify that the target has everything up to these heads; return the number of verified entries."""
        self._progress("verifying the target", 0, 0)
        walked = self._target.db.read(lambda: self._verify_chains(heads))
        _raise_if_unsound(Verifier(self._target.db, self._target.record_classes()).run_checks(Verifier.check_tables))
        self._source.db.read(lambda: self._target.db.read(lambda: self._check_texts(heads)))
        self._check_blobs(heads)
        return walked

    def _verify_chains(self, heads: list[StreamHead]) -> int:
        result = Verifier(self._target.db, self._target.record_classes()).run_checks(Verifier.check_chains)
        _raise_if_unsound(result)
        self._compare_heads(heads)
        return result.entries

    def _compare_heads(self, heads: list[StreamHead]) -> None:
        """Compare the heads. The hash of a head covers all entries of a verified chain."""
        there = {head["stream"]: head["hash"] for head in self._target.journal.heads()}
        for head in heads:
            if there.get(head["stream"]) != head["hash"]:
                raise Damaged(f"{head['stream']} ended differently in the target", hint=_HINT, stream=head["stream"])

    def _check_blobs(self, heads: list[StreamHead]) -> None:
        """Check that the target has all blobs of the source, unless the source has changed since."""
        for digests in read_blob_digests(self._source):
            lacking = Replication.of(self._target).find_missing_blobs(digests)
            if lacking and self._source.journal.heads() == heads:
                raise Damaged(f"blob {lacking[0]} did not arrive in the target", hint=_HINT, digest=lacking[0])

    def _check_texts(self, heads: list[StreamHead]) -> None:
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


def _entry_ranges(log: Decklog, lacking: Iterable[MissingEntries]) -> Iterator[EntryRange]:
    """Yield the missing entries, each checked against the one before it."""
    for stream, after, previous, until in lacking:
        for rows in read_rows(log, stream, after=after, until=until):
            yield EntryRange.checked(stream, previous, rows)
            previous = rows[-1][HASH]


def _join_small_ranges(entry_ranges: Iterator[EntryRange]) -> Iterator[list[EntryRange]]:
    """Join the ranges of small streams, so that a thousand of them do not cost a thousand commits."""
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
    """Return whether two targets are the same log, by their names."""
    if "://" in one or "://" in other:
        return one == other
    return os.path.realpath(one) == os.path.realpath(other)
