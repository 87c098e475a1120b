"""Verifying only what was written after an anchor: the anchored entries are compared, and the entries behind them walked."""

from typing import TYPE_CHECKING

from decklog.db.where import placed
from decklog.journal.anchors import Anchors
from decklog.journal.findings import resumable
from decklog.journal.projections import Projections
from decklog.journal.rows import STREAM_SIZE
from decklog.journal.verify import CHANGED, CUT_OFF, Verifier
from decklog.journal.walk import Stream, Walk, ends, joined_pieces, sound, streams_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from decklog.journal.findings import Verification
    from decklog.journal.walk import Piece
    from decklog.stores.results.journal import StreamHead

    # The stream, number and hash of an entry that was verified.
    Anchor = tuple[str, int, str]

_AT_ONCE = 400


def verify_since(verifier: Verifier, anchor: str) -> "Verification":
    """Verify what was written after the anchors in a file, and move them there; without a file, verify everything."""
    anchors = Anchors(anchor)
    kept = list(anchors.kept())
    if not kept or verifier.db.read(verifier.db.wrong_heads):
        return verifier.run(None, anchor)
    since = SinceAnchor(verifier)
    result = since.run(kept)
    if result.ok:
        anchors.keep(since.heads)
    return result


class SinceAnchor:
    """Walks the entries behind the anchors and compares the records they describe, in one consistent read.

    Older entries, the indexes and what is derived are not read.
    """

    def __init__(self, verifier: Verifier) -> None:
        self._verifier = verifier
        self._db = verifier.db
        self._streams: dict[int, Stream] = {}
        self.heads: list[StreamHead] = []

    def run(self, anchors: "Iterable[Anchor]") -> "Verification":
        """Return what was found; afterwards `heads` are the newest entries that were verified."""
        archived = self._db.read(self._db.archived)
        kept = [anchor for anchor in anchors if anchor[0] not in archived]
        self._db.read(lambda: self._check(kept))
        return self._verifier.result

    def _check(self, anchors: "list[Anchor]") -> None:
        self._verifier.begin()
        result = self._verifier.result
        result.since_anchor, result.anchored = True, len(anchors)
        with resumable(self._db):
            self._streams = {stream.number: stream for stream in streams_of(self._db) if type(stream.name) is str}
            numbers = {stream.name: stream.number for stream in self._streams.values()}
            known = {numbers[name]: seq for name, seq, _ in anchors if name in numbers}
            self._compare(anchors, numbers)
            lasts = ends(self._db)
            pieces = self._pieces(lasts, known)
            for part in joined_pieces(pieces, [number for number, _ in lasts]):
                if not self._is_sound(part):
                    self._walk(part)
            self._check_without_entries({number for number, _ in lasts})
            projections = Projections(self._db, self._verifier.classes, result, self._verifier.texts)
            for number, start, _ in pieces:
                projections.check_stream(self._streams[number].name, number, start=start)
            self._verifier.check_file()
            self.heads = list(self._heads(lasts))

    def _compare(self, anchors: "list[Anchor]", numbers: "dict[str, int]") -> None:
        """Compare the anchored entries with what is in their places."""
        for start in range(0, len(anchors), _AT_ONCE):
            part = anchors[start : start + _AT_ONCE]
            found = self._hashes([numbers[name] * STREAM_SIZE + seq for name, seq, _ in part if name in numbers])
            for name, seq, hash in part:
                there = found.get(numbers[name] * STREAM_SIZE + seq) if name in numbers else None
                if there != hash:
                    where = {"stream": name, "seq": seq, "table": "entries", "record_id": f"{name}:{seq}"}
                    self._verifier.result.bad(CUT_OFF if there is None else CHANGED, **where)

    def _hashes(self, places: "list[int]") -> "dict[int, str]":
        marks, bound = placed(places)
        return dict(self._db.rows(f"select pos, hash from entries where pos in ({marks})", bound)[1]) if places else {}

    def _pieces(self, lasts: "list[tuple[int, int]]", known: "dict[int, int]") -> "list[Piece]":
        """Return the ranges behind the anchors; a stream without an anchor is one whole range."""
        pieces: list[Piece] = []
        for number, last in lasts:
            start = number * STREAM_SIZE + known.get(number, 0) + 1
            if start <= last and number in self._streams:
                pieces.append((number, start, last))
                self._verifier.result.streams += 1
        return pieces

    def _is_sound(self, pieces: "list[Piece]") -> bool:
        found = sound(self._db, pieces[0][1], pieces[-1][2])
        if found is None:
            return False
        entries, firsts, backwards = found
        for number, start, _ in pieces:
            stream = self._streams[number]
            is_new = start == number * STREAM_SIZE + 1
            if is_new and (stream.created_at != firsts.get(number) or stream.in_order != (number not in backwards)):
                return False
            if number in backwards and stream.in_order:
                return False
        self._verifier.result.entries += entries
        return True

    def _walk(self, pieces: "list[Piece]") -> None:
        """Walk whole streams in which something is wrong, to name all of it."""
        result = self._verifier.result
        for number, _, _ in pieces:
            result.streams -= 1  # it is counted once more
            Walk(self._db, result, self._verifier.texts).one(self._streams[number])

    def _check_without_entries(self, filled: "set[int]") -> None:
        for number, stream in self._streams.items():
            if number not in filled:
                where = {"stream": stream.name, "table": "streams", "record_id": stream.name}
                self._verifier.result.bad(f"the stream {stream.name} has no entry", **where)

    def _heads(self, lasts: "list[tuple[int, int]]") -> "Iterator[StreamHead]":
        for start in range(0, len(lasts), _AT_ONCE):
            part = [(number, last) for number, last in lasts[start : start + _AT_ONCE] if number in self._streams]
            hashes = self._hashes([last for _, last in part])
            for number, last in part:
                yield {"stream": self._streams[number].name, "seq": last % STREAM_SIZE, "hash": hashes[last]}
