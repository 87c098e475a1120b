"""The upkeep of the memory: its topics, its indexes, its health, and lessons from elsewhere."""

from datetime import datetime, timedelta

from decklog.db.text.lessons import lesson_search
from decklog.db.text.vectors import LessonVectors
from decklog.errors import Invalid, Unavailable
from decklog.operations import reads, writes, writes_in_steps
from decklog.stores.memory import topics
from decklog.stores.memory.embedding import embedded
from decklog.stores.memory.learning import MemoryWriter
from decklog.stores.memory.lesson import HALF_LIFE_DAYS, Lesson, Topic

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_BATCH = 500


class MemoryUpkeep(MemoryWriter):
    """What keeps a memory in order, besides learning and recalling."""

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
