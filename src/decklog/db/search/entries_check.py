"""Whether the text index holds the words of the entries, on either engine.

Which entries are indexed is checked for all of them. Words are compared for all entries of a small log and for a random sample
of a large one, unless all are asked for.
"""

import random
from typing import TYPE_CHECKING

from decklog.db.search.marks import SIZE, entries_in

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

    from decklog.db.base import Database
    from decklog.db.search.marks import Span

    Finding = dict[str, Any]
    # The position of an entry and the column that differs; neither where it can't be said which.
    Flaw = tuple[int | None, str | None]

# The most entries whose words are compared, in pieces of this size.
MOST_COMPARED, _PIECE = 2_000, 100
_MOST_FLAWS = 20


def indexed(db: "Database") -> "list[Span]":
    """List what the marks declare as indexed."""
    _, rows = db.rows("select stream_no, pos from entry_text_marks order by stream_no", {})
    return [
        (number, number * SIZE, pos) for number, pos in rows if type(pos) is int and number * SIZE < pos < (number + 1) * SIZE
    ]


def sampled(db: "Database") -> "list[Span] | None":
    """Choose pieces of streams whose words are compared; None where all of them are few enough."""
    spans = indexed(db)
    if entries_in(spans) <= MOST_COMPARED:
        return None
    chosen = random.choices(spans, [end - start for _, start, end in spans], k=MOST_COMPARED // _PIECE)
    marks = [(number, random.randrange(start, end), end) for number, start, end in chosen]
    return [(number, mark, min(end, mark + _PIECE)) for number, mark, end in marks]


def flaws_of(db: "Database", table: str, key: str, differing: "Iterable[int]") -> "Iterator[Flaw]":
    """List the first entries that are misplaced in the index, or have other words there."""
    for pos in sorted({*_misplaced(db, table, key), *differing})[:_MOST_FLAWS]:
        yield pos, "words"


def _misplaced(db: "Database", table: str, key: str) -> "Iterator[int]":
    """Find positions in the index that are not up to a mark, and entries up to a mark that are not in the index.

    Positions are unique and have no gaps, so that their number in a stream, the first and the last show whether all are there.
    """
    counted = f"select {key} / {SIZE} as no, count(*) as size, min({key}) as first, max({key}) as last from {table} group by 1"
    _, rows = db.rows(
        f"""
        select coalesce(i.no, m.stream_no), m.pos
          from ({counted}) i
          full join entry_text_marks m on m.stream_no = i.no
         where m.pos is null
            or coalesce(i.size, 0) <> m.pos - m.stream_no * {SIZE}
            or i.first <> m.stream_no * {SIZE} + 1
            or i.last <> m.pos
         order by 1
         limit {_MOST_FLAWS}
        """,
        {},
    )
    for number, pos in rows:
        yield from _misplaced_in(db, table, key, number, pos or number * SIZE)


def _misplaced_in(db: "Database", table: str, key: str, number: int, mark: int) -> "list[int]":
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
        {"start": number * SIZE, "end": (number + 1) * SIZE, "mark": mark},
    )
    return [row[0] for row in rows]


def findings(db: "Database", flaws: "Iterator[Flaw]") -> "Iterator[Finding]":
    """Name the marks and the entries' words that are not what they should be, each as the fields of a problem."""
    yield from misplaced_marks(db)
    for pos, column in flaws:
        stream, seq = _entry_of(db, pos)
        whose = f"the words of {stream}:{seq}" if stream else f"words at position {pos}" if pos else "words"
        where = {"stream": stream, "seq": seq, "table": "entry_text", "record_id": pos and str(pos), "column": column}
        yield {"what": f"the text index has not {whose} as the entries have them", **where}
        yield from _moved_mark(db, pos)


def misplaced_marks(db: "Database") -> "Iterator[Finding]":
    """Name the marks that lie outside of their streams; what was indexed up to each is compared with the entries."""
    sql = f"""
        select stream_no, m.pos,
               (select max(e.pos) from entries e where e.pos > stream_no * {SIZE} and e.pos < (stream_no + 1) * {SIZE})
          from entry_text_marks m
         order by stream_no
    """
    for number, pos, newest in db.rows(sql, {})[1]:
        if newest is None or type(pos) is not int or not number * SIZE < pos <= newest:
            where = {"table": "entry_text_marks", "record_id": str(number), "column": "pos" if newest else "stream_no"}
            yield {"what": f"the text index says that it has stream {number} up to {pos}, which ends at {newest}", **where}


def _moved_mark(db: "Database", pos: int | None) -> "Iterator[Finding]":
    """Name a mark just before which words are lacking, or behind which there are some: it may be the mark that was moved."""
    sql = "select m.pos from entry_text_marks m where m.stream_no = :number and m.pos in (:pos, :before)"
    if pos is not None and db.one(sql, {"number": pos // SIZE, "pos": pos, "before": pos - 1}) is not None:
        what = f"the text index ends elsewhere than its mark in stream {pos // SIZE} says, or words at the mark were changed"
        yield {"what": what, "table": "entry_text_marks", "record_id": str(pos // SIZE), "column": "pos"}


def _entry_of(db: "Database", pos: int | None) -> "tuple[str | None, int | None]":
    row = db.one("select stream, seq from entries where pos = :pos", {"pos": pos}) if pos is not None else None
    return (row[0], row[1]) if row else (None, None)
