"""Learning: a lesson is written down once, and counted when it is learned again."""

import re
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

from decklog.core.errors import Invalid, NotFound
from decklog.db.search.lessons import Saying, lesson_search
from decklog.records.operations import within_lease, writes_in_steps
from decklog.stores.memory import scope as scopes
from decklog.stores.memory import similarity, topics
from decklog.stores.memory.error_signatures import signature
from decklog.stores.memory.indexing import LessonIndex, essence_term
from decklog.stores.memory.lesson import Lesson, Sighting, Topic
from decklog.stores.memory.settling import LessonSettler
from decklog.stores.memory.tokens import words_of

LONGEST_BODY = 4000
# How many of the lessons that share most words with a new one are compared with it, word by word.
_COMPARED = 12
_CANDIDATES = 32
_MOST_CONTRADICTIONS = 5
# Who says again what was recalled within this time has most likely just read it.
_JUST_RECALLED = timedelta(days=1)
_KIND = re.compile(r"[a-z][a-z0-9_-]{0,62}")
_REF = re.compile(r"(\S{1,200}):([1-9]\d*)")


class LessonWriter(LessonSettler):
    """Keeps lessons apart that differ and together that do not."""

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
        scope: dict[str, object] | None = None,
        key: str | None = None,
    ) -> Lesson:
        """Add a lesson; an equal one in this topic and project is counted as seen again.

        `refs` name the journal entries that show it, as STREAM:NUMBER. `scope` limits where it applies: versions, paths, a
        commit. A contradicting lesson is named in `warnings`. With a key that is known already, its lesson comes back as it is.
        Only write down what was verified: a guess is not a lesson.
        """
        given = self._checked(topic, body, project, confidence, source_kind)
        given["scope"] = scope or {}
        scopes.check(given["scope"])
        given |= {"source_id": source_id, "run_id": run_id, "task_id": task_id}
        given["payload"] = self._payload(topic, {} if payload is None else payload, body)
        return within_lease(self._db, lambda: self._remember(given, refs or [], key))

    def _checked(self, topic: str, body: str, project: str | None, confidence: int, source_kind: str) -> dict[str, Any]:
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

    def _payload(self, topic: str, payload: dict[str, Any], body: str) -> dict[str, Any]:
        """Check a payload; give a failure the signature it is looked up by, without what differs between occurrences."""
        if topic == "failure_patterns" and isinstance(payload, dict):
            message = payload.get("error_signature") or body
            payload = {**payload, "error_signature": signature(message) if isinstance(message, str) else message}
        topics.check_payload(topic, payload)
        return payload

    def _remember(self, given: dict[str, Any], refs: list[str], key: str | None) -> Lesson:
        self._check_topic(given["topic"])
        self._check_refs(refs)
        self._alone()
        with LessonIndex(self._db).following() as index:
            return self._learned(given, refs, key, index)

    def _learned(self, given: dict[str, Any], refs: list[str], key: str | None, index: LessonIndex) -> Lesson:
        if key is not None and (seen := self._select(Sighting, "select * from sightings where key = :key", key=key)):
            return self._fetch(Lesson, seen[0].lesson_id).marked_already()
        # What is compared must be what is stored: a secret that was taken out makes no difference.
        (body, _), (project, _) = self._db.values.text("body", given["body"]), self._db.values.one("project", given["project"])
        if (known := self._same(given["topic"], project, body)) is not None:
            return self._learned_again(known, given, refs, key, index)
        lesson = self._write(given)
        self._see(lesson, given, refs, key, again=False)
        warnings = self._contradicted(lesson)
        index.put(lesson)
        return lesson.warned(warnings)

    def _learned_again(
        self, known: Lesson, given: dict[str, Any], refs: list[str], key: str | None, index: LessonIndex
    ) -> Lesson:
        """Count a lesson as seen once more, unless it was only read here and is said again without anything that shows it."""
        if self._was_only_recalled(known, given, refs):
            told = [f"lesson {known.id} was recalled lately; saying it again is no proof of it, and is not counted without refs"]
            if known.superseded_by is not None:
                told.append(f"lesson {known.id} was superseded by {known.superseded_by} and stays hidden")
            return known.marked_already().warned(told)
        lesson = self._count(known, given)
        self._see(lesson, given, refs, key, again=True)
        if lesson.payload != known.payload:
            index.put(lesson)
        return lesson.warned(self._superseded(lesson))

    def _was_only_recalled(self, known: Lesson, given: dict[str, Any], refs: list[str]) -> bool:
        if refs or given["source_id"] or known.last_recalled_at is None:
            return False
        return self._now() - known.last_recalled_at < _JUST_RECALLED

    def _superseded(self, lesson: Lesson) -> list[str]:
        """Say that a lesson which was learned again had been superseded, and keep that the two disagree."""
        if lesson.retired_at is not None:
            return [f"lesson {lesson.id} was retired and stays hidden; if it holds again: decklog memory reinstate {lesson.id}"]
        if lesson.superseded_by is None:
            return []
        successor = self._fetch(Lesson, lesson.superseded_by)
        found = self._oppose_again(lesson, successor, "learned again after it was superseded")
        return [
            f"lesson {lesson.id} was superseded by {successor.id} ({successor.body!r}) and stays hidden; "
            f"if it holds again: decklog memory settle {found.id} {lesson.id}"
        ]

    def _contradicted(self, lesson: Lesson) -> list[str]:
        """Find what says otherwise than a new lesson; keep it as contradictions, and tell of them."""
        told: list[str] = []
        for other in self._near(lesson.body, lesson.project):
            about = similarity.contradiction(lesson.body, other.body)
            if about is not None and len(told) < _MOST_CONTRADICTIONS:
                found = self._oppose(lesson, other, about)
                told.append(f"contradicts {other.id} ({about}): {other.body!r}; settle it: decklog memory settle {found.id} KEEP")
        return told

    def _near(self, body: str, project: str | None) -> list[Saying]:
        """Find lessons of a project that hold, of whatever topic, and have most of the terms of a text."""
        groups = similarity.groups_of(body)
        return _nearest(body, lesson_search(self._db).containing(groups, project=project, limit=_CANDIDATES)) if groups else []

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

    def _same(self, topic: str, project: str | None, body: str) -> Lesson | None:
        """Find the lesson that says this already; one that holds before one that was superseded."""
        found = [lesson for lesson in self._lessons_like(topic, project, body) if similarity.alike(lesson.body, body)]
        return min(found, key=lambda lesson: (not lesson.holds, lesson.created_at, lesson.id), default=None)

    def _lessons_like(self, topic: str, project: str | None, body: str) -> Iterator[Lesson]:
        exact = self._select(
            Lesson,
            "select * from lessons where fingerprint = :fingerprint and topic = :topic",
            fingerprint=self._fingerprint(body),
            topic=topic,
        )
        yield from (lesson for lesson in exact if lesson.project == project)
        others = lesson_search(self._db).with_term(essence_term(body), topic=topic, project=project)
        yield from self._lessons(others[:_CANDIDATES])

    def _lessons(self, lesson_ids: list[str]) -> list[Lesson]:
        if not lesson_ids:
            return []
        # Ids of our own making, so there is nothing to check or redact in them.
        names, rows = lesson_search(self._db).whole(lesson_ids)
        return Lesson.from_rows(names, rows)

    def _write(self, given: dict[str, Any], **more: Any) -> Lesson:
        now = self._now()
        body, _ = self._db.values.text("body", given["body"])
        fields: dict[str, Any] = {"id": self._ids.new("lesson"), "created_at": now, "last_seen_at": now, **given, **more}
        return self._add(Lesson, note=given["topic"], fingerprint=self._fingerprint(body), **fields)

    def _fingerprint(self, body: str) -> str:
        digest = similarity.fingerprint(body)
        # It is ours, and as long as many a secret: there is nothing to look for in it.
        self._db.values.vouch(digest)
        return digest

    def _count(self, known: Lesson, given: dict[str, Any]) -> Lesson:
        """Count one more sighting; what the new one knows beyond the old is added, and the surer of the two stands."""
        payload = {**given["payload"], **known.payload}
        return self._change(
            Lesson,
            known.id,
            """
            update lessons
               set sightings = sightings + 1, last_seen_at = :now, payload = :payload, confidence = :confidence, scope = :scope,
                   outdated_at = null, outdated_by = null
             where id = :id
            returning *
            """,
            note="seen again",
            now=self._now(),
            payload=payload,
            scope={**known.scope, **given["scope"]},
            confidence=max(known.confidence, given["confidence"]),
        )

    def _see(self, lesson: Lesson, given: dict[str, Any], refs: list[str], key: str | None, *, again: bool) -> None:
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


def _nearest(body: str, sayings: list[Saying]) -> list[Saying]:
    """Choose the lessons that share most words with a text: to compare each of them word by word would take too long."""
    words = set(body.casefold().split())
    return sorted(sayings, key=lambda said: (-len(words.intersection(said.body.casefold().split())), said.id))[:_COMPARED]
