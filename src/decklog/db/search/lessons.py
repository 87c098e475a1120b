"""The full-text index of the lessons that hold: FTS5 on SQLite, a table of terms on PostgreSQL, and one BM25 on both.

The terms come ready: neither engine stems, folds or leaves out any. A lesson's length counts its two tags, as FTS5 does, and the
sums over all lessons are kept too, so that a lesson has the same score on both.
"""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Mapping, Sequence
from hashlib import sha256
from math import log
from typing import Any, NamedTuple

from decklog.db.base import Database, Row
from decklog.db.where import placed

# SQL condition: the lesson `l` is neither superseded nor retired.
HOLDS = "l.superseded_by is null and l.retired_at is null"
# BM25 constants as in FTS5: saturation of repeated terms, and the weight of a lesson's length.
K1, B = 1.2, 0.75
_TAGS = 2


class LessonText(NamedTuple):
    """A lesson's id and text."""

    id: str
    body: str


def length_of(terms: Sequence[str]) -> int:
    """Return the length of a lesson in terms, including its two tags."""
    return len(terms) + _TAGS


def lesson_search(db: Database) -> "LessonSearch":
    """Return the index of a database."""
    return SqliteLessons(db) if db.engine == "sqlite" else PostgresLessons(db)


class LessonSearch(ABC):
    """Stores which lessons have which terms, in the caller's transaction."""

    def __init__(self, db: Database) -> None:
        self._db = db

    def put(self, lesson_id: str, topic: str, project: str | None, terms: Sequence[str]) -> None:
        """Index a lesson, replacing its earlier entry."""
        self.drop(lesson_id)
        self._put(lesson_id, topic, project, terms)
        self._sum(1, length_of(terms))

    def drop(self, lesson_id: str) -> None:
        """Remove a lesson."""
        length = self._drop(lesson_id)
        if length is not None:
            self._sum(-1, -length)

    def clear(self) -> None:
        """Delete everything."""
        self._clear()
        self._db.count("delete from lesson_sums", {})
        self._db.count("insert into lesson_sums (id, lessons, terms) values (1, 0, 0)", {})

    def size(self) -> int:
        """Return the number of lessons, including inactive ones."""
        return self._sums()[0]

    def weights(self, terms: Sequence[str]) -> dict[str, float]:
        """Return what each term is worth: the more, the fewer lessons have it."""
        counts, (lessons, _) = self._counts(terms), self._sums()
        # A word that more than half of the lessons have would count against them; it counts for next to nothing instead.
        return {term: max(log((lessons - counts[term] + 0.5) / (counts[term] + 0.5)), 1e-6) for term in counts}

    def _sum(self, lessons: int, terms: int) -> None:
        self._db.count(
            "update lesson_sums set lessons = lessons + :lessons, terms = terms + :terms where id = 1",
            {"lessons": lessons, "terms": terms},
        )

    def _sums(self) -> tuple[int, int]:
        row = self._db.one("select lessons, terms from lesson_sums where id = 1", {})
        assert row is not None
        return row[0], row[1]

    @abstractmethod
    def ranked(
        self, weights: Mapping[str, float], *, topic: str | None, project: str | None, limit: int
    ) -> list[tuple[str, float]]:
        """Find lessons with any of the terms, best first, each with its score."""

    @abstractmethod
    def containing(self, groups: Sequence[Sequence[str]], *, project: str | None, limit: int) -> list[LessonText]:
        """Find lessons of one project that hold and have all the terms of at least one group, in the order they were indexed."""

    @abstractmethod
    def with_term(self, term: str, *, topic: str, project: str | None) -> list[str]:
        """Find lessons of a topic and a project that have a term, whether they hold or not, in the order they were indexed."""

    @abstractmethod
    def _put(self, lesson_id: str, topic: str, project: str | None, terms: Sequence[str]) -> None: ...

    @abstractmethod
    def _drop(self, lesson_id: str) -> int | None:
        """Remove a lesson; return its length, or None if it was not indexed."""

    @abstractmethod
    def _clear(self) -> None: ...

    @abstractmethod
    def _counts(self, terms: Sequence[str]) -> dict[str, int]:
        """Return how many lessons have each of the terms."""

    @abstractmethod
    def whole(self, lesson_ids: Sequence[str]) -> tuple[tuple[str, ...], list[Row]]:
        """Load lessons by their ids, oldest first, with the names of the columns."""


class SqliteLessons(LessonSearch):
    def _put(self, lesson_id: str, topic: str, project: str | None, terms: Sequence[str]) -> None:
        row = self._db.one(
            "insert into lesson_places (lesson_id, length) values (:lesson_id, :length) returning no",
            {"lesson_id": lesson_id, "length": length_of(terms)},
        )
        assert row is not None
        self._db.count(
            "insert into lesson_text (rowid, terms, tags) values (:no, :terms, :tags)",
            {
                "no": row[0],
                "terms": " ".join(terms),
                "tags": tags_of(topic, project),
            },
        )

    def _drop(self, lesson_id: str) -> int | None:
        row = self._db.one("select no, length from lesson_places where lesson_id = :lesson_id", {"lesson_id": lesson_id})
        if row is None:
            return None
        self._db.count("delete from lesson_text where rowid = :no", {"no": row[0]})
        self._db.count("delete from lesson_places where no = :no", {"no": row[0]})
        length: int = row[1]
        return length

    def _clear(self) -> None:
        # Deleting its rows would keep pages of it, and one that is damaged stays so.
        self._db.count("insert into lesson_text (lesson_text) values ('delete-all')", {})
        self._db.count("delete from lesson_places", {})

    def _counts(self, terms: Sequence[str]) -> dict[str, int]:
        marks, bound = placed(list(terms))
        found: dict[str, int] = dict(self._db.rows(f"select term, doc from lesson_terms where term in ({marks})", bound)[1])
        return {term: found.get(term, 0) for term in terms}

    def whole(self, lesson_ids: Sequence[str]) -> tuple[tuple[str, ...], list[Row]]:
        marks, bound = placed(lesson_ids)
        return self._db.rows(f"select * from lessons where id in ({marks}) order by created_at, id", bound)

    def ranked(
        self, weights: Mapping[str, float], *, topic: str | None, project: str | None, limit: int
    ) -> list[tuple[str, float]]:
        if not weights:
            return []
        match = " AND ".join([f"terms : ({_any(weights)})", *_tags(topic, project)])
        # The index sorts by its own rank column without building a row for each match; a join inside would make it do so.
        _, rows = self._db.rows(
            """
            select p.lesson_id, -t.rank
              from (select rowid, rank from lesson_text where lesson_text match :match order by rank limit :limit) t
              join lesson_places p on p.no = t.rowid
             order by t.rank, p.no
            """,
            {"match": match, "limit": limit},
        )
        return [(lesson_id, score) for lesson_id, score in rows]

    def containing(self, groups: Sequence[Sequence[str]], *, project: str | None, limit: int) -> "list[LessonText]":
        whole = " OR ".join(f"({' AND '.join(map(_quoted, group))})" for group in groups)
        # The project is looked at where the text is read: its tag is in every lesson of it, and walking them takes longer.
        _, rows = self._db.rows(
            f"""
            select l.id, l.body
              from lesson_text t
              join lesson_places p on p.no = t.rowid
              join lessons l on l.id = p.lesson_id
             where t.lesson_text match :match
               and l.project is :project
               and {HOLDS}
             limit :limit
            """,
            {"match": f"terms : ({whole})", "project": project, "limit": limit},
        )
        return [LessonText(*row) for row in rows]

    def with_term(self, term: str, *, topic: str, project: str | None) -> list[str]:
        _, rows = self._db.rows(
            """
            select l.id
              from lesson_text t
              join lesson_places p on p.no = t.rowid
              join lessons l on l.id = p.lesson_id
             where t.lesson_text match :match
               and l.topic = :topic
               and l.project is :project
            """,
            {"match": f"terms : {_quoted(term)}", "topic": topic, "project": project},
        )
        return [row[0] for row in rows]


def tags_of(topic: str, project: str | None) -> str:
    """Return a lesson's topic and project as two words of the index."""
    return f"{_tag('topic', topic)} {_tag('project', project)}"


def _any(terms: Mapping[str, float] | Sequence[str]) -> str:
    return " OR ".join(map(_quoted, terms))


def _quoted(term: str) -> str:
    return '"' + term.replace('"', '""') + '"'


def _tags(topic: str | None, project: str | None) -> list[str]:
    """Build the match for a topic, and for lessons of a project or of none."""
    tags = [f"tags : {_quoted(_tag('topic', topic))}"] if topic else []
    if project:
        tags.append(f"tags : ({_any([_tag('project', project), _tag('project', None)])})")
    return tags


def _tag(kind: str, value: str | None) -> str:
    # A digest is one word to the tokenizer.
    return f"{kind}{sha256((value or '').encode()).hexdigest()[:20]}"


class PostgresLessons(LessonSearch):
    def _put(self, lesson_id: str, topic: str, project: str | None, terms: Sequence[str]) -> None:
        times = Counter(terms)
        self._db.count(
            """
            with placed as (
              insert into lesson_text (lesson_id, topic, project, length)
              values (:lesson_id, :topic, :project, :length)
              returning no
            )
            insert into lesson_terms (term, lesson_no, times, length)
            select given.term, placed.no, given.times, :length
              from placed, unnest(cast(:terms as text[]), cast(:times as integer[])) as given (term, times)
            """,
            {
                "lesson_id": lesson_id,
                "topic": topic,
                "project": project,
                "length": length_of(terms),
                "terms": list(times),
                "times": list(times.values()),
            },
        )

    def _drop(self, lesson_id: str) -> int | None:
        row = self._db.one("delete from lesson_text where lesson_id = :lesson_id returning length", {"lesson_id": lesson_id})
        return row[0] if row else None

    def _clear(self) -> None:
        self._db.count("delete from lesson_terms", {})
        self._db.count("delete from lesson_text", {})

    def whole(self, lesson_ids: Sequence[str]) -> tuple[tuple[str, ...], list[Row]]:
        # As one value, so that one statement serves any number of them.
        sql = "select * from lessons where id = any(cast(:ids as text[])) order by created_at, id"
        return self._db.rows(sql, {"ids": list(lesson_ids)})

    def _counts(self, terms: Sequence[str]) -> dict[str, int]:
        sql = "select term, count(*) from lesson_terms where term = any(cast(:terms as text[])) group by term"
        found: dict[str, int] = dict(self._db.rows(sql, {"terms": list(terms)})[1])
        return {term: found.get(term, 0) for term in terms}

    def ranked(
        self, weights: Mapping[str, float], *, topic: str | None, project: str | None, limit: int
    ) -> list[tuple[str, float]]:
        lessons, terms = self._sums()
        if not weights or not lessons:
            return []
        bound: dict[str, Any] = {"terms": list(weights), "weights": list(weights.values())}
        bound |= {"average": terms / lessons, "limit": limit}
        clauses = []
        if topic:
            clauses.append("l.topic = :topic")
            bound["topic"] = topic
        if project:
            clauses.append("(l.project = :project or l.project is null)")
            bound["project"] = project
        narrowed = f"join lesson_text l on l.no = s.lesson_no where {' and '.join(clauses)}" if clauses else ""
        # Or else it is multiplied as a decimal, to the same number in several times the time.
        length = "cast(t.length as double precision)"
        # Each term by the index: without statistics the server would read the whole table.
        # Materialised: it takes a term for far rarer than it may be, and would look up each lesson to narrow them.
        _, rows = self._db.rows(
            f"""
            with said as {"" if clauses else "not"} materialized (
              select t.lesson_no,
                     a.weight * t.times * ({K1} + 1) / (t.times + {K1} * (1 - {B} + {B} * {length} / :average)) as score
                from unnest(cast(:terms as text[]), cast(:weights as double precision[])) as a (term, weight)
               cross join lateral (select lesson_no, times, length from lesson_terms where term = a.term offset 0) t
            )
            select l.lesson_id, best.score
              from (
                select s.lesson_no, sum(s.score) as score from said s {narrowed}
                 group by s.lesson_no
                 order by 2 desc, 1
                 limit :limit
              ) best
              join lesson_text l on l.no = best.lesson_no
             order by best.score desc, best.lesson_no
            """,
            bound,
        )
        return [(lesson_id, score) for lesson_id, score in rows]

    def containing(self, groups: Sequence[Sequence[str]], *, project: str | None, limit: int) -> "list[LessonText]":
        bound: dict[str, Any] = {"limit": limit, "project": project}
        wholes = []
        for number, group in enumerate(groups):
            bound |= {f"terms{number}": sorted(set(group)), f"count{number}": len(set(group))}
            wholes.append(
                f"""
                select lesson_no from lesson_terms
                 where term = any(cast(:terms{number} as text[]))
                 group by lesson_no having count(*) = :count{number}
                """
            )
        _, rows = self._db.rows(
            f"""
            select l.id, l.body
              from lesson_text t
              join lessons l on l.id = t.lesson_id
             where t.no in ({" union ".join(wholes)})
               and l.project is not distinct from :project
               and {HOLDS}
             order by t.no
             limit :limit
            """,
            bound,
        )
        return [LessonText(*row) for row in rows]

    def with_term(self, term: str, *, topic: str, project: str | None) -> list[str]:
        _, rows = self._db.rows(
            """
            select l.lesson_id
              from lesson_terms t
              join lesson_text l on l.no = t.lesson_no
             where t.term = :term
               and l.topic = :topic
               and l.project is not distinct from :project
             order by l.no
            """,
            {"term": term, "topic": topic, "project": project},
        )
        return [row[0] for row in rows]
