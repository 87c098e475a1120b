"""Verifying a log step by step: each is a short read that reports when it is done, so that it can be stopped and resumed.

What was walked is kept as the heads of the chains, and the next run compares these and walks what came after them. All else
is compared anew: a record may have been changed since. Where anything is not as it should be, the whole log is looked at in one
read, which names all that is wrong.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from decklog.journal.findings import Verification, resumable
from decklog.journal.rows import STREAM_SIZE, StreamHead
from decklog.journal.texts import Texts
from decklog.journal.walk import Walk, changed_heads, last_positions, list_streams, spans_after
from decklog.log import Decklog

# Of a stream: up to which entry it was walked, the hash of that, when its first was written, whether it goes back in time.
Head = tuple[int, str, str, bool]

# Entries in one step: about a second's work.
_STEP = 20_000
CHAINS = "chains"


class Steps:
    """Verifies a log from what is known of it; `known` are the heads that the steps before have reported."""

    def __init__(self, log: Decklog, known: Mapping[str, Any] | None = None, *, full: bool = False) -> None:
        self._db = log.db
        self._journal = log.journal
        self._verifier = log.journal.verifier(full=full)
        self._heads: dict[int, Head] = {int(number): tuple(head) for number, head in (known or {}).items()}
        self._compared: list[tuple[int, list[str]]] = []

    def run(self, report: Callable[[dict[str, Any]], object]) -> Verification:
        """Take the steps that are left; each is given as what is known by it, with how many there are and were done."""
        self._db.read(self._leave_out_archived)
        lost, anchored = self._db.read(lambda: list(self._lost())), len(self._heads)
        # The steps go up to the heads.
        are_heads_sound = not self._db.read(self._db.wrong_heads)
        if are_heads_sound and not lost and self._are_chains_sound(report) and self._is_rest_sound(report):
            result = Verification(anchored=anchored)
            if self._db.read(lambda: self._joined(result)):
                result.add(self._compared)
                return result
        # Full: another sample of the text index might not have the flaw that was found.
        whole = self._journal.verifier(full=True).run(None, None)
        whole.anchored = anchored
        for problem in lost:
            whole.bad(**problem)
        return whole

    def _leave_out_archived(self) -> None:
        if archived := self._db.archived():
            for number, name in self._db.rows("select no, name from streams", {})[1]:
                if name in archived:
                    self._heads.pop(number, None)

    def _lost(self) -> Iterator[dict[str, Any]]:
        """Name the heads that are not what they were when they were walked."""
        names = {stream.number: stream.name for stream in list_streams(self._db)}
        heads = sorted(self._heads.items())
        yield from changed_heads(self._db, ((str(names.get(number, number)), number, *head[:2]) for number, head in heads))

    def heads(self) -> list[StreamHead]:
        """Return the newest entry of each stream that was walked, as an anchor file keeps it."""
        names = {stream.number: stream.name for stream in self._db.read(lambda: list(list_streams(self._db)))}
        return [{"stream": names[number], "seq": head[0], "hash": head[1]} for number, head in self._heads.items()]

    # The chains

    def _are_chains_sound(self, report: Callable[[dict[str, Any]], object]) -> bool:
        while True:
            found = self._db.read(self._walked)
            if found is None:
                return False
            walked, done, whole = found
            heads = {str(number): self._heads[number] for number in walked}
            report({"what": CHAINS, "done": done, "whole": whole, "heads": heads})
            if not walked:
                return True

    def _walked(self) -> tuple[list[int], int, int] | None:
        """Walk the next entries; give the streams they are of, and how many were walked of how many. None where not sound."""
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

    def _joined(self, result: Verification) -> bool:
        """Walk what came meanwhile, and compare the streams' own rows and the number of entries with all that was walked."""
        found = self._walked()
        while found is not None and found[0]:
            found = self._walked()
        if found is None or self._db.one("select count(*) from entries", {}) != (found[1],):
            return False
        walk, streams = Walk(self._db, result, Texts(self._db, result)), list(list_streams(self._db))
        for stream in streams:
            _, _, first, goes_back = self._heads.get(stream.number, (0, "", None, False))
            walk.compare(stream, first, 1 if goes_back else None)
        result.entries, result.streams = found[1], len(streams)
        return result.ok and len(streams) == len(self._heads)
