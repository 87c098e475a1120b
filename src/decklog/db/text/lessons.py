"""The full-text index of the lessons that hold: FTS5 with BM25 on SQLite, a GIN index with cover density on PostgreSQL."""

from hashlib import sha256

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, Protocol

    from decklog.db.base import Database

    class LessonSearch(Protocol):
        """Knows which lessons have which words; keeps up with them in the caller's transaction."""

        def put(self, lesson_id: str, topic: str, project: str | None, words: Sequence[str], senses: Sequence[str]) -> None:
            """Index a lesson, anew if it was there."""

        def drop(self, lesson_id: str) -> None:
            """Take a lesson out."""

        def clear(self) -> None:
            """Take all lessons out."""

        def ranked(
            self, words: Sequence[str], senses: Sequence[str], *, topic: str | None, project: str | None, limit: int
        ) -> list[tuple[str, float]]:
            """Find lessons with any of the words or senses, best first, each with its score."""

        def containing(self, groups: Sequence[Sequence[str]], *, topic: str, project: str | None, limit: int) -> list[str]:
            """Find lessons of one topic and project that have all the words of at least one group."""


# In a large memory, the senses that are asked for match one lesson in so many.
_SHARE = 25


def lesson_search(db: "Database") -> "LessonSearch":
    """Give the index of a database."""
    return SqliteLessons(db) if db.engine == "sqlite" else PostgresLessons(db)


class SqliteLessons:
    # Up to this many lessons, scoring every match is cheap enough.
    small = 20_000

    def __init__(self, db: "Database") -> None:
        self._db = db

    def put(self, lesson_id: str, topic: str, project: str | None, words: "Sequence[str]", senses: "Sequence[str]") -> None:
        known = self._place(lesson_id)
        if known is not None:
            self._db.count("delete from lesson_text where rowid = :no", {"no": known})
        else:
            self._db.count("insert into lesson_places (lesson_id) values (:lesson_id)", {"lesson_id": lesson_id})
        self._db.count(
            "insert into lesson_text (rowid, words, senses, tags) values (:no, :words, :senses, :tags)",
            {
                "no": self._place(lesson_id),
                "words": " ".join(words),
                "senses": " ".join(senses),
                "tags": f"{_tag('topic', topic)} {_tag('project', project)}",
            },
        )

    def _place(self, lesson_id: str) -> int | None:
        row = self._db.one("select no from lesson_places where lesson_id = :lesson_id", {"lesson_id": lesson_id})
        return row[0] if row else None

    def drop(self, lesson_id: str) -> None:
        if (place := self._place(lesson_id)) is not None:
            self._db.count("delete from lesson_text where rowid = :no", {"no": place})

    def clear(self) -> None:
        self._db.count("delete from lesson_text", {})

    def ranked(
        self,
        words: "Sequence[str]",
        senses: "Sequence[str]",
        *,
        topic: str | None,
        project: str | None,
        limit: int,
    ) -> "list[tuple[str, float]]":
        wanted = self._wanted(words, senses)
        if not wanted:
            return []
        match = " AND ".join([f"({' OR '.join(wanted)})", *_tags(topic, project)])
        # The index sorts by its own rank column without building a row for each match; a join inside would make it do so.
        _, rows = self._db.rows(
            """
            select p.lesson_id, -t.rank
              from (select rowid, rank from lesson_text where lesson_text match :match order by rank limit :limit) t
              join lesson_places p on p.no = t.rowid
             order by t.rank, p.lesson_id
            """,
            {"match": match, "limit": limit},
        )
        return [(lesson_id, score) for lesson_id, score in rows]

    def _wanted(self, words: "Sequence[str]", senses: "Sequence[str]") -> list[str]:
        """Spell what makes a lesson a match: any of the words, or of the senses."""
        affordable = self._affordable(senses)
        wanted = [f"words : ({_any(words)})"] if words else []
        return wanted + ([f"senses : ({_any(affordable)})"] if affordable else [])

    def _affordable(self, senses: "Sequence[str]") -> list[str]:
        """Choose the senses to ask for: all of them, and in a large memory the rarest.

        Scoring a match costs ten times as much as finding it, and there a common sense matches a tenth of all lessons.
        """
        row = self._db.one("select max(no) from lesson_places", {})
        total = (row[0] or 0) if row else 0
        if total <= self.small:
            return list(senses)
        chosen: list[str] = []
        matches = 0
        for count, sense in sorted((self._count(sense), sense) for sense in senses):
            matches += count
            if not chosen or matches <= total // _SHARE:
                chosen.append(sense)
        return chosen

    def _count(self, sense: str) -> int:
        row = self._db.one("select doc from lesson_words where term = :sense", {"sense": sense})
        return row[0] if row else 0

    def containing(self, groups: "Sequence[Sequence[str]]", *, topic: str, project: str | None, limit: int) -> "list[str]":
        whole = " OR ".join(f"({' AND '.join(map(_quoted, group))})" for group in groups)
        tags = f"tags : {_quoted(_tag('topic', topic))} AND tags : {_quoted(_tag('project', project))}"
        _, rows = self._db.rows(
            """
            select p.lesson_id
              from lesson_text t
              join lesson_places p on p.no = t.rowid
             where t.lesson_text match :match
             limit :limit
            """,
            {"match": f"words : ({whole}) AND {tags}", "limit": limit},
        )
        return [row[0] for row in rows]


def _any(words: "Sequence[str]") -> str:
    return " OR ".join(map(_quoted, words))


def _quoted(word: str) -> str:
    return '"' + word.replace('"', '""') + '"'


def _tags(topic: str | None, project: str | None) -> list[str]:
    """Ask for a topic, and for lessons of a project or of none."""
    tags = [f"tags : {_quoted(_tag('topic', topic))}"] if topic else []
    if project:
        tags.append(f"tags : ({_any([_tag('project', project), _tag('project', None)])})")
    return tags


def _tag(kind: str, value: str | None) -> str:
    # A digest is one word to the tokenizer whatever the value is; the 0 keeps the stemmer off its end.
    return f"{kind}{sha256((value or '').encode()).hexdigest()[:20]}0"


class PostgresLessons:
    def __init__(self, db: "Database") -> None:
        self._db = db

    def put(self, lesson_id: str, topic: str, project: str | None, words: "Sequence[str]", senses: "Sequence[str]") -> None:
        self._db.count(
            """
            insert into lesson_text (lesson_id, topic, project, words)
            values (:lesson_id, :topic, :project,
                    setweight(to_tsvector('english', :words), 'A') || setweight(to_tsvector('simple', :senses), 'D'))
            on conflict (lesson_id) do update set words = excluded.words, topic = excluded.topic, project = excluded.project
            """,
            {
                "lesson_id": lesson_id,
                "topic": topic,
                "project": project,
                "words": " ".join(words),
                "senses": " ".join(senses),
            },
        )

    def drop(self, lesson_id: str) -> None:
        self._db.count("delete from lesson_text where lesson_id = :lesson_id", {"lesson_id": lesson_id})

    def clear(self) -> None:
        self._db.count("delete from lesson_text", {})

    def ranked(
        self,
        words: "Sequence[str]",
        senses: "Sequence[str]",
        *,
        topic: str | None,
        project: str | None,
        limit: int,
    ) -> "list[tuple[str, float]]":
        if not (words or senses):
            return []
        bound: dict[str, Any] = {"words": _or(words), "senses": _or(senses), "limit": limit}
        clauses = ["words @@ q"]
        if topic:
            clauses.append("topic = :topic")
            bound["topic"] = topic
        if project:
            clauses.append("(project = :project or project is null)")
            bound["project"] = project
        _, rows = self._db.rows(
            f"""
            select lesson_id, ts_rank_cd('{{1, 0, 0, 0.5}}', words, q) as score
              from lesson_text,
                   (select to_tsquery('english', :words) || to_tsquery('simple', :senses) as q) as query
             where {" and ".join(clauses)}
             order by score desc, lesson_id
             limit :limit
            """,
            bound,
        )
        return [(lesson_id, score) for lesson_id, score in rows]

    def containing(self, groups: "Sequence[Sequence[str]]", *, topic: str, project: str | None, limit: int) -> "list[str]":
        query = " | ".join(f"({' & '.join(map(_term, group))})" for group in groups)
        same_project = "project = :project" if project else "project is null"
        _, rows = self._db.rows(
            f"""
            select lesson_id
              from lesson_text
             where words @@ to_tsquery('english', :query)
               and topic = :topic
               and {same_project}
             limit :limit
            """,
            {"query": query, "topic": topic, "limit": limit, **({"project": project} if project else {})},
        )
        return [row[0] for row in rows]


def _or(words: "Sequence[str]") -> str:
    return " | ".join(map(_term, words))


def _term(word: str) -> str:
    return "'" + word.replace("\\", "\\\\").replace("'", "''") + "'"
