"""Memory: lessons of a log, and their recall."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from decklog.core.errors import Invalid
from decklog.db.search.lessons import lesson_search
from decklog.db.where import Where, placed
from decklog.records.operations import reads, reads_in_steps, within_lease, writes, writes_in_steps
from decklog.records.record import Page
from decklog.stores.checks import check_integer, check_share
from decklog.stores.memory import ranking, topics
from decklog.stores.memory import scope as scopes
from decklog.stores.memory.indexing import LessonIndex
from decklog.stores.memory.learning import Contradiction
from decklog.stores.memory.lesson import HOLDS, Hit, Hits, Lesson, Sighting, Topic
from decklog.stores.memory.proposals import Proposal
from decklog.stores.memory.proposing import LessonProposals
from decklog.stores.memory.upkeep import without_vectors
from decklog.stores.memory.vectors import Neighbours

MOST_HITS = 50
_CANDIDATES = 40
_EVIDENCE = 3
_NEWEST_SIGHTINGS = f"""
select * from (
  select * from sightings where lesson_id = :id{{number}} order by seen_at desc, id desc limit {_EVIDENCE}
) s{{number}}
"""


class Memory(LessonProposals):
    """Learns lessons, recalls those that fit a question, and records which of them helped."""

    records = (Topic, Lesson, Sighting, Contradiction, Proposal)
    derived = (
        *("lesson_text", "lesson_places", "lesson_terms", "lesson_sums", "lesson_marks", "lesson_vectors", "lesson_desk"),
        "proposal_marks",
    )

    @writes_in_steps
    def recall(
        self,
        query: str,
        *,
        topic: str | None = None,
        project: str | None = None,
        paths: list[str] | None = None,
        versions: list[str] | None = None,
        limit: int = 5,
        budget_tokens: int | None = None,
        min_match: float | None = None,
    ) -> Hits:
        """Recall the lessons that fit a question best, each with the reasons, and count the recall.

        `topic` selects one topic, and `project` that project's lessons and those without a project. `paths` and `versions`
        (NAME=VERSION) exclude lessons with another scope. `budget_tokens` limits their total length. An empty list means that
        nothing fits: `min_match` is the share of the question that a lesson must match, from 0 to 1, with a low default.
        """
        hits = self._hits(
            _RecallQuery(query, topic, project, paths or [], scopes.versions_of(versions or []), limit, budget_tokens, min_match)
        )
        if not hits:
            return hits
        counted = within_lease(self._db, lambda: self._count_recalls([hit.id for hit in hits]))
        return Hits((hit for hit in hits if hit.id in counted), hits.warnings)

    @reads_in_steps
    def peek(
        self,
        query: str,
        *,
        topic: str | None = None,
        project: str | None = None,
        paths: list[str] | None = None,
        versions: list[str] | None = None,
        limit: int = 5,
        budget_tokens: int | None = None,
        min_match: float | None = None,
    ) -> Hits:
        """Return what `recall` would return, without counting it."""
        return self._hits(
            _RecallQuery(query, topic, project, paths or [], scopes.versions_of(versions or []), limit, budget_tokens, min_match)
        )

    def _hits(self, request: "_RecallQuery") -> Hits:
        request.check()
        neighbours, vector, warnings = self._embed_question(request.query)
        LessonIndex(self._db).catch_up()
        if neighbours is not None and (warnings := self._embed_missing(neighbours)):
            neighbours = None
        hits = self._db.read(lambda: self._best(request, neighbours, vector))
        return Hits(hits, warnings or without_vectors(len(neighbours.missing) if neighbours is not None else 0))

    def _best(self, request: "_RecallQuery", neighbours: Neighbours | None, vector: list[float]) -> list[Hit]:
        narrowing: dict[str, Any] = {"topic": request.topic, "project": request.project, "limit": _CANDIDATES}
        question, search = ranking.RankingQuestion(request.query, self._now()), lesson_search(self._db)
        weights = search.weights([*question.terms, *question.signs])
        scores = dict(search.ranked(weights, **narrowing))
        cosines: dict[str, float] = {}
        above: dict[str, float] = {}
        if neighbours is not None:
            neighbours.load()
            cosines, above = neighbours.near(vector, **narrowing, also=scores)
        lessons = request.in_scope(self._lessons([*scores, *(lesson_id for lesson_id in cosines if lesson_id not in scores)]))
        match = ranking.compute_coverage(lessons, scores, question, weights)
        text = ranking.compute_coverage(lessons, scores, question, weights, terms=ranking.FLOOR_TERMS)
        parts: dict[str, Mapping[str, float]] = {"text": text}
        together = None
        if neighbours is not None:
            parts["meaning"] = {lesson_id: max(cosine, 0.0) for lesson_id, cosine in cosines.items()}
            together = getattr(neighbours.embedder, "least", ranking.FLOOR)
            match = ranking.fuse_rankings(lessons, match, above)
        enough = ranking.choose_thresholds(search.size(), together=together, wanted=request.min_match)
        found = ranking.rank(lessons, question, match, parts)
        taken = ranking.select(found, question, enough, budget_tokens=request.budget_tokens, limit=request.limit)
        return self._build_hits(taken, question)

    def _build_hits(self, taken: list[ranking.Ranked], question: ranking.RankingQuestion) -> list[Hit]:
        """Build hits with the evidence for and against each lesson."""
        ids = [one.lesson.id for one in taken]
        if not ids:
            return []
        evidence, against = self._evidence(ids), self._contradicting(ids)
        return [
            ranking.build_hit(
                one, question, evidence=evidence.get(one.lesson.id, []), contradicted_by=against.get(one.lesson.id, [])
            )
            for one in taken
        ]

    def _contradicting(self, lesson_ids: list[str]) -> dict[str, list[str]]:
        """Return the unsettled contradictions of these lessons."""
        marks, bound = placed(lesson_ids)
        _, rows = self._db.rows(
            f"""
            select lesson_id, other_id from contradictions
             where state = 'open' and (lesson_id in ({marks}) or other_id in ({marks}))
             order by found_at, id
            """,
            bound,
        )
        found: dict[str, list[str]] = {}
        for one, other in rows:
            found.setdefault(one, []).append(other)
            found.setdefault(other, []).append(one)
        return found

    def _evidence(self, lesson_ids: list[str]) -> dict[str, list[dict[str, object]]]:
        """Return the newest sightings of each lesson."""
        shown = ("seen_at", "source_kind", "source_id", "run_id", "task_id", "refs")
        # One statement with an indexed query per lesson; there are at most as many lessons as hits.
        newest = " union all ".join(_NEWEST_SIGHTINGS.format(number=number) for number in range(len(lesson_ids)))
        bound = {f"id{number}": lesson_id for number, lesson_id in enumerate(lesson_ids)}
        sightings = self._select(Sighting, newest, **bound)
        found: dict[str, list[dict[str, object]]] = {}
        for sighting in sorted(sightings, key=lambda one: (one.seen_at, one.id), reverse=True):
            seen = sighting.as_dict()
            found.setdefault(sighting.lesson_id, []).append({name: seen[name] for name in shown if seen[name]})
        return found

    def _count_recalls(self, lesson_ids: list[str]) -> set[str]:
        """Count a recall of each lesson, and return which of them are still active."""
        among, names = placed(lesson_ids)
        with LessonIndex(self._db).following():
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
        """Record whether a lesson helped; helpful lessons rank higher."""
        column = "useful_count" if useful else "harmful_count"
        with LessonIndex(self._db).following():
            return self._update(Lesson, lesson_id, {}, adding={column: 1}, note="useful" if useful else "harmful")

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
        where = Where(
            Lesson, topic=topic, project=project, source_kind=source_kind, source_id=source_id, run_id=run_id, task_id=task_id
        )
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
        where = Where(Sighting, lesson_id=lesson_id)
        return self._page(Sighting, where, order=("seen_at", "id"), limit=limit, after=after, descending=True)


@dataclass(frozen=True)
class _RecallQuery:
    """A question with its filters and limits."""

    query: str
    topic: str | None
    project: str | None
    paths: list[str]
    versions: dict[str, str]
    limit: int
    budget_tokens: int | None
    min_match: float | None

    def check(self) -> None:
        """Raise Invalid for arguments that make no sense."""
        if not self.query.strip():
            raise Invalid("a question needs words", field="query")
        check_integer("limit", self.limit, low=1, high=MOST_HITS)
        if self.budget_tokens is not None:
            check_integer("budget_tokens", self.budget_tokens, low=1)
        if self.min_match is not None:
            check_share("min_match", self.min_match)
        if self.topic is not None:
            topics.check_name(self.topic)

    def in_scope(self, lessons: list[Lesson]) -> list[Lesson]:
        """Return the lessons whose scope fits the requested versions and paths."""
        if not self.versions and not self.paths:
            return lessons
        return [lesson for lesson in lessons if scopes.matches_scope(lesson.scope, self.versions, self.paths)]
