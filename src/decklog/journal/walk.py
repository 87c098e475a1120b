"""Checks the chains: every entry follows the previous one, has the right position, and belongs to a known stream.

All streams are read with one query in table order, because a query per stream costs a server more.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain as joined
from itertools import pairwise
from typing import Any, NamedTuple

from decklog.db.base import Database, Row
from decklog.db.where import placed
from decklog.journal import chain
from decklog.journal.chain import AT, BODY_DIGEST, HASH, KIND, PAYLOAD_DIGEST, SEQ, STREAM, find_mismatch
from decklog.journal.findings import Verification
from decklog.journal.rows import SELECT, STREAM_SIZE
from decklog.journal.texts import Texts

# The number of a stream, and the first and last position to check.
EntrySpan = tuple[int, int, int]
# A stream, its number if it is in the log, and the number and hash of a verified entry.
KnownHead = tuple[str, int | None, int, str]
# An entry with a text stored by digest: its number, time, kind and column, and the digest.
Named = tuple[int, str, str, str, object]


class Stream(NamedTuple):
    """A stream's own row."""

    name: str
    number: int
    created_at: object
    in_order: object


class SpanResult(NamedTuple):
    """The last number and hash of a checked span, the time of its first entry, and an entry that goes back in time, if any."""

    seq: int
    hash: str
    first: object
    backwards: int | None


_FIRST, _LAST = -(2**63), 2**63 - 1
_WRONG = {
    "hash": "the entry does not match its hash",
    "body": "the body does not match its digest",
    "payload": "the payload does not match its digest",
}
_ENTRIES = f"{SELECT} where pos >= :start and pos <= :last order by pos"
_BEFORE = "select hash, at from entries where pos = :pos"
_ENDS = "select no, head_pos from stream_heads order by no"
# Problems of an entry that was verified before.
CUT_OFF, CHANGED = "entries up to the anchored one are cut off", "the entry is not the one that was anchored"
_BATCH_SIZE = 400


def _group_adjacent(pieces: Sequence[EntrySpan], numbers: Iterable[int]) -> Iterator[list[EntrySpan]]:
    """Group adjacent spans for one query."""
    following = dict(pairwise(numbers))
    part: list[EntrySpan] = []
    for piece in pieces:
        number, start, _ = piece
        if part and not (following.get(part[-1][0]) == number and start == number * STREAM_SIZE + 1):
            yield part
            part = []
        part.append(piece)
    if part:
        yield part


def last_positions(db: Database) -> list[tuple[int, int]]:
    """Return the last position of each stream that has entries, in the order of their numbers."""
    return [(number, last) for number, last in db.rows(_ENDS, {})[1] if type(number) is int and type(last) is int]


def load_hashes(db: Database, positions: list[int]) -> dict[int, str]:
    """Return the hashes of the entries at some positions."""
    found: dict[int, str] = {}
    for start in range(0, len(positions), _BATCH_SIZE):
        marks, bound = placed(positions[start : start + _BATCH_SIZE])
        found.update(db.rows(f"select pos, hash from entries where pos in ({marks})", bound)[1])
    return found


def changed_heads(db: Database, heads: Iterable[KnownHead]) -> Iterator[dict[str, Any]]:
    """Yield a problem for each verified entry that has changed."""
    known = [(stream, seq, hash, None if number is None else number * STREAM_SIZE + seq) for stream, number, seq, hash in heads]
    found = load_hashes(db, [position for *_, position in known if position is not None])
    for stream, seq, hash, position in known:
        present = None if position is None else found.get(position)
        if present != hash:
            what = CUT_OFF if present is None else CHANGED
            yield {"what": what, "stream": stream, "seq": seq, "table": "entries", "record_id": f"{stream}:{seq}"}


def spans_after(lasts: list[tuple[int, int]], known: Mapping[int, int], room: int = _LAST) -> list[EntrySpan]:
    """Return the spans of streams after known entries, up to a total number of entries."""
    pieces: list[EntrySpan] = []
    for number, last in lasts:
        start = number * STREAM_SIZE + known.get(number, 0) + 1
        if start <= last and room > 0:
            pieces.append((number, start, min(last, start + room - 1)))
            room -= pieces[-1][2] - start + 1
    return pieces


def list_streams(db: Database) -> Iterator[Stream]:
    """Yield the rows of the streams that are not archived, by number."""
    archived = db.archived()
    rows = db.each_as_is("select name, no, created_at, in_order from streams order by no", {})
    return (Stream(*row) for row in rows if row[0] not in archived)


class Walk:
    """Checks entries in the order of their positions, stream by stream."""

    def __init__(self, db: Database, result: Verification, texts: Texts) -> None:
        self._db = db
        self._result = result
        self._texts = texts
        self._rows: Iterator[Row] = iter(())
        # A row of the next stream that was already read.
        self._ahead: list[Row] = []
        self._named: frozenset[str] = frozenset()

    def all(self, streams: Sequence[Stream], unreadable: Collection[object]) -> None:
        """Check all entries, by stream number; an entry of no stream is a problem.

        Streams with an unreadable row are skipped.
        """
        self._begin(_FIRST, _LAST)
        self._named = frozenset(stream.name for stream in streams)
        for stream in streams:
            if self._whole(stream, unreadable) is None:
                # Continue with the next stream, which may be readable.
                self._begin((stream.number + 1) * STREAM_SIZE, _LAST)
        with self._result.checking(self._db, "the entries of no stream", table="entries"):
            self._report_strays(_LAST, unreadable)

    def one(self, stream: Stream) -> None:
        """Check the entries of one stream."""
        self._begin(stream.number * STREAM_SIZE, (stream.number + 1) * STREAM_SIZE - 1)
        self._whole(stream)

    def pieces(self, pieces: Sequence[EntrySpan], streams: Mapping[int, Stream]) -> dict[int, SpanResult]:
        """Check spans of streams, and return their results. The rows of the streams are not compared."""
        found: dict[int, SpanResult] = {}
        for part in _group_adjacent(pieces, streams):
            end = part[-1][2]
            self._begin(part[0][1], end)
            for number, start, _ in part:
                walked = self._walk(streams[number], start % STREAM_SIZE)
                if walked is None:
                    self._begin((number + 1) * STREAM_SIZE, end)
                else:
                    found[number] = walked
        return found

    def _whole(self, stream: Stream, unreadable: Collection[object] = ()) -> SpanResult | None:
        self._result.streams += 1
        walked = self._walk(stream, 1, unreadable)
        if walked is not None:
            self.compare(stream, walked.first, walked.backwards)
        return walked

    def _walk(self, stream: Stream, seq: int, unreadable: Collection[object] = ()) -> SpanResult | None:
        """Check a stream from an entry on, and stray entries before it. Return None if it can't be read."""
        with self._result.checking(self._db, f"the stream {stream.name}", stream=stream.name):
            self._report_strays(stream.number * STREAM_SIZE, unreadable)
            return self._follow(stream, seq)
        return None

    def _begin(self, start: int, last: int) -> None:
        self._rows = self._db.each_as_is(_ENTRIES, {"start": start, "last": last})
        self._ahead = []

    def _report_strays(self, end: int, unreadable: Collection[object]) -> None:
        """Report unread entries up to a position, so that removing a stream's row does not hide its entries."""
        for row in joined(self._ahead, self._rows):
            if row[0] >= end:
                self._ahead = [row]
                return
            if row[0] // STREAM_SIZE not in unreadable:
                self._report_stray(row)
        self._ahead = []

    def _report_stray(self, row: Row) -> None:
        where = {"stream": row[STREAM], "seq": row[SEQ]}
        if row[STREAM] in self._named:
            self._result.bad("the stream has another number than its entries", table="streams", column="no", **where)
        else:
            self._result.bad("the entry belongs to no known stream", table="entries", **where)

    def _follow(self, stream: Stream, expected: int) -> SpanResult:
        name, start = stream.name, stream.number * STREAM_SIZE
        previous, latest, end = chain.START, "", start + STREAM_SIZE
        if expected > 1:
            previous, latest = self._db.one(_BEFORE, {"pos": start + expected - 1}) or (chain.START, "")
        first: object = None
        backwards: int | None = None
        named: list[Named] = []
        others: list[tuple[int, object]] = []
        rows, self._ahead = joined(self._ahead, self._rows), []
        for row in rows:
            if row[0] >= end:
                self._ahead = [row]
                break
            self._result.entries += 1
            seq, at = row[SEQ], row[AT]
            if type(seq) is not int or type(at) is not str:
                # A page that was cut off or overwritten gives rows of anything.
                self._bad(stream, expected, "the entry can't be read")
                previous, expected = str(row[HASH]), expected + 1
                continue
            if row[STREAM] != name:
                others.append((seq, row[STREAM]))
            if seq != expected or row[0] != start + seq:
                self._misplaced(stream, row, expected)
            if (what := find_mismatch(previous, row)) is not None:
                self._bad(stream, seq, _WRONG[what], column=None if what == "hash" else what)
            if row[BODY_DIGEST] is not None or row[PAYLOAD_DIGEST] is not None:
                named += _list_digests(row)
            if at < latest:
                backwards = backwards or seq
            if first is None:
                first = at
            previous, expected, latest = row[HASH], seq + 1, at
        self._check_name(stream, others, expected - 1)
        if named:
            self._texts.check_entries(stream.number, name, named)
        return SpanResult(expected - 1, previous, first, backwards)

    def _misplaced(self, stream: Stream, row: Row, expected: int) -> None:
        """Report what is wrong with the place of an entry."""
        pos, seq = row[0], row[SEQ]
        if pos != stream.number * STREAM_SIZE + seq:
            self._bad(stream, seq, f"the entry is at position {pos}", column="pos")
        if seq != expected:
            self._bad(stream, expected, f"entries {expected} to {seq - 1} are missing")

    def _bad(self, stream: Stream, seq: int, what: str, column: str | None = None) -> None:
        where = {"stream": stream.name, "seq": seq, "table": "entries", "record_id": f"{stream.name}:{seq}", "column": column}
        self._result.bad(what, **where)

    def _check_name(self, stream: Stream, others: list[tuple[int, object]], newest: int) -> None:
        """Report entries with the name of another stream, or a stream that all its entries name differently."""
        name, names = stream.name, {other for _, other in others}
        if len(others) == newest and len(names) == 1:
            where: dict[str, Any] = {"stream": name, "table": "streams", "record_id": name, "column": "name"}
            self._result.bad(f"the stream {name} is {names.pop()} to all its entries", **where)
            return
        for seq, other in others:
            self._bad(stream, seq, f"the entry names another stream, {other}", column="stream")

    def compare(self, stream: Stream, first: object, backwards: int | None) -> None:
        """Compare the row of a stream with its entries: the time of the first, and their order in time."""
        name, _, created_at, in_order = stream
        where: dict[str, Any] = {"stream": name, "table": "streams", "record_id": name}
        if first is None:
            self._result.bad(f"the stream {name} has no entry", **where)
        elif created_at != first:
            what = f"the stream {name} is said to have begun at {created_at}, and its first entry is of {first}"
            self._result.bad(what, **where, column="created_at")
        if in_order == 1 and backwards is not None:
            what = "the stream is said to be in order of time, and is not"
            self._result.bad(what, **where, seq=backwards, column="in_order")
        elif in_order != 1 and (in_order != 0 or (backwards is None and first is not None)):
            self._result.bad("the stream is said not to be in order of time, and is", **where, column="in_order")


def _list_digests(row: Row) -> Iterator[Named]:
    """Yield the texts of an entry that are stored by digest."""
    for name, text, digest in chain.TEXTS:
        if row[text] is None and row[digest] is not None:
            yield row[SEQ], row[AT], row[KIND], name, row[digest]
