"""Memory: lessons that a log has learned, recalled when they matter."""

from dataclasses import replace
from datetime import datetime

from decklog.db.text.lessons import lesson_search
from decklog.db.text.vectors import LessonVectors
from decklog.db.where import Where
from decklog.errors import Invalid
from decklog.operations import reads, reads_in_steps, within_lease, writes, writes_in_steps
from decklog.records import Page
from decklog.stores.memory import ranking, topics
from decklog.stores.memory.embedding import embedded
from decklog.stores.memory.indexing import LessonIndex
from decklog.stores.memory.lesson import HOLDS, Hit, Lesson, Sighting
from decklog.stores.memory.upkeep import LessonUpkeep

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

MOST_HITS = 50
_CANDIDATES = 40
_EVIDENCE = 3


class Memory(LessonUpkeep):
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
        LessonIndex(self._db).catch_up()
        return self._db.read(lambda: self._best(query, topic, project, vector, limit, budget))

    def _best(
        self, query: str, topic: str | None, project: str | None, vector: "list[float]", limit: int, budget: int | None
    ) -> list[Hit]:
        question = ranking.Question(query, self._now())
        narrowing: dict[str, Any] = {"topic": topic, "project": project, "limit": _CANDIDATES}
        search = lesson_search(self._db)
        weights = search.weights([*question.terms, *question.signs])
        scores = dict(search.ranked(weights, **narrowing))
        near: dict[str, float] = {}
        if any(vector) and self.embedder:
            near = dict(LessonVectors(self._db).nearest(self.embedder.name, vector, **narrowing))
        lessons = self._lessons([*scores, *(lesson_id for lesson_id in near if lesson_id not in scores)])
        match = ranking.covered(lessons, scores, question, weights)
        parts: dict[str, Mapping[str, float]] = {"text": match}
        if near:
            parts["vector"] = {lesson_id: max(cosine, 0.0) for lesson_id, cosine in near.items()}
            match = ranking.fused(sorted(match, key=lambda lesson_id: (-match[lesson_id], lesson_id)), near)
        ranked = ranking.rank(lessons, question, match, parts)
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
        with LessonIndex(self._db).following():
            # Locked in one order by all, two recalls of the same lessons wait for each other and never cross.
            self._db.rows(f"select id from lessons where id in ({among}) order by id for update", names)
            changed = self._change_all(
                Lesson,
                f"""
                update lessons set recall_count = recall_count + 1, last_recalled_at = :now
                 where id in ({among})
                   and {HOLDS}
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
        with LessonIndex(self._db).following():
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
        include_hidden: bool = False,
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
        if not include_hidden:
            where.add(HOLDS)
        return self._page(Lesson, where, order=("created_at", "id"), limit=limit, after=after, descending=not oldest_first)

    @reads
    def evidence(self, lesson_id: str, *, limit: int = 20, after: str | None = None) -> Page[Sighting]:
        """List when and from what a lesson was learned, newest first."""
        self._fetch(Lesson, lesson_id)
        where = Where(Sighting)
        where.equal(lesson_id=lesson_id)
        return self._page(Sighting, where, order=("seen_at", "id"), limit=limit, after=after, descending=True)
