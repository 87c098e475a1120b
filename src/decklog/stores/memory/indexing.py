"""The text index of lessons, kept up to date with the journal.

A mark stores the last indexed entry of the memory's stream. Verbs of the memory move it with their writes. Lessons from
another log or an older schema are indexed before the next search.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from typing import Any

from decklog.db.base import Database
from decklog.db.search import lessons_check
from decklog.db.search.lessons import lesson_search
from decklog.db.search.lessons_check import IndexedLesson
from decklog.stores.memory.lesson import Lesson
from decklog.stores.memory.similarity import essence_digest
from decklog.stores.memory.text import SPELLING, extract_terms, signature

STREAM = "@memory"
_STREAM_SIZE = 2**32
_BATCH = 1000
_MOST_LINES = 20
# The name of a mark has the version of the terms and the hash of its entry, so that a moved mark is detected.
MARK = f"terms, {SPELLING}, up to "
# Prefix of marks with older terms; such an index is rebuilt.
FORMER_MARK = "terms, stems 1"


class LessonIndex:
    """The text index of a log's lessons."""

    def __init__(self, db: Database) -> None:
        self._db = db
        self._search = lesson_search(db)

    def catch_up(self) -> None:
        """Index the entries after the mark in steps, if the log is writable."""
        while self.can_step and self._db.read(self.is_behind):
            self._db.write(self._step)

    @property
    def can_step(self) -> bool:
        """Whether the index can be written here and now."""
        return not (self._db.read_only or self._db.is_reading)

    def is_behind(self) -> bool:
        """Return whether there are entries to index. Call it in a read or a transaction."""
        mark, head = self._span()
        # A damaged log may have a stream without entries, which has nothing to index.
        return mark < head != 0

    @contextmanager
    def following(self) -> "Iterator[LessonIndex]":
        """Index pending entries, run the block, which indexes what it writes, and move the mark. Call it in a transaction."""
        self._db.lock_stream_next(STREAM)
        while self.is_behind():
            self._step()
        yield self
        # The entries that the block wrote are known without a query.
        head = self._db.memo.get(("head", STREAM))
        if head is not None and (seq := head[0] % _STREAM_SIZE):
            self._set(seq, head[1])

    def put(self, lesson: Lesson) -> None:
        """Index an active lesson by its terms, and every lesson by its essence, which finds it when it is learned again."""
        self._search.put(lesson.id, lesson.topic, lesson.project, terms_in_index(lesson))

    def forget(self) -> None:
        """Delete the whole index, so that it is rebuilt."""
        self._search.clear()
        self._db.count("delete from lesson_marks", {})

    def _span(self) -> tuple[int, int]:
        """Return the numbers of the last indexed and of the last entry."""
        row = self._db.one(
            f"""
            select coalesce((select max(seq) from lesson_marks where substr(name, 1, {len(MARK)}) = :mark), -1), head_seq
              from stream_heads
             where name = :stream
            """,
            {"mark": MARK, "stream": STREAM},
        )
        return (row[0], row[1]) if row else (0, 0)

    def _step(self) -> None:
        """Index the lessons of a batch of entries, as they are now."""
        self._db.lock_stream(STREAM)
        mark, head = self._span()
        if mark < 0:
            # The index is empty, or has older terms.
            self._search.clear()
            mark = 0
        end = min(head, mark + _BATCH)
        for lesson in self._changed(mark, end):
            self.put(lesson)
        self._move(end)

    def _changed(self, mark: int, end: int) -> list[Lesson]:
        names, rows = self._db.rows(
            f"""
            select *
              from lessons
             where id in (select e.record_id
                            from entries e
                            join streams s on s.name = :stream
                           where e.pos > s.no * {_STREAM_SIZE} + :mark
                             and e.pos <= s.no * {_STREAM_SIZE} + :end
                             and e.record_table = 'lessons')
             order by created_at, id
            """,
            {"stream": STREAM, "mark": mark, "end": end},
        )
        return Lesson.from_rows(names, rows)

    def _move(self, seq: int) -> None:
        """Move the mark to an entry."""
        if (entry_hash := _hash_at(self._db, seq)) is not None:
            self._set(seq, entry_hash)

    def _set(self, seq: int, entry_hash: str) -> None:
        bound = {"name": MARK + entry_hash, "seq": seq, "mark": MARK}
        moved = f"update lesson_marks set seq = :seq, name = :name where substr(name, 1, {len(MARK)}) = :mark"
        if not self._db.count(moved, bound):
            self._db.count("delete from lesson_marks", {})
            self._db.count("insert into lesson_marks (name, seq) values (:name, :seq)", {"name": bound["name"], "seq": seq})


def terms_in_index(lesson: Lesson) -> list[str]:
    """Return the terms of a lesson. An inactive one has only its essence."""
    return [*(lesson_terms(lesson) if lesson.holds else ()), essence_term(lesson.body)]


def lesson_terms(lesson: Lesson) -> Iterator[str]:
    """Yield the terms of an active lesson: from its text, its payload, and its error signature."""
    terms = extract_terms(lesson.body)
    yield from terms
    said = set(terms)
    yield from (term for term in extract_terms(" ".join(_texts(lesson.payload))) if term not in said)
    error = lesson.payload.get("error_signature")
    if isinstance(error, str):
        yield _sign(signature(error))


def signs_of(text: str) -> list[str]:
    """Return the terms that find an error independent of its numbers and paths."""
    lines = [text, *text.splitlines()[:_MOST_LINES]]
    return [_sign(signature(line)) for line in dict.fromkeys(lines) if not line.isspace()]


def essence_term(body: str) -> str:
    """Return the term that finds texts with the same essence."""
    return f"essence·{essence_digest(body)[:20]}"


def _sign(error: str) -> str:
    return f"error·{sha256(error.encode(errors='surrogatepass')).hexdigest()[:20]}"


def _texts(value: object) -> Iterator[str]:
    """Yield the texts inside a JSON value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for inner in value.values():
            yield from _texts(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _texts(inner)


def audit_index(db: Database) -> Iterator[dict[str, Any]]:
    """Yield the differences of the index from the lessons.

    Those that changed after the mark are left out: they are indexed before the next search.
    """
    marks = list(db.each_as_is("select name, seq from lesson_marks order by name", {}))
    if len(marks) == 1 and str(marks[0][0]).startswith(FORMER_MARK):
        return  # an old index is rebuilt before the next search
    strange = list(_strange_marks(db, marks))
    yield from strange
    if marks and not strange:
        yield from lessons_check.findings(db, _expected(db, marks[0][1]))


def _strange_marks(db: Database, marks: list[tuple[Any, ...]]) -> Iterator[dict[str, Any]]:
    if not marks and not lessons_check.is_empty(db):
        yield {"what": "the index of the lessons does not say how far it has come", "table": "lesson_marks"}
    for name, seq in marks:
        if len(marks) > 1 or name != f"{MARK}{_hash_at(db, seq)}":
            what = f"the index of the lessons claims to have reached {STREAM}:{seq}, which is not the entry that it names"
            yield {"what": what, "table": "lesson_marks", "record_id": str(name), "column": "name, seq"}


def _hash_at(db: Database, seq: object) -> str | None:
    """Return the hash of an entry of the memory's stream."""
    if type(seq) is not int or not 0 < seq < _STREAM_SIZE:
        return None
    sql = f"select e.hash from entries e join streams s on s.name = :stream and e.pos = s.no * {_STREAM_SIZE} + :seq"
    row = db.one(sql, {"stream": STREAM, "seq": seq})
    return row[0] if row else None


def _expected(db: Database, mark: int) -> Iterator[tuple[str, IndexedLesson | None]]:
    """Yield each lesson with its terms, or None if it changed after the mark."""
    sql = f"""
        select distinct e.record_id from entries e
          join streams s on s.name = :stream and e.pos > s.no * {_STREAM_SIZE} + :mark and e.pos < (s.no + 1) * {_STREAM_SIZE}
         where e.record_table = 'lessons'
    """
    changed = {row[0] for row in db.rows(sql, {"stream": STREAM, "mark": mark})[1]}
    names = Lesson.columns()
    for row in db.each(f"select {', '.join(names)} from lessons", {}):
        lesson = Lesson.from_row(names, row)
        indexed = IndexedLesson(lesson.topic, lesson.project, terms_in_index(lesson))
        yield lesson.id, None if lesson.id in changed else indexed
