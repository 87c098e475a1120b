"""Memory: lessons that a log has learned, recalled when they matter."""

from dataclasses import replace
from datetime import datetime, timedelta

from decklog.db.text.lessons import lesson_search
from decklog.db.text.vectors import LessonVectors
from decklog.db.where import Where
from decklog.errors import Invalid, Unavailable
from decklog.operations import reads, reads_in_steps, within_lease, writes, writes_in_steps
from decklog.records import Page
from decklog.stores.memory import ranking, topics
from decklog.stores.memory.embedding import embedded
from decklog.stores.memory.learning import LessonWriter
from decklog.stores.memory.lesson import HALF_LIFE_DAYS, Hit, Lesson, Sighting, Topic

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

MOST_HITS = 50
_BATCH = 500
_CANDIDATES = 40
_EVIDENCE = 3


class Memory(LessonWriter):
    """Learns lessons, recalls the ones that fit a question, and hears which of them helped."""

    @writes_in_steps
    def recall(
        self,
        query: str,
        *,
        topic: str | None = None,
        project: str | None = None,
        limit: int = 5,
        budget_tokens: int | None = None,
    ) -> list[Hit]:
        """Recall the lessons that fit a question best, each with the reasons why, and count that they were recalled.

        `topic` keeps to one topic, `project` to that project's lessons and those of none. `budget_tokens` bounds their length
        together.
        """
        hits = self._hits(query, topic, project, limit, budget_tokens)
        if not hits:
            return []
        counted = within_lease(self._db, lambda: self._count_recalls([hit.id for hit in hits]))
        return [hit for hit in hits if hit.id in counted]

    @reads_in_steps
    def peek(
        self,
        query: str,
        *,
        topic: str | None = None,
        project: str | None = None,
        limit: int = 5,
        budget_tokens: int | None = None,
    ) -> list[Hit]:
        """Look what `recall` would give, without counting it."""
        return self._hits(query, topic, project, limit, budget_tokens)

    def _hits(self, query: str, topic: str | None, project: str | None, limit: int, budget: int | None) -> list[Hit]:
        if not query.strip():
            raise Invalid("a question needs words", field="query")
        if not 1 <= limit <= MOST_HITS:
            raise Invalid(f"limit is {limit}; a recall gives 1 to {MOST_HITS} lessons", field="limit")
        if budget is not None and budget < 1:
            raise Invalid(f"budget_tokens is {budget}; give at least 1", field="budget_tokens")
        if topic is not None:
            topics.check_name(topic)
        vector = embedded(self.embedder, [query])[0] if self.embedder else []
        return self._db.read(lambda: self._best(query, topic, project, vector, limit, budget))

    def _best(
        self, query: str, topic: str | None, project: str | None, vector: "list[float]", limit: int, budget: int | None
    ) -> list[Hit]:
        question = ranking.Question(query, self._now(), self._added_topics())
        narrowing: dict[str, Any] = {"topic": topic, "project": project, "limit": _CANDIDATES}
        scored = lesson_search(self._db).ranked(question.words, question.senses, **narrowing)
        match = ranking.relative(scored)
        parts: dict[str, Mapping[str, float]] = {"text": match}
        if any(vector) and self.embedder:
            near = LessonVectors(self._db).nearest(self.embedder.name, vector, **narrowing)
            match = ranking.fused(match, [lesson_id for lesson_id, _ in near])
            parts["vector"] = {lesson_id: max(cosine, 0.0) for lesson_id, cosine in near}
        ranked = ranking.rank(self._lessons(list(match)), question, match, parts)
        return [
            replace(ranking.hit(one, question), evidence=self._evidence(one.lesson.id))
            for one in ranking.within(ranked, budget, limit)
        ]

    def _evidence(self, lesson_id: str) -> "list[dict[str, object]]":
        """List what a lesson rests on, the newest sightings first."""
        found = self._select(
            Sighting,
            f"""
            select * from sightings
             where lesson_id = :lesson_id
             order by seen_at desc, id desc
             limit {_EVIDENCE}
            """,
            lesson_id=lesson_id,
        )
        shown = ("seen_at", "source_kind", "source_id", "run_id", "task_id", "refs")
        seen = [sighting.as_dict() for sighting in found]
        return [{name: sighting[name] for name in shown if sighting[name]} for sighting in seen]

    def _count_recalls(self, lesson_ids: "list[str]") -> "set[str]":
        """Count a recall of each; say which of them still hold."""
        names = {f"id{number}": lesson_id for number, lesson_id in enumerate(lesson_ids)}
        among = ", ".join(f":{name}" for name in names)
        self._db.lock_stream("@memory")
        # Locked in one order by all, two recalls of the same lessons wait for each other and never cross.
        self._db.rows(f"select id from lessons where id in ({among}) order by id for update", names)
        changed = self._change_all(
            Lesson,
            f"""
            update lessons set recall_count = recall_count + 1, last_recalled_at = :now
             where id in ({among})
               and superseded_by is null
            returning *
            """,
            note="recalled",
            now=self._now(),
            **names,
        )
        return {lesson.id for lesson in changed}

    @writes
    def mark(self, lesson_id: str, useful: bool) -> Lesson:
        """Say whether a lesson helped; those that help are recalled before those that harm."""
        column = "useful_count" if useful else "harmful_count"
        return self._change(
            Lesson,
            lesson_id,
            f"update lessons set {column} = {column} + 1 where id = :id returning *",
            note="useful" if useful else "harmful",
        )

    @reads
    def get(self, lesson_id: str) -> Lesson:
        """Get a lesson."""
        return self._fetch(Lesson, lesson_id)

    @reads
    def find(
        self,
        run_id: str | None = None,
        *,
        topic: str | None = None,
        project: str | None = None,
        source_kind: str | None = None,
        source_id: str | None = None,
        task_id: str | None = None,
        min_confidence: int | None = None,
        include_superseded: bool = False,
        since: datetime | None = None,
        until: datetime | None = None,
        oldest_first: bool = False,
        limit: int = 20,
        after: str | None = None,
    ) -> Page[Lesson]:
        """List lessons that hold, newest first."""
        where = Where(Lesson)
        where.equal(topic=topic, project=project, source_kind=source_kind, source_id=source_id, run_id=run_id, task_id=task_id)
        where.between("created_at", since, until)
        if min_confidence is not None:
            where.add("confidence >= :least", least=min_confidence)
        if not include_superseded:
            where.add("superseded_by is null")
        return self._page(Lesson, where, order=("created_at", "id"), limit=limit, after=after, descending=not oldest_first)

    @reads
    def evidence(self, lesson_id: str, *, limit: int = 20, after: str | None = None) -> Page[Sighting]:
        """List when and from what a lesson was learned, newest first."""
        self._fetch(Lesson, lesson_id)
        where = Where(Sighting)
        where.equal(lesson_id=lesson_id)
        return self._page(Sighting, where, order=("seen_at", "id"), limit=limit, after=after, descending=True)

    # Upkeep

    @writes
    def add_topic(self, name: str, description: str) -> Topic:
        """Add a topic to the eight that every log knows; a known one comes back as it is."""
        topics.check_name(name)
        if name in topics.TOPICS:
            raise Invalid(f"every log knows the topic {name} already: {topics.TOPICS[name].about}", field="name")
        if not description.strip():
            raise Invalid("a topic needs a description", field="description")
        return self._once(
            lambda: self._seek(Topic, name),
            lambda: self._add(Topic, name=name, description=description, created_at=self._now()),
        )

    @reads
    def topics(self) -> "list[dict[str, Any]]":
        """List the topics with what each is about and how many lessons of it hold."""
        about = {name: shape.about for name, shape in topics.TOPICS.items()} | self._added_topics()
        _, rows = self._db.rows("select topic, count(*) from lessons where superseded_by is null group by topic", {})
        counts: dict[str, int] = dict(rows)
        return [{"topic": name, "about": text, "lessons": counts.get(name, 0)} for name, text in about.items()]

    @reads
    def health(self) -> "dict[str, Any]":
        """Say how the memory is used: useful recalls should be 15 to 40 in a hundred, and stale lessons under 30."""
        _, rows = self._db.rows(
            """
            select count(*),
                   cast(coalesce(sum(recall_count), 0) as bigint),
                   cast(coalesce(sum(useful_count), 0) as bigint),
                   cast(coalesce(sum(harmful_count), 0) as bigint),
                   cast(coalesce(sum(case when coalesce(last_recalled_at, created_at) < :stale then 1 else 0 end), 0) as bigint)
              from lessons
             where superseded_by is null
            """,
            self._db.values.bind({"stale": self._now() - timedelta(days=HALF_LIFE_DAYS)})[0],
        )
        lessons, recalls, useful, harmful, stale = rows[0]
        return {
            "lessons": lessons,
            "recalls": recalls,
            "useful": useful,
            "harmful": harmful,
            "useful_share": round(useful / recalls, 4) if recalls else None,
            "stale": stale,
            "stale_share": round(stale / lessons, 4) if lessons else None,
            "consolidate": bool(lessons) and stale / lessons > 0.3,
            "embedder": self.embedder.name if self.embedder else None,
            "vectors_by": LessonVectors(self._db).engine() if self.embedder else None,
        }

    @writes
    def reindex(self) -> int:
        """Build the full-text index anew from the lessons that hold; say how many there are."""
        lesson_search(self._db).clear()
        last, count = "", 0
        while batch := self._select(
            Lesson,
            f"select * from lessons where superseded_by is null and id > :last order by id limit {_BATCH}",
            last=last,
        ):
            for lesson in batch:
                self._index(lesson)
            last, count = batch[-1].id, count + len(batch)
        return count

    @writes_in_steps
    def embed(self, *, limit: int = 1000) -> int:
        """Give lessons that have none a vector of the embedder in use; say how many got one."""
        embedder = self.embedder
        if embedder is None:
            raise Unavailable("there is no embedder", hint="Set log.memory.embedder in Python first.")
        kept = LessonVectors(self._db)
        missing = self._db.read(lambda: kept.without(embedder.name, limit))
        vectors = embedded(embedder, [body for _, body in missing]) if missing else []

        def keep() -> int:
            for (lesson_id, _), vector in zip(missing, vectors, strict=True):
                kept.put(lesson_id, embedder.name, vector)
            return len(missing)

        return self._db.write(keep)

    @writes
    def adopt(
        self,
        lesson_id: str,
        topic: str,
        body: str,
        *,
        created_at: datetime,
        payload: dict[str, object] | None = None,
        project: str | None = None,
        confidence: int = 80,
        source_kind: str = "import",
        source_id: str | None = None,
        recall_count: int = 0,
        last_recalled_at: datetime | None = None,
        key: str | None = None,
    ) -> Lesson:
        """Take over a lesson from another system as it is, with its id and counts; a known id comes back as it is.

        It is neither compared with others nor held to its topic's shape: nothing that was on record may get lost.
        """
        if (known := self._seek(Lesson, lesson_id)) is not None:
            return known.marked_already()
        given = self._checked(topic, body, project, confidence, source_kind)
        self._check_topic(topic)
        given |= {"payload": payload or {}, "source_id": source_id, "run_id": None, "task_id": None}
        lesson = self._write(
            given,
            id=lesson_id,
            created_at=created_at,
            last_seen_at=created_at,
            recall_count=recall_count,
            last_recalled_at=last_recalled_at,
        )
        self._see(lesson, given, [], key, again=False)
        return lesson
