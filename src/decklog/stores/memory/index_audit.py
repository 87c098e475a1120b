"""Whether the index of lessons holds what the lessons say, up to the entry that it has come to."""

from collections.abc import Iterator
from typing import Any

from decklog.db.base import Database
from decklog.db.search import lessons_check
from decklog.db.search.lessons_check import IndexedLesson
from decklog.records.values import from_json
from decklog.stores.memory.indexing import FORMER_MARK, MARK, STREAM, terms_in_index
from decklog.stores.memory.lesson import Lesson

_STREAM_SIZE = 2**32
# Each lesson with the numbers of the first and the newest entry that tell of it.
_SPANS = """
    select record_id, min(seq) as first, max(seq) as newest
      from entries
     where record_table = 'lessons'
     group by record_id
"""


class IndexAudit:
    """Compares the index with the lessons; those that came since its mark are yet to be indexed."""

    def __init__(self, db: Database) -> None:
        self._db = db

    def findings(self) -> Iterator[dict[str, Any]]:
        """Name what is wrong, each as the fields of a problem."""
        marks = list(self._db.each_as_is("select name, seq from lesson_marks order by name", {}))
        if len(marks) == 1 and str(marks[0][0]).startswith(FORMER_MARK):
            return  # nobody asks it any more: it is made anew before the next question
        yield from self._strange_marks(marks)
        reached = [seq for name, seq in marks if str(name).startswith(MARK) and type(seq) is int]
        yield from lessons_check.findings(self._db, self._told(max(reached)) if reached else iter(()))

    def _strange_marks(self, marks: list[tuple[Any, ...]]) -> Iterator[dict[str, Any]]:
        if not marks and not lessons_check.is_empty(self._db):
            yield {"what": "the index of the lessons does not say how far it has come", "table": "lesson_marks"}
        for name, seq in marks:
            if len(marks) > 1 or name != f"{MARK}{self._hash_at(seq)}":
                what = f"the index of the lessons says that it has come to {STREAM}:{seq}, which is not the entry that it names"
                yield {"what": what, "table": "lesson_marks", "record_id": str(name), "column": "name, seq"}

    def _hash_at(self, seq: object) -> object:
        if type(seq) is not int or not 0 < seq < _STREAM_SIZE:
            return None
        sql = f"select e.hash from entries e join streams s on s.name = :stream and e.pos = s.no * {_STREAM_SIZE} + :seq"
        row = self._db.one(sql, {"stream": STREAM, "seq": seq})
        return row[0] if row else None

    def _told(self, mark: int) -> Iterator[tuple[str, list[IndexedLesson]]]:
        """Yield what each lesson that was told of up to the mark should be indexed by."""
        _, rows = self._db.rows(f"select record_id from ({_SPANS}) e where first <= :mark and newest > :mark", {"mark": mark})
        changed_since = {lesson_id: list(self._ways(lesson_id)) for (lesson_id,) in rows}
        names = Lesson.columns()
        own = ", ".join(f"l.{name}" for name in names)
        sql = f"select {own} from lessons l join ({_SPANS}) e on e.record_id = l.id where first <= :mark"
        for row in self._db.each(sql, {"mark": mark}):
            lesson = Lesson.from_row(names, row)
            yield lesson.id, changed_since.get(lesson.id) or [_told_by(lesson)]

    def _ways(self, lesson_id: str) -> Iterator[IndexedLesson]:
        """Yield all that a lesson ever was: it was indexed as one of them."""
        sql = "select payload from entries where record_table = 'lessons' and record_id = :id order by seq"
        for payload in dict.fromkeys(row[0] for row in self._db.rows(sql, {"id": lesson_id})[1]):
            yield _told_by(Lesson.from_image(from_json(payload)))


def _told_by(lesson: Lesson) -> IndexedLesson:
    return IndexedLesson(lesson.topic, lesson.project, terms_in_index(lesson))
