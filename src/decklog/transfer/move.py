"""Moving a log to another engine or another place, entry by entry, while others go on reading it."""

import os
from dataclasses import asdict, dataclass, field

from decklog.errors import Conflict, Damaged, Invalid
from decklog.transfer.progress import Progress, silent
from decklog.transfer.reading import MOST_CHARACTERS, MOST_ENTRIES, digests_of, entries_of, has_blob, size_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from decklog.app import Decklog
    from decklog.stores.verify import Verification

    Head = dict[str, Any]

_MOST_PASSES = 5


@dataclass(kw_only=True)
class Moved:
    """What is now in the target too. `behind` counts what the source got in the meantime."""

    streams: int = 0
    entries: int = 0
    already: int = 0
    blobs: int = 0
    behind: int = 0
    verified: int = 0
    warnings: list[str] = field(default_factory=list)

    def as_dict(self) -> "dict[str, Any]":
        return asdict(self)


class Move:
    """Copies what the target lacks, then proves both logs. Killed at any moment, it goes on where it was."""

    def __init__(self, source: "Decklog", target: "Decklog", progress: Progress = silent) -> None:
        if is_same(source.db.target, target.db.target):
            raise Invalid("the log can't be moved onto itself", hint="Name another target.")
        self._source = source
        self._target = target
        self._progress = progress
        self._done = Moved()

    def run(self, *, prove: bool = True) -> Moved:
        with self._target.db.filling():
            for _ in range(_MOST_PASSES):
                heads = self._source.journal.heads()
                self._copy(heads)
                self._done.behind = self._behind(heads)
                if not self._done.behind:
                    break
        self._done.streams = len(heads)
        # The running sums of budgets are in no entry: they are made from the charges that came.
        self._target.budgets.rebuild()
        self._compare(heads)
        if prove:
            self._prove()
        return self._done

    def _behind(self, copied: "list[Head]") -> int:
        """Count what the source got since its heads were read."""
        now = sum(int(head["seq"]) for head in self._source.journal.heads())
        return now - sum(int(head["seq"]) for head in copied)

    # Copying

    def _copy(self, heads: "list[Head]") -> None:
        # Blobs first: an entry that is in the target never names one that is still to come.
        for digest in digests_of(self._source):
            if not has_blob(self._target, digest):
                self._copy_blob(digest)
        here = {head["stream"]: head for head in self._target.journal.heads()}
        lacking = [(head, self._start(head, here.get(head["stream"]))) for head in heads]
        already, whole = sum(start for _, start in lacking), sum(head["seq"] for head in heads)
        self._done.already = self._done.already or already
        for batch in _even(self._batches(lacking)):
            self._done.entries += self._target.journal.receive(batch)
            self._progress("moving entries", self._done.already + self._done.entries, whole)

    def _copy_blob(self, digest: str) -> None:
        for _, content in self._source.journal.blobs([digest]):
            self._target.journal.receive_blob(digest, content)
            self._done.blobs += 1
            self._progress("moving blobs", self._done.blobs, 0)

    def _batches(self, lacking: "list[tuple[Head, int]]") -> "Iterator[list[dict[str, Any]]]":
        for head, start in lacking:
            yield from entries_of(self._source, head["stream"], after=start, until=head["seq"])

    def _start(self, head: "Head", here: "Head | None") -> int:
        """Say after which entry to go on; where the two meet they must have the same entry."""
        if here is None:
            return 0
        meeting = self._source.journal.given_out(head["stream"], after=here["seq"] - 1, limit=1)
        if not meeting or meeting[0]["hash"] != here["hash"]:
            raise Conflict(
                f"{head['stream']} in the target is not the beginning of {head['stream']} in the source",
                hint="It was written there since, or is another log's. Move into an empty target.",
                stream=head["stream"],
                source=head["seq"],
                target=here["seq"],
            )
        return int(here["seq"])

    # Proving

    def _compare(self, heads: "list[Head]") -> None:
        """Compare the heads; a head's hash stands for every entry before it."""
        there = {head["stream"]: head["hash"] for head in self._target.journal.heads()}
        for head in heads:
            if there.get(head["stream"]) != head["hash"]:
                raise Damaged(f"{head['stream']} ended differently in the target", stream=head["stream"])

    def _prove(self) -> None:
        self._progress("verifying the target", 0, 0)
        there = self._target.journal.verify()
        if not there.ok:
            raise Damaged(f"the target does not verify: {_first(there)}", hint="The source is as it was.")
        self._progress("verifying the source", 0, 0)
        here = self._source.journal.verify()
        if not here.ok:
            self._done.warnings.append(f"the source does not verify, and was left as it is: {_first(here)}")
        self._done.verified = there.entries


def _first(result: "Verification") -> str:
    assert result.first is not None
    place = f"{result.first.stream}:{result.first.seq} " if result.first.stream else ""
    return f"{place}{result.first.what}"


def _even(batches: "Iterator[list[dict[str, Any]]]") -> "Iterator[list[dict[str, Any]]]":
    """Join the batches of small streams, so that a thousand of them do not cost a thousand commits."""
    waiting: list[dict[str, Any]] = []
    for batch in batches:
        if (waiting and len(waiting) + len(batch) > MOST_ENTRIES) or sum(map(size_of, waiting)) > MOST_CHARACTERS // 2:
            yield waiting
            waiting = []
        waiting = waiting + batch
    if waiting:
        yield waiting


def is_same(one: str, other: str) -> bool:
    """Say whether two targets are one log, as far as their names tell."""
    if "://" in one or "://" in other:
        return one == other
    return os.path.realpath(one) == os.path.realpath(other)
