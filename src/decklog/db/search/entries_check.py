"""Whether the words that entries are found by are the words of the entries."""

from typing import TYPE_CHECKING

from decklog.db.search.marks import SIZE

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from decklog.db.base import Database

    Finding = dict[str, Any]
    # The position of an entry and the column that differs; neither where it can't be said which.
    Flaw = tuple[int | None, str | None]


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
    """Name the marks that lie outside of their streams; what was indexed up to each is held against the entries."""
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
