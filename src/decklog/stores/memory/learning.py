"""Learning: a lesson is written down once, and counted when it is learned again."""

import re

from decklog.db.text.lessons import lesson_search
from decklog.db.text.vectors import LessonVectors
from decklog.errors import Conflict, Invalid, NotFound
from decklog.operations import within_lease, writes, writes_in_steps
from decklog.stores.base import Store
from decklog.stores.memory import similarity, topics
from decklog.stores.memory.embedding import Embedder, embedded
from decklog.stores.memory.error_signatures import signature
from decklog.stores.memory.lesson import Lesson, Sighting, Topic
from decklog.stores.memory.tokens import senses_of, words_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

LONGEST_BODY = 4000
_CANDIDATES = 50
_KIND = re.compile(r"[a-z][a-z0-9_-]{0,62}")
_REF = re.compile(r"(\S{1,200}):([1-9]\d*)")


class LessonWriter(Store):
    """Keeps lessons apart that differ and together that do not."""

    records = (Topic, Lesson, Sighting)

    # Set it to search by meaning too; see `decklog.stores.memory.embedding`.
    embedder: Embedder | None = None

    @writes_in_steps
    def remember(
        self,
        topic: str,
        body: str,
        *,
        payload: dict[str, object] | None = None,
        project: str | None = None,
        confidence: int = 80,
        source_kind: str = "run",
        source_id: str | None = None,
        run_id: str | None = None,
        task_id: str | None = None,
        refs: list[str] | None = None,
        key: str | None = None,
    ) -> Lesson:
        """Learn a lesson; one that says the same already, in this topic and project, is counted as seen once more.

        `refs` name the journal entries that show it, as STREAM:NUMBER. With a key that is known already, its lesson comes back as
        it is. Only write down what was verified: a guess is not a lesson.
        """
        given = self._checked(topic, body, project, confidence, source_kind)
        given |= {"source_id": source_id, "run_id": run_id, "task_id": task_id}
        given["payload"] = self._payload(topic, {} if payload is None else payload, body)
        # Embedding may take seconds, and nobody else can write while a transaction is open.
        vectors = embedded(self.embedder, [body]) if self.embedder else []
        return within_lease(self._db, lambda: self._remember(given, refs or [], key, vectors))

    def _checked(self, topic: str, body: str, project: str | None, confidence: int, source_kind: str) -> "dict[str, Any]":
        if not words_of(body):
            raise Invalid("a lesson needs words", field="body")
        if len(body) > LONGEST_BODY:
            raise Invalid(
                f"a lesson has at most {LONGEST_BODY} characters and this one has {len(body)}",
                hint="Say what to do next time; keep the details as an artifact.",
                field="body",
            )
        if not 0 <= confidence <= 100:
            raise Invalid(f"confidence is {confidence}; it goes from 0 to 100", field="confidence")
        if not _KIND.fullmatch(source_kind):
            raise Invalid(f"{source_kind!r} can't be a kind of source: lower-case letters, digits, _ and -", field="source_kind")
        topics.check_name(topic)
        return {
            "topic": topic,
            "body": body,
            "project": project or None,
            "confidence": confidence,
            "source_kind": source_kind,
        }

    def _payload(self, topic: str, payload: "dict[str, Any]", body: str) -> "dict[str, Any]":
        """Check a payload; give a failure the signature it is looked up by, without what differs between occurrences."""
        if topic == "failure_patterns" and isinstance(payload, dict):
            message = payload.get("error_signature") or body
            payload = {**payload, "error_signature": signature(message) if isinstance(message, str) else message}
        topics.check_payload(topic, payload)
        return payload

    def _remember(self, given: "dict[str, Any]", refs: list[str], key: str | None, vectors: "list[list[float]]") -> Lesson:
        self._check_topic(given["topic"])
        self._check_refs(refs)
        self._alone()
        if key is not None and (seen := self._select(Sighting, "select * from sightings where key = :key", key=key)):
            return self._fetch(Lesson, seen[0].lesson_id).marked_already()
        known = self._same(given)
        lesson = self._count(known, given) if known else self._write(given)
        self._see(lesson, given, refs, key, again=known is not None)
        if vectors and known is None and self.embedder:
            LessonVectors(self._db).put(lesson.id, self.embedder.name, vectors[0])
        return lesson

    def _alone(self) -> None:
        """Be the only one who adds or supersedes lessons until this transaction ends."""
        self._db.lock_stream("@memory")
        self._db.rows("select id from lesson_desk where id = 1 for update", {})

    def _check_topic(self, name: str) -> None:
        if name not in topics.TOPICS and self._seek(Topic, name) is None:
            raise NotFound(
                f"there is no topic {name!r}; there are {', '.join(sorted([*topics.TOPICS, *self._added_topics()]))}",
                hint=f"Add it first: decklog memory add-topic {name} DESCRIPTION",
                topic=name,
            )

    def _added_topics(self) -> dict[str, str]:
        _, rows = self._db.rows("select name, description from topics order by name", {})
        return dict(rows)

    def _check_refs(self, refs: list[str]) -> None:
        for ref in refs:
            parts = _REF.fullmatch(ref)
            if parts is None:
                raise Invalid(f"{ref!r} names no journal entry; write STREAM:NUMBER", field="refs")
            self._journal.get(parts[1], int(parts[2]))

    def _same(self, given: "dict[str, Any]") -> Lesson | None:
        """Find the lesson that says this already: word for word, or nearly."""
        # What is compared must be what is stored: a secret that was taken out makes no difference.
        (body, _), (project, _) = self._db.values.text("body", given["body"]), self._db.values.one("project", given["project"])
        for lesson in self._lessons_like(given["topic"], project, body):
            if similarity.alike(lesson.body, body):
                return lesson
        return None

    def _lessons_like(self, topic: str, project: str | None, body: str) -> "Iterator[Lesson]":
        exact = self._select(
            Lesson,
            """
            select * from lessons
             where fingerprint = :fingerprint
               and topic = :topic
             order by case when superseded_by is null then 0 else 1 end, created_at, id
            """,
            fingerprint=similarity.fingerprint(body),
            topic=topic,
        )
        yield from (lesson for lesson in exact if lesson.project == project)
        found = lesson_search(self._db).containing(similarity.groups_of(body), topic=topic, project=project, limit=_CANDIDATES)
        yield from self._lessons(found)

    def _lessons(self, lesson_ids: "list[str]") -> "list[Lesson]":
        if not lesson_ids:
            return []
        # Ids of our own making, so there is nothing to check or redact in them.
        bound = {f"id{number}": lesson_id for number, lesson_id in enumerate(lesson_ids)}
        marks = ", ".join(f":{name}" for name in bound)
        names, rows = self._db.rows(f"select * from lessons where id in ({marks}) order by created_at, id", bound)
        return [Lesson.from_row(names, row) for row in rows]

    def _write(self, given: "dict[str, Any]", **more: "Any") -> Lesson:
        now = self._now()
        body, _ = self._db.values.text("body", given["body"])
        fields = {"id": self._ids.new("lesson"), "created_at": now, "last_seen_at": now, **given, **more}
        lesson = self._add(Lesson, note=given["topic"], fingerprint=similarity.fingerprint(body), **fields)
        self._index(lesson)
        return lesson

    def _count(self, known: Lesson, given: "dict[str, Any]") -> Lesson:
        """Count one more sighting; what the new one knows beyond the old is added, and the surer of the two stands."""
        payload = {**given["payload"], **known.payload}
        lesson = self._change(
            Lesson,
            known.id,
            """
            update lessons set sightings = sightings + 1, last_seen_at = :now, payload = :payload, confidence = :confidence
             where id = :id
            returning *
            """,
            note="seen again",
            now=self._now(),
            payload=payload,
            confidence=max(known.confidence, given["confidence"]),
        )
        if payload != known.payload and lesson.superseded_by is None:
            self._index(lesson)
        return lesson

    def _see(self, lesson: Lesson, given: "dict[str, Any]", refs: list[str], key: str | None, *, again: bool) -> None:
        self._add(
            Sighting,
            id=self._ids.new("sighting"),
            lesson_id=lesson.id,
            body=given["body"] if again and given["body"] != lesson.body else None,
            source_kind=given["source_kind"],
            source_id=given["source_id"],
            run_id=given["run_id"],
            task_id=given["task_id"],
            refs=refs,
            key=key,
            seen_at=lesson.last_seen_at,
        )

    def _index(self, lesson: Lesson) -> None:
        words = words_of(lesson.body)
        said = set(words)
        words += [word for word in words_of(" ".join(_texts(lesson.payload))) if word not in said]
        lesson_search(self._db).put(lesson.id, lesson.topic, lesson.project, words, senses_of(words))

    @writes
    def supersede(self, lesson_id: str, by: str) -> Lesson:
        """Replace a lesson by another one: it stays on record, and is no longer recalled."""
        self._alone()
        lesson = self._fetch(Lesson, lesson_id)
        if lesson.superseded_by == by:
            return lesson.marked_already()
        if lesson.superseded_by is not None:
            raise Conflict(f"lesson {lesson_id} is superseded by {lesson.superseded_by} already", id=lesson_id)
        self._refuse_circle(lesson_id, by)
        changed = self._change(
            Lesson,
            lesson_id,
            "update lessons set superseded_by = :by where id = :id and superseded_by is null returning *",
            by=by,
        )
        lesson_search(self._db).drop(lesson_id)
        return changed

    def _refuse_circle(self, lesson_id: str, by: str) -> None:
        following: str | None = by
        while following is not None:
            if following == lesson_id:
                raise Invalid(
                    f"lesson {lesson_id} can't be superseded by {by}: {by} is, in the end, superseded by it"
                    if by != lesson_id
                    else f"lesson {lesson_id} can't supersede itself",
                    field="by",
                )
            following = self._fetch(Lesson, following).superseded_by


def _texts(value: object) -> "Iterator[str]":
    """Give the texts inside a JSON value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for inner in value.values():
            yield from _texts(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _texts(inner)
