"""Whether the index of the lessons holds the terms of the lessons, on either engine."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from itertools import groupby
from typing import Any

from decklog.db.base import Database
from decklog.db.search.index_check import IndexCheck
from decklog.db.search.lessons import length_of, tags_of

Finding = dict[str, Any]


@dataclass(frozen=True)
class IndexedLesson:
    """What a lesson is indexed by: its topic, its project and its terms."""

    topic: str
    project: str | None
    terms: Sequence[str]

    @property
    def length(self) -> int:
        return length_of(self.terms)

    def digest(self) -> str:
        return _digest(Counter(self.terms).items())


def findings(db: Database, expected: Iterable[tuple[str, IndexedLesson | None]]) -> Iterator[Finding]:
    """Yield the problems of the index, each as the fields of a problem. A lesson to be indexed again is given as None."""
    check = SqliteCheck(db) if db.engine == "sqlite" else PostgresCheck(db)
    yield from check.findings(expected)
    yield from _sums(db, check.table)


def is_empty(db: Database) -> bool:
    """Return whether there is nothing in the index."""
    table = SqliteCheck.table if db.engine == "sqlite" else PostgresCheck.table
    return db.one(f"select 1 from {table} limit 1", {}) is None


def _sums(db: Database, table: str) -> Iterator[Finding]:
    [counted] = db.each_as_is(f"select count(*), cast(coalesce(sum(length), 0) as bigint) from {table}", {})
    kept = {row[0]: row[1:] for row in db.each_as_is("select id, lessons, terms from lesson_sums", {})}
    for name, one, other in zip(("lessons", "terms"), kept.get(1, (None, None)), counted, strict=True):
        if one != other:
            what = f"the index of the lessons counts {one} {name}, and has {other}"
            yield {"what": what, "table": "lesson_sums", "record_id": "1", "column": name}


def _wrong(table: str, lesson_id: object, what: str, column: str | None = None) -> Finding:
    return {"what": f"lesson {lesson_id} {what}", "table": table, "record_id": str(lesson_id), "column": column}


def _digest(times: Iterable[tuple[object, object]]) -> str:
    return sha256("\n".join(sorted(f"{term} {count}" for term, count in times)).encode(errors="surrogatepass")).hexdigest()


class SqliteCheck:
    """Compares the full-text index, and the table of its rows."""

    table = "lesson_places"

    def __init__(self, db: Database) -> None:
        self._db = db

    def findings(self, expected: Iterable[tuple[str, IndexedLesson | None]]) -> Iterator[Finding]:
        db = self._db
        db.rows("create temp table checked_lessons (no integer primary key, terms text, tags text)", {})
        try:
            yield from self._places(expected)
            options = ", tokenize = 'ascii'"
            for no, column in IndexCheck(db, "lesson_text", ("terms", "tags"), "checked_lessons", options=options).flaws():
                yield _wrong("lesson_text", self._lesson_at(no), "is not found by its own words", column)
        finally:
            db.rows("drop table if exists temp.lesson_words", {})
            db.rows("drop table temp.checked_lessons", {})

    def _places(self, expected: Iterable[tuple[str, IndexedLesson | None]]) -> Iterator[Finding]:
        """Compare the rows of the index, and keep the words that each should have."""
        sql = "select lesson_id, no, length from lesson_places"
        places = {lesson_id: (no, length) for lesson_id, no, length in self._db.each_as_is(sql, {})}
        for lesson_id, lesson in expected:
            if lesson is None:
                if lesson_id in places:
                    self._accept(places.pop(lesson_id)[0])
                continue
            if lesson_id not in places:
                yield _wrong(self.table, lesson_id, "is not in the index")
                continue
            no, length = places.pop(lesson_id)
            sql = "insert or ignore into temp.checked_lessons (no, terms, tags) values (:no, :terms, :tags)"
            tags = tags_of(lesson.topic, lesson.project)
            self._db.rows(sql, {"no": no, "terms": " ".join(lesson.terms), "tags": tags})
            if length != lesson.length:
                yield _wrong(self.table, lesson_id, f"is said to have {length} terms, and has {lesson.length}", "length")
        for lesson_id in places:
            yield _wrong(self.table, lesson_id, "is in the index, and should not be", "lesson_id")
        strays = "select lesson_id from lesson_places where no not in (select id from lesson_text_docsize)"
        for (lesson_id,) in self._db.each_as_is(strays, {}):
            yield _wrong(self.table, lesson_id, "has no words at its place in the index", "no")

    def _accept(self, no: object) -> None:
        """Expect the words that a row of the index has."""
        self._db.rows("create virtual table if not exists temp.lesson_words using fts5vocab(main, lesson_text, instance)", {})
        columns = ", ".join(
            f"group_concat(term, ' ' order by offset) filter (where col = '{name}')" for name in ("terms", "tags")
        )
        sql = f"insert into temp.checked_lessons (no, terms, tags) select doc, {columns} from temp.lesson_words where doc = :no"
        self._db.rows(f"{sql} group by doc", {"no": no})

    def _lesson_at(self, no: int | None) -> object:
        row = self._db.one("select lesson_id from lesson_places where no = :no", {"no": no}) if no is not None else None
        return row[0] if row else f"at {no}"


class PostgresCheck:
    """Compares the table of lessons in the index, and the table of their terms."""

    table = "lesson_text"

    def __init__(self, db: Database) -> None:
        self._db = db

    def findings(self, expected: Iterable[tuple[str, IndexedLesson | None]]) -> Iterator[Finding]:
        terms = dict(self._terms())
        rows = self._db.each("select lesson_id, no, topic, project, length from lesson_text", {})
        places = {lesson_id: row for lesson_id, *row in rows}
        for lesson_id, lesson in expected:
            if lesson is None:
                terms.pop(places.pop(lesson_id, [None])[0], None)
            elif lesson_id in places:
                no, *place = places.pop(lesson_id)
                yield from self._compare(lesson_id, place, terms.pop(no, None), lesson)
            else:
                yield _wrong(self.table, lesson_id, "is not in the index")
        for lesson_id, (no, *_) in places.items():
            terms.pop(no, None)
            yield _wrong(self.table, lesson_id, "is in the index, and should not be", "lesson_id")
        for no in terms:
            yield _wrong("lesson_terms", f"at {no}", "has terms in the index, and is not in it", "lesson_no")
        yield from self._lengths()

    def _lengths(self) -> Iterator[Finding]:
        """Compare the length stored with each term with the length of its lesson, which is checked against the text elsewhere."""
        sql = """
            select distinct l.lesson_id
              from lesson_terms t
              join lesson_text l on l.no = t.lesson_no
             where t.length <> l.length
        """
        for (lesson_id,) in self._db.each(sql, {}):
            yield _wrong("lesson_terms", lesson_id, "has terms with another length than its own", "length")

    def _terms(self) -> Iterator[tuple[int, str]]:
        rows = self._db.each("select lesson_no, term, times from lesson_terms order by lesson_no", {})
        for no, own in groupby(rows, key=lambda row: row[0]):
            yield no, _digest((term, times) for _, term, times in own)

    def _compare(self, lesson_id: str, place: list[Any], digest: str | None, lesson: IndexedLesson) -> Iterator[Finding]:
        expected = (lesson.topic, lesson.project, lesson.length)
        for name, one, other in zip(("topic", "project", "length"), place, expected, strict=True):
            if one != other:
                yield _wrong(self.table, lesson_id, f"is indexed with {name} {one}, and not {other}", name)
        if digest is None:
            yield _wrong(self.table, lesson_id, "has no terms at its place in the index", "no")
        elif digest != lesson.digest():
            yield _wrong("lesson_terms", lesson_id, "is not found by its own words")
