"""Verify a log in short, resumable steps, each in its own read transaction.

The heads of the verified chains are saved. The next run compares these heads and verifies only later entries. Everything else is
compared anew, because records may have changed since. After any mismatch, the whole log is verified in one read, which lists all
problems.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from decklog.journal.findings import Verification, resumable
from decklog.journal.rows import STREAM_SIZE, StreamHead
from decklog.journal.texts import Texts
from decklog.journal.walk import Walk, changed_heads, last_positions, list_streams, spans_after
from decklog.log import Decklog

# Of a stream: the last verified entry, its hash, the time of the first entry, and whether times go backwards.
Head = tuple[int, str, str, bool]

# Entries in one step: about a second's work.
_STEP = 20_000
CHAINS = "chains"


class VerifySteps:
    """Verifies a log. `known` are the heads that earlier steps have reported."""

    def __init__(self, log: Decklog, known: Mapping[str, Any] | None = None, *, full: bool = False) -> None:
        self._db = log.db
        self._journal = log.journal
        self._verifier = log.journal.verifier(full=full)
        self._heads: dict[int, Head] = {int(number): tuple(head) for number, head in (known or {}).items()}
        self._compared: list[tuple[int, list[str]]] = []

    def run(self, report: Callable[[dict[str, Any]], object]) -> Verification:
        """Run the remaining steps and report each: its heads, and how many steps are done of how many."""
        self._db.read(self._skip_archived)
        lost, anchored = self._db.read(lambda: list(self._find_changed_heads())), len(self._heads)
        # Steps only verify up to the heads.
        are_heads_sound = not self._db.read(self._db.wrong_heads)
        if are_heads_sound and not lost and self._are_chains_sound(report) and self._is_rest_sound(report):
            result = Verification(anchored=anchored)
            if self._db.read(lambda: self._finish(result)):
                result.add(self._compared)
                return result
        # Verify fully: another sample of the text index might miss the problem.
        whole = self._journal.verifier(full=True).run(None, None)
        whole.anchored = anchored
        for problem in lost:
            whole.bad(**problem)
        return whole

    def _skip_archived(self) -> None:
        if archived := self._db.archived():
            for number, name in self._db.rows("select no, name from streams", {})[1]:
                if name in archived:
                    self._heads.pop(number, None)

    def _find_changed_heads(self) -> Iterator[dict[str, Any]]:
        """Yield the heads that have changed since they were verified."""
        names = {stream.number: stream.name for stream in list_streams(self._db)}
        heads = sorted(self._heads.items())
        yield from changed_heads(self._db, ((str(names.get(number, number)), number, *head[:2]) for number, head in heads))

    def heads(self) -> list[StreamHead]:
        """Return the last verified entry of each stream, in the form of an anchor file."""
        names = {stream.number: stream.name for stream in self._db.read(lambda: list(list_streams(self._db)))}
        return [{"stream": names[number], "seq": head[0], "hash": head[1]} for number, head in self._heads.items()]

    # The chains

    def _are_chains_sound(self, report: Callable[[dict[str, Any]], object]) -> bool:
        while True:
            found = self._db.read(self._walk_next)
            if found is None:
                return False
            walked, done, whole = found
            heads = {str(number): self._heads[number] for number in walked}
            report({"what": CHAINS, "done": done, "whole": whole, "heads": heads})
            if not walked:
                return True

    def _walk_next(self) -> tuple[list[int], int, int] | None:
        """Verify the next entries; return their streams, the done and the total count, or None after a problem."""
        lasts = last_positions(self._db)
        pieces = spans_after(lasts, {number: head[0] for number, head in self._heads.items()}, _STEP)
        streams = {stream.number: stream for stream in list_streams(self._db)}
        if not all(number in streams for number, _ in lasts):
            return None
        result = Verification()
        with resumable(self._db):
            walked = Walk(self._db, result, Texts(self._db, result)).pieces(pieces, streams)
        if not result.ok:
            return None
        for number, _, last in pieces:
            seq, hash, first, backwards = walked[number]
            if seq != last % STREAM_SIZE:
                return None
            _, _, first_at, goes_back = self._heads.get(number, (0, "", str(first), False))
            self._heads[number] = (seq, hash, first_at, goes_back or backwards is not None)
        whole = sum(last % STREAM_SIZE for _, last in lasts)
        return [number for number, _, _ in pieces], sum(head[0] for head in self._heads.values()), whole

    # The rest

    def _is_rest_sound(self, report: Callable[[dict[str, Any]], object]) -> bool:
        checks = self._verifier.checks()
        for done, (name, check) in enumerate(checks.items(), 1):
            came = self._db.read(lambda check=check: self._verifier.sound(check))  # type: ignore[misc]
            if came is None:
                return False
            self._compared.append(came)
            report({"what": name, "done": done, "whole": len(checks)})
        return True

    def _finish(self, result: Verification) -> bool:
        """Verify entries written meanwhile, and compare the stream rows and the entry count with the verified chains."""
        found = self._walk_next()
        while found is not None and found[0]:
            found = self._walk_next()
        if found is None or self._db.one("select count(*) from entries", {}) != (found[1],):
            return False
        walk, streams = Walk(self._db, result, Texts(self._db, result)), list(list_streams(self._db))
        for stream in streams:
            _, _, first, goes_back = self._heads.get(stream.number, (0, "", None, False))
            walk.compare(stream, first, 1 if goes_back else None)
        result.entries, result.streams = found[1], len(streams)
        return result.ok and len(streams) == len(self._heads)
