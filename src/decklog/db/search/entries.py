"""Search in journal entries: the text index first, then what is not indexed yet."""

from collections.abc import Iterable, Iterator
from typing import Any

from decklog.db.base import STREAM_SIZE, Database, Row
from decklog.db.search import marks
from decklog.db.search.marks import MOST_UNINDEXED, entries_in
from decklog.db.text_search import Found, Search, Span, entry_words
from decklog.db.where import placed

Finding = dict[str, Any]
# The position of an entry and the column that differs; neither where it can't be said which.
Flaw = tuple[int | None, str | None]

# The most entries that are read for one search by words, where no index leads to those that have them.
MOST_READ = 2_000
# They are read in parts, until a page is full.
_PARTS = (250, 500, MOST_READ - 750)
# Spans in one statement.
_TOGETHER = 32


def search(database: Database, select: str, spec: Search) -> Found:
    """Find entries by the index, and among those that are not indexed yet. Nothing is written for it.

    Without words, every entry that is not indexed is looked at by its columns. With words, the newest are read.
    """
    if not (spec.query.terms or spec.tags):
        return Found()
    found = database.search(select, spec)
    is_full = len(found.rows) == spec.limit and not spec.oldest_first
    # Streams before that of the last row of a full page have nothing newer.
    first = found.rows[-1][0] // STREAM_SIZE if is_full else 0
    spans = database.unindexed(spec.stream_no, going_on=spec.going_on, first=first)
    if not spans:
        return found
    if spec.query.terms:
        matching, unread = _matching(database, spans, spec)
        more = _at(database, select, spec, matching)
    else:
        more, unread = [row for span in spans for row in _in_span(database, select, spec, span)], []
    if marks.entries_in(spans) > MOST_UNINDEXED and not database.is_in_transaction:
        marks.index_later(database, spans)
    return _joined(spec, found, more, unread)


def _matching(database: Database, spans: list[Span], spec: Search) -> tuple[list[int], list[Span]]:
    """Return the positions of entries that have the words, newest first, and the spans that were not read."""
    found: list[int] = []
    rest = spans
    for size in _PARTS:
        newest, rest = marks.newest_in(rest, size)
        for start in range(0, len(newest), _TOGETHER):
            rows = _read(database, newest[start : start + _TOGETHER], spec)
            found += [pos for pos, body, payload in rows if spec.query.matches(entry_words(body, payload))]
        if len(found) >= spec.limit and not spec.oldest_first:
            return sorted(found, reverse=True)[: spec.limit], rest
    return found, rest


def _read(database: Database, spans: list[Span], spec: Search) -> list[Row]:
    """Read position, body and payload of the entries in spans that may have the words."""
    narrow, bound = spec.query.prefilter()
    clauses = [*narrow, *spec.clauses("pos"), *([spec.condition] if spec.condition else [])]
    bound |= {**spec.bound, "after": spec.after}
    parts = []
    for place, (_, mark, newest) in enumerate(spans):
        bound |= {f"mark{place}": mark, f"newest{place}": newest}
        inside = [f"pos > :mark{place} and pos <= :newest{place}", *clauses]
        parts.append(f"select pos, body, payload from entries where {' and '.join(inside)}")
    return database.rows(" union all ".join(parts), bound)[1]


def _joined(spec: Search, found: Found, more: list[Row], unread: list[Span]) -> Found:
    """Put rows of the index and others into one order; beyond the place where the index stopped, nothing is known."""
    rows = {row[0]: row for row in [*found.rows, *more]}
    stop = found.stopped_at
    known = [pos for pos in rows if stop is None or (pos <= stop if spec.oldest_first else pos >= stop)]
    first = sorted(known, reverse=not spec.oldest_first)[: spec.limit]
    is_full = len(first) == spec.limit
    if is_full and not spec.oldest_first:
        # What is older than a full page does not belong to it.
        unread = [span for span in unread if span[2] > first[-1]]
    return Found([rows[pos] for pos in first], marks.entries_in(unread), None if is_full else stop)


def found_among(database: Database, select: str, spec: Search, candidates: list[tuple[int, bool]]) -> Found:
    """Return the candidates that match, given in order as positions and answers; at most `MOST_READ` were looked at."""
    matching = [pos for pos, is_match in candidates if is_match][: spec.limit]
    rows = {row[0]: row for row in _at(database, select, spec, matching)}
    is_cut = len(candidates) == MOST_READ and len(matching) < spec.limit
    return Found([rows[pos] for pos in matching], stopped_at=candidates[-1][0] if is_cut else None)


def _at(database: Database, select: str, spec: Search, positions: list[int]) -> list[Row]:
    if not positions:
        return []
    listed, ids = placed(positions)
    clauses = [f"pos in ({listed})", *([spec.condition] if spec.condition else [])]
    return database.rows(f"{select} where {' and '.join(clauses)}", {**spec.bound, **ids})[1]


def _in_span(database: Database, select: str, spec: Search, span: Span) -> list[Row]:
    clauses = ["pos > :mark", "pos <= :newest", *spec.clauses("pos"), *([spec.condition] if spec.condition else [])]
    bound = {**spec.bound, "after": spec.after, "mark": span[1], "newest": span[2], "limit": spec.limit}
    return database.rows(f"{select} where {' and '.join(clauses)} order by pos {spec.order} limit :limit", bound)[1]


# The most entries whose words are compared, in pieces of this size.
MOST_COMPARED, _PIECE = 2_000, 100
_MOST_FLAWS = 20


def indexed(db: Database) -> list[Span]:
    """List what the marks declare as indexed."""
    _, rows = db.rows("select stream_no, pos from entry_text_marks order by stream_no", {})
    return [
        (number, number * STREAM_SIZE, pos)
        for number, pos in rows
        if type(pos) is int and number * STREAM_SIZE < pos < (number + 1) * STREAM_SIZE
    ]


def sampled(db: Database) -> list[Span] | None:
    """Choose pieces of streams whose words are compared; None where all of them are few enough."""
    spans = indexed(db)
    if entries_in(spans) <= MOST_COMPARED:
        return None
    # Here, and not at the top: only `verify` takes samples.
    import random

    chosen = random.choices(spans, [end - start for _, start, end in spans], k=MOST_COMPARED // _PIECE)
    marks = [(number, random.randrange(start, end), end) for number, start, end in chosen]
    return [(number, mark, min(end, mark + _PIECE)) for number, mark, end in marks]


def flaws_of(db: Database, table: str, key: str, differing: Iterable[int]) -> Iterator[Flaw]:
    """List the first entries that are misplaced in the index, or have other words there."""
    for pos in sorted({*_misplaced(db, table, key), *differing})[:_MOST_FLAWS]:
        yield pos, "words"


def _misplaced(db: Database, table: str, key: str) -> Iterator[int]:
    """Find positions in the index that are not up to a mark, and entries up to a mark that are not in the index.

    Positions are unique and have no gaps, so that their number in a stream, the first and the last show whether all are there.
    """
    counted = (
        f"select {key} / {STREAM_SIZE} as no, count(*) as size, min({key}) as first, max({key}) as last from {table} group by 1"
    )
    _, rows = db.rows(
        f"""
        select coalesce(i.no, m.stream_no), m.pos
          from ({counted}) i
          full join entry_text_marks m on m.stream_no = i.no
         where m.pos is null
            or coalesce(i.size, 0) <> m.pos - m.stream_no * {STREAM_SIZE}
            or i.first <> m.stream_no * {STREAM_SIZE} + 1
            or i.last <> m.pos
         order by 1
         limit {_MOST_FLAWS}
        """,
        {},
    )
    for number, pos in rows:
        yield from _misplaced_in(db, table, key, number, pos or number * STREAM_SIZE)


def _misplaced_in(db: Database, table: str, key: str, number: int, mark: int) -> list[int]:
    """List positions of a stream that are in the index or among the entries up to the mark, and not in both."""
    _, rows = db.rows(
        f"""
        select i.{key} from {table} i left join entries e on e.pos = i.{key}
         where i.{key} >= :start and i.{key} < :end and (i.{key} > :mark or e.pos is null)
         union
        select e.pos from entries e left join {table} i on i.{key} = e.pos
         where e.pos >= :start and e.pos <= :mark and i.{key} is null
         order by 1
         limit {_MOST_FLAWS}
        """,
        {"start": number * STREAM_SIZE, "end": (number + 1) * STREAM_SIZE, "mark": mark},
    )
    return [row[0] for row in rows]


def findings(db: Database, flaws: Iterator[Flaw]) -> Iterator[Finding]:
    """Name the marks and the entries' words that are not what they should be, each as the fields of a problem."""
    yield from misplaced_marks(db)
    for pos, column in flaws:
        row = db.one("select stream, seq from entries where pos = :pos", {"pos": pos}) if pos is not None else None
        stream, seq = row or (None, None)
        whose = f"the words of {stream}:{seq}" if stream else f"words at position {pos}" if pos else "words"
        where = {"stream": stream, "seq": seq, "table": "entry_text", "record_id": pos and str(pos), "column": column}
        yield {"what": f"the text index has not {whose} as the entries have them", **where}
        yield from _moved_mark(db, pos)


def misplaced_marks(db: Database) -> Iterator[Finding]:
    """Name the marks that lie outside of their streams; what was indexed up to each is compared with the entries."""
    sql = f"""
        select stream_no, m.pos,
               (select max(e.pos)
                  from entries e
                 where e.pos > stream_no * {STREAM_SIZE} and e.pos < (stream_no + 1) * {STREAM_SIZE})
          from entry_text_marks m
         order by stream_no
    """
    for number, pos, newest in db.rows(sql, {})[1]:
        if newest is None or type(pos) is not int or not number * STREAM_SIZE < pos <= newest:
            where = {"table": "entry_text_marks", "record_id": str(number), "column": "pos" if newest else "stream_no"}
            yield {"what": f"the text index claims to cover stream {number} up to {pos}, which ends at {newest}", **where}


def _moved_mark(db: Database, pos: int | None) -> Iterator[Finding]:
    """Name a mark just before which words are lacking, or behind which there are some: it may be the mark that was moved."""
    sql = "select m.pos from entry_text_marks m where m.stream_no = :number and m.pos in (:pos, :before)"
    if pos is not None and db.one(sql, {"number": pos // STREAM_SIZE, "pos": pos, "before": pos - 1}) is not None:
        what = f"the text index of stream {pos // STREAM_SIZE} does not end at its mark, or words at the mark were changed"
        yield {"what": what, "table": "entry_text_marks", "record_id": str(pos // STREAM_SIZE), "column": "pos"}
