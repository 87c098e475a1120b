"""Maintenance of the memory: topics, health, index, vectors, and imported lessons."""

from collections.abc import Callable, Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any

from decklog.core.errors import DecklogError, Invalid, Unavailable
from decklog.db.search.vectors import LessonVectors
from decklog.db.where import page_size, placed
from decklog.journal.entry import EntryKind
from decklog.records.operations import reads, writes, writes_in_steps
from decklog.records.record import Record
from decklog.records.values import from_json, to_json
from decklog.stores.base import StoreParts
from decklog.stores.checks import check_filled
from decklog.stores.memory import similarity, topics
from decklog.stores.memory.indexing import STREAM, LessonIndex, audit_index
from decklog.stores.memory.learning import LessonWriter
from decklog.stores.memory.lesson import HALF_LIFE_DAYS, HOLDS, Lesson, Topic
from decklog.stores.memory.semantic.model import kept_model
from decklog.stores.memory.vectors import Embedder, Neighbours, embed_texts
from decklog.stores.results.memory import LessonFinding, MemoryFinding, MemoryHealth, SemanticSearchStatus, TopicSummary

# The subtype of entries with the digests of vectors.
EMBEDDED = "embedded"
# The number of lessons that a recall embeds first: half a second with a small model.
_ON_THE_WAY = 32
_MOST_CHARACTERS = 8_000
_TOGETHER = 64


class LessonEmbedding(LessonWriter):
    """Embeds lessons with the configured embedder."""

    def __init__(self, parts: StoreParts) -> None:
        super().__init__(parts)
        self._model: Callable[[], Embedder] | None = kept_model
        self._own: Embedder | None = None
        self._by_name: dict[tuple[str, int], Neighbours] = {}

    @property
    def embedder(self) -> Embedder | None:
        """The embedder: the local model unless another is set; None if only words are used."""
        try:
            return self._embedder()
        except Unavailable:
            return None

    @embedder.setter
    def embedder(self, embedder: Embedder | None) -> None:
        self._own, self._model = embedder, None

    def _embedder(self) -> Embedder | None:
        """Return the embedder, or None if only words were requested. Raise `Unavailable` if it can't be loaded."""
        return self._model() if self._model is not None else self._own

    @writes_in_steps
    def embed(self, *, limit: int | None = None) -> int:
        """Embed lessons that have no vector of the current embedder, newest first; return how many."""
        neighbours = self._needed_neighbours()
        self._db.read(neighbours.load)
        wanted = neighbours.missing[:limit]
        return sum(self._embed(neighbours.embedder, wanted[at : at + _TOGETHER]) for at in range(0, len(wanted), _TOGETHER))

    @writes
    def index_vectors(self) -> bool:
        """Create a pgvector index for more than 30,000 lessons on PostgreSQL; return False if it exists.

        Vectors can't be written while the index is made, which takes minutes for 100,000. SQLite needs none, and refuses.
        """
        if self._db.engine == "sqlite":
            raise Invalid("in a SQLite file vectors are compared by the process that asks, and need no index")
        return self._needed_neighbours().index.make()

    def _needed_neighbours(self) -> Neighbours:
        embedder = self._embedder()
        if embedder is None:
            raise Unavailable("there is no embedder", hint="Set log.memory.embedder in Python first.")
        return self._neighbours(embedder)

    def _neighbours(self, embedder: Embedder) -> Neighbours:
        key = (embedder.name, embedder.dimensions)
        neighbours = self._by_name.setdefault(key, Neighbours(self._db, embedder))
        neighbours.embedder = embedder
        return neighbours

    def _embed_question(self, query: str) -> tuple[Neighbours | None, list[float], list[str]]:
        """Embed a question. If that fails, return a warning that only words are used."""
        try:
            embedder = self._embedder()
            if embedder is None:
                return None, [], []
            [vector] = embed_texts(embedder, [query])
        except DecklogError as problem:
            return None, [], [_by_words(problem)]
        return (self._neighbours(embedder) if any(vector) else None), vector, []

    def _embed_missing(self, neighbours: Neighbours) -> list[str]:
        """Embed a few of the lessons without a vector, if the caller may write now; return a warning if that fails."""
        if self._db.read_only or self._db.is_reading or self._db.is_in_transaction:
            return []
        self._db.read(neighbours.load)
        try:
            if neighbours.missing:
                self._embed(neighbours.embedder, neighbours.missing[:_ON_THE_WAY], _MOST_CHARACTERS)
        except DecklogError as problem:
            return [_by_words(problem)]
        return []

    def _embed(self, embedder: Embedder, lesson_ids: list[str], most_characters: int | None = None) -> int:
        """Embed lessons outside of any transaction, then store their vectors. Return their number."""
        bodies = self._db.read(lambda: self._bodies(lesson_ids, most_characters))
        vectors = dict(zip(bodies, embed_texts(embedder, list(bodies.values())), strict=True)) if bodies else {}
        if vectors:
            self._db.write(lambda: self._keep_vectors(embedder.name, vectors))
        return len(vectors)

    def _bodies(self, lesson_ids: list[str], most_characters: int | None) -> dict[str, str]:
        """Load the texts of active lessons, newest id first, up to a total length."""
        marks, bound = placed(lesson_ids)
        _, rows = self._db.rows(f"select id, body from lessons where id in ({marks}) and {HOLDS} order by id desc", bound)
        taken: dict[str, str] = {}
        for lesson_id, body in rows:
            if taken and most_characters is not None and sum(map(len, taken.values())) + len(body) > most_characters:
                break
            taken[lesson_id] = body
        return taken

    def _keep_vectors(self, embedder: str, vectors: dict[str, list[float]]) -> None:
        """Store vectors of lessons, and record their digests for verification."""
        kept = LessonVectors(self._db)
        with LessonIndex(self._db).following():
            digests = {lesson_id: kept.put(lesson_id, embedder, vector) for lesson_id, vector in vectors.items()}
            payload = {"embedder": embedder, "vectors": digests}
            self._journal.append(STREAM, kind=EntryKind.EVENT, subtype=EMBEDDED, payload=payload)


def _by_words(problem: DecklogError) -> str:
    return f"by words alone: {problem.message}" + (f". {problem.hint}" if problem.hint else "")


def without_vectors(count: int) -> list[str]:
    """Return a warning for lessons without a vector."""
    if not count:
        return []
    what = "1 lesson is found by its words" if count == 1 else f"{count} lessons are found by their words"
    return [f"{what} alone until {'it is' if count == 1 else 'they are'} embedded: decklog memory embed"]


# A lesson that nobody recalled counts as unused after this time.
_SETTLING_IN_DAYS = 30
_LOOKED_AT = 200
_NEARLY_EQUAL = 0.75
_STALE = "coalesce(last_recalled_at, created_at) < :stale"
# What to report: the kind, the condition of its rows, what is wrong, and what to do.
_PROPOSED = (
    "proposals",
    "state = 'open'",
    "proposed lessons with enough evidence, not yet decided",
    "decklog memory accept ID, or: decklog memory dismiss ID",
)
_WRONG = (
    (
        "harmful",
        "harmful_count > useful_count",
        "did more harm than good",
        "decklog memory retire LESSON, or supersede it by what is right",
    ),
    (
        "never_useful",
        "recall_count >= 5 and useful_count = 0 and harmful_count = 0",
        "recalled five times or more, and never marked useful",
        "decklog memory mark LESSON true, or: decklog memory retire LESSON",
    ),
    (
        "never_recalled",
        "recall_count = 0 and created_at < :settled_in",
        f"older than {_SETTLING_IN_DAYS} days, and no question ever found it",
        "reword it to match how people search, or: decklog memory retire LESSON",
    ),
    (
        "outdated",
        "outdated_at is not null",
        "what it holds for has changed",
        "see whether it still holds: learn it again with refs, or: decklog memory retire LESSON",
    ),
    (
        "stale",
        f"recall_count > 0 and {_STALE}",
        f"not recalled for {HALF_LIFE_DAYS} days",
        "see whether it still holds: learn it again with refs, or: decklog memory retire LESSON",
    ),
)


class LessonUpkeep(LessonEmbedding):
    """Maintains a memory."""

    @writes
    def add_topic(self, name: str, description: str) -> Topic:
        """Add a topic to the eight that every log knows; a known one comes back as it is."""
        topics.check_name(name)
        if name in topics.TOPICS:
            raise Invalid(f"every log knows the topic {name} already: {topics.TOPICS[name].about}", field="name")
        check_filled("description", description)
        return self._find_or_add(
            lambda: self._seek(Topic, name),
            lambda: self._add(Topic, name=name, description=description, created_at=self._now()),
        )

    @reads
    def topics(self) -> list[TopicSummary]:
        """List the topics with what each is about and how many lessons of it hold."""
        about = {name: shape.about for name, shape in topics.TOPICS.items()} | self._added_topics()
        _, rows = self._db.rows(f"select topic, count(*) from lessons where {HOLDS} group by topic", {})
        counts: dict[str, int] = dict(rows)
        return [{"topic": name, "about": text, "lessons": counts.get(name, 0)} for name, text in about.items()]

    @reads
    def health(self, *, limit: int = 5) -> MemoryHealth:
        """Report how the memory is used, and which lessons need attention and why, up to LIMIT of each.

        Useful recalls should be 15 to 40 in a hundred, and stale lessons under 30.
        """
        lessons, recalls, useful, harmful, stale = self._figures()
        return {
            "lessons": lessons,
            "recalls": recalls,
            "useful": useful,
            "harmful": harmful,
            "useful_share": round(useful / recalls, 4) if recalls else None,
            "stale": stale,
            "stale_share": round(stale / lessons, 4) if lessons else None,
            "consolidate": bool(lessons) and stale / lessons > 0.3,
            "to_do": [finding for finding in self._findings(page_size(limit)) if finding["count"]],
            **self._meaning(),
        }

    def _meaning(self) -> SemanticSearchStatus:
        """Return the state of semantic search: the embedder or why there is none, and the lessons without a vector."""
        try:
            embedder = self._embedder()
        except Unavailable as problem:
            return {"embedder": None, "by_words_because": problem.message}
        if embedder is None:
            return {"embedder": None}
        return {"embedder": embedder.name, "without_vector": LessonVectors(self._db).without(embedder.name)}

    def _figures(self) -> tuple[int, int, int, int, int]:
        row = self._db.one(
            f"""
            select count(*),
                   cast(coalesce(sum(recall_count), 0) as bigint),
                   cast(coalesce(sum(useful_count), 0) as bigint),
                   cast(coalesce(sum(harmful_count), 0) as bigint),
                   cast(coalesce(sum(case when {_STALE} then 1 else 0 end), 0) as bigint)
              from lessons
             where {HOLDS}
            """,
            self._db.values.bind(self._dates())[0],
        )
        assert row is not None
        return row

    def _dates(self) -> dict[str, datetime]:
        now = self._now()
        return {"stale": now - timedelta(days=HALF_LIFE_DAYS), "settled_in": now - timedelta(days=_SETTLING_IN_DAYS)}

    def _findings(self, limit: int) -> Iterator[MemoryFinding]:
        """Yield the problems with their lessons and a recommended action."""
        yield self._contradictory(limit)
        yield self._listed("proposals", "confidence desc, id", *_PROPOSED, limit)
        for kind, condition, what, do in _WRONG:
            yield self._listed("lessons", "created_at, id", kind, f"{HOLDS} and {condition}", what, do, limit)
        yield self._near_equal(limit)

    def _contradictory(self, limit: int) -> MemoryFinding:
        row = self._db.one("select count(*) from contradictions where state = 'open'", {})
        found = self.contradictions(limit=limit)
        return {
            "kind": "contradictions",
            "count": row[0] if row else 0,
            "what": "two lessons that can't both be followed",
            "do": "decklog memory settle ID LESSON, or: decklog memory settle ID both",
            "found": [{"id": one.id, "about": one.about, "lessons": [one.lesson_id, one.other_id]} for one in found],
        }

    def _listed(self, table: str, order: str, kind: str, condition: str, what: str, do: str, limit: int) -> MemoryFinding:
        """Count the rows that meet a condition, and list the first of them."""
        bound = {key: value for key, value in self._db.values.bind(self._dates())[0].items() if f":{key}" in condition}
        row = self._db.one(f"select count(*) from {table} where {condition}", bound)
        _, rows = self._db.rows(f"select id, body from {table} where {condition} order by {order} limit {limit}", bound)
        found: list[LessonFinding] = [{"id": record_id, "body": body} for record_id, body in rows]
        return {"kind": kind, "count": row[0] if row else 0, "what": what, "do": do, "found": found}

    def _near_equal(self, limit: int) -> MemoryFinding:
        """Find recent lessons that nearly repeat an older one without a known contradiction."""
        newest = self._select(Lesson, f"select * from lessons where {HOLDS} order by created_at desc, id desc limit {_LOOKED_AT}")
        pairs: dict[frozenset[str], LessonFinding] = {}
        for lesson in newest:
            for other in self._near(lesson.body, lesson.project):
                pair = frozenset((lesson.id, other.id))
                if other.id != lesson.id and pair not in pairs and similarity.nearness(lesson.body, other.body) >= _NEARLY_EQUAL:
                    pairs[pair] = {"lessons": [lesson.id, other.id], "bodies": [lesson.body, other.body]}
        _, rows = self._db.rows("select lesson_id, other_id from contradictions", {})
        known = {frozenset(row) for row in rows}
        found = [both for pair, both in pairs.items() if pair not in known]
        return {
            "kind": "near_equal",
            "count": len(found),
            "what": f"nearly the same said twice, among the {_LOOKED_AT} newest",
            "do": "decklog memory supersede LESSON BY",
            "found": found[:limit],
        }

    @writes
    def reindex(self) -> int:
        """Rebuild the full-text index from the active lessons; return their number."""
        index = LessonIndex(self._db)
        index.forget()
        with index.following():
            row = self._db.one(f"select count(*) from lessons where {HOLDS}", {})
        return row[0] if row else 0

    def audit(self, _record_classes: Mapping[str, type[Record]]) -> Iterator[dict[str, Any]]:
        """Yield vectors that differ from their recorded digests, and the problems of the index."""
        yield from self._find_lock_row_problems("lesson_desk", "id", [1])
        yield from self._find_lock_row_problems("lesson_sums", "id", [1])
        yield from audit_index(self._db)
        for embedder, lesson_id, is_told in self._strange_vectors():
            where = {"table": "lesson_vectors", "record_id": to_json([str(embedder), str(lesson_id)])}
            what = f"the vector of lesson {lesson_id} by {embedder} is not the one that was made"
            yield {"what": what, **where, "column": "dimensions" if is_told else "vector"}

    def _strange_vectors(self) -> Iterator[tuple[str, str, bool]]:
        """Yield vectors that differ from their record, and whether only the dimensions are wrong."""
        digests: dict[tuple[str, str], str] = {}
        sql = "select payload from entries where subtype = :subtype and kind <> 'change' and stream = '@memory' order by pos"
        for (payload,) in self._db.each_as_is(sql, {"subtype": EMBEDDED}):
            said: Any = from_json(payload)
            digests.update({(said["embedder"], lesson_id): digest for lesson_id, digest in said["vectors"].items()})
        for embedder, lesson_id, digest, is_counted in LessonVectors(self._db).digests():
            is_told = digests.get((embedder, lesson_id)) == digest
            if not is_told or not is_counted:
                yield embedder, lesson_id, is_told

    def derive(self) -> None:
        self._db.write(self._derive_anew)
        self._by_name.clear()
        self.reindex()

    def _derive_anew(self) -> None:
        self._restore_lock_rows("lesson_desk", "id", [1])
        # Delete them: the embedder creates them again, while an unrecorded vector would stay wrong forever.
        for embedder, lesson_id, _ in list(self._strange_vectors()):
            self._db.count(
                "delete from lesson_vectors where embedder = :embedder and lesson_id = :lesson_id",
                {"embedder": embedder, "lesson_id": lesson_id},
            )

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
        """Import a lesson from another system unchanged, with its id and counts; a known id is returned as it is.

        It is neither compared with other lessons nor checked against its topic, so that no recorded lesson is lost.
        """
        self._lock_memory()
        if (known := self._seek(Lesson, lesson_id)) is not None:
            return known.mark_already()
        given = self._checked(topic, body, project, confidence, source_kind)
        self._check_topic(topic)
        given |= {"payload": payload or {}, "source_id": source_id, "run_id": None, "task_id": None}
        with LessonIndex(self._db).following() as index:
            lesson = self._write(
                given,
                id=lesson_id,
                created_at=created_at,
                last_seen_at=created_at,
                recall_count=recall_count,
                last_recalled_at=last_recalled_at,
            )
            index.put(lesson)
            self._see(lesson, given, [], key, again=False)
        return lesson
