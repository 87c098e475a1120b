"""Learning lessons: adding, counting repetitions, superseding, retiring, and settling contradictions."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Literal

from decklog.core.errors import Conflict, Invalid, NotFound
from decklog.db.search.lessons import LessonText, lesson_search
from decklog.db.where import Where, parse_enum
from decklog.records.operations import reads, within_lease, writes, writes_in_steps
from decklog.records.record import Page, Record
from decklog.stores.base import Store
from decklog.stores.checks import check_integer
from decklog.stores.memory import scope as scopes
from decklog.stores.memory import similarity, topics
from decklog.stores.memory.indexing import STREAM, LessonIndex, essence_term
from decklog.stores.memory.lesson import HOLDS, Lesson, Sighting, Topic
from decklog.stores.memory.text import signature, split_words

BOTH = "both"


class ContradictionState(StrEnum):
    OPEN = "open"
    SETTLED = "settled"
    BOTH_HOLD = "both_hold"


ContradictionStateLike = ContradictionState | Literal["open", "settled", "both_hold"]


@dataclass(frozen=True, kw_only=True)
class Contradiction(Record):
    """Two lessons that contradict each other. `about` names the words that differ."""

    table = "contradictions"
    home = "@memory"

    id: str
    lesson_id: str
    other_id: str
    about: str
    state: ContradictionState = ContradictionState.OPEN
    found_at: datetime
    settled_at: datetime | None = None
    settled_by: str | None = None
    reason: str | None = None


class LessonSettler(Store):
    """Replaces lessons by others, and tracks contradictions until somebody settles them."""

    @writes
    def supersede(self, lesson_id: str, by: str, *, reason: str | None = None) -> Lesson:
        """Replace a lesson by another one: it stays on record, and is no longer recalled."""
        self._lock_memory()
        lesson = self._fetch(Lesson, lesson_id)
        if lesson.superseded_by == by:
            return lesson.mark_already()
        if lesson.superseded_by is not None:
            raise Conflict(f"lesson {lesson_id} is superseded by {lesson.superseded_by} already", id=lesson_id)
        self._refuse_circle(lesson_id, by)
        return self._set_holding(lesson_id, {"superseded_by": by}, reason, "superseded_by is null", replaced_by=by)

    @writes
    def retire(self, lesson_id: str, *, reason: str | None = None) -> Lesson:
        """Retire a lesson without a replacement: it stays in the log and is no longer recalled."""
        self._lock_memory()
        if not (lesson := self._fetch(Lesson, lesson_id)).holds:
            return lesson.mark_already()
        return self._set_holding(lesson_id, {"retired_at": self._now()}, reason or "retired", replaced_by="nothing")

    @writes
    def reinstate(self, lesson_id: str) -> Lesson:
        """Reinstate a superseded or retired lesson."""
        self._lock_memory()
        if (lesson := self._fetch(Lesson, lesson_id)).holds:
            return lesson.mark_already()
        return self._set_holding(lesson_id, {"superseded_by": None, "retired_at": None}, "reinstated")

    def _set_holding(
        self, lesson_id: str, changes: dict[str, Any], note: str | None, condition: str = "", *, replaced_by: str | None = None
    ) -> Lesson:
        """Update a lesson and its index; settle its contradictions if it holds no more."""
        with LessonIndex(self._db).following() as index:
            changed = self._update(Lesson, lesson_id, changes, condition=condition, note=note)
            index.put(changed)
            if replaced_by is not None:
                self._close(lesson_id, replaced_by)
        return changed

    @writes
    def outdate(
        self,
        *,
        paths: list[str] | None = None,
        versions: list[str] | None = None,
        undone_commit: str | None = None,
        project: str | None = None,
    ) -> list[Lesson]:
        """Mark lessons about changed paths, versions or commits as outdated, until they are learned again.

        Versions are given as NAME=VERSION; those that a lesson does not hold for outdate it.
        """
        if not (paths or versions or undone_commit):
            raise Invalid("nothing is said to have changed; name paths, versions or an undone commit", field="paths")
        now_used = scopes.versions_of(versions or [])
        self._lock_memory()
        where = Where(Lesson, project=project)
        where.add(f"{HOLDS} and scope <> '{{}}' and outdated_at is null")
        found = self._list(Lesson, where, order="created_at, id")
        what = {lesson.id: scopes.explain_change(lesson.scope, now_used, paths or [], undone_commit) for lesson in found}
        now = self._now()
        with LessonIndex(self._db).following():
            return [
                self._update(Lesson, lesson_id, {"outdated_at": now, "outdated_by": reason}, note=reason)
                for lesson_id, reason in what.items()
                if reason is not None
            ]

    @reads
    def contradictions(
        self,
        lesson_id: str | None = None,
        *,
        state: ContradictionStateLike = ContradictionState.OPEN,
        limit: int = 20,
        after: str | None = None,
    ) -> Page[Contradiction]:
        """List contradictions between lessons, the newest first: those to settle, or those that were."""
        where = Where(Contradiction, state=parse_enum(ContradictionState, state, "state"))
        if lesson_id is not None:
            where.add("(lesson_id = :of or other_id = :of)", of=lesson_id)
        return self._page(Contradiction, where, order=("found_at", "id"), limit=limit, after=after, descending=True)

    @writes
    def settle(self, contradiction_id: str, keep: str, *, by: str | None = None, reason: str | None = None) -> Contradiction:
        """Settle a contradiction: KEEP is the lesson that holds, which supersedes the other one, or `both`."""
        self._lock_memory()
        found = self._fetch(Contradiction, contradiction_id)
        lessons = (found.lesson_id, found.other_id)
        if keep not in (*lessons, BOTH):
            raise Invalid(f"keep is {keep!r}; it is {lessons[0]}, {lessons[1]} or both", field="keep")
        if found.state is not ContradictionState.OPEN:
            raise Conflict(f"contradiction {contradiction_id} is {found.state} already", id=contradiction_id, state=found.state)
        settled = self._decide(contradiction_id, both=keep == BOTH, by=by, reason=reason)
        if keep != BOTH:
            other = lessons[0] if keep == lessons[1] else lessons[1]
            self.reinstate(keep)
            if self._fetch(Lesson, other).superseded_by is None:
                self.supersede(other, keep)
        return settled

    def _decide(self, contradiction_id: str, *, both: bool, by: str | None, reason: str | None) -> Contradiction:
        with LessonIndex(self._db).following():
            return self._update(
                Contradiction,
                contradiction_id,
                {
                    "state": ContradictionState.BOTH_HOLD if both else ContradictionState.SETTLED,
                    "settled_at": self._now(),
                    "settled_by": by,
                    "reason": reason,
                },
                condition="state = 'open'",
            )

    def _lock_memory(self) -> None:
        """Lock the memory against other writers of lessons until this transaction ends."""
        self._db.lock_stream(STREAM)
        self._db.rows("select id from lesson_desk where id = 1 for update", {})

    def _oppose(self, lesson: Lesson, other: Lesson | LessonText, about: str) -> Contradiction:
        """Record that two lessons contradict each other, unless it is known."""
        both = "(lesson_id = :one and other_id = :other) or (lesson_id = :other and other_id = :one)"
        known = self._first(Contradiction, f"select * from contradictions where {both}", one=lesson.id, other=other.id)
        if known is not None:
            return known.mark_already()
        return self._add(
            Contradiction,
            note=about,
            id=self._ids.new("contradiction"),
            lesson_id=lesson.id,
            other_id=other.id,
            about=about,
            found_at=self._now(),
        )

    def _oppose_again(self, lesson: Lesson, other: Lesson, why: str) -> Contradiction:
        """Record a contradiction to settle; a settled one is reopened."""
        found = self._oppose(lesson, other, why)
        if found.state is ContradictionState.OPEN:
            return found
        return self._update(
            Contradiction,
            found.id,
            {"state": "open", "settled_at": None, "settled_by": None, "reason": None},
            condition="state <> 'open'",
            note=why,
        )

    def _close(self, lesson_id: str, by: str) -> None:
        """Settle the contradictions of a lesson that is no longer active."""
        self._change_all(
            Contradiction,
            """
            update contradictions set state = 'settled', settled_at = :now, reason = :reason
             where state = 'open'
               and (lesson_id = :lesson_id or other_id = :lesson_id)
            returning *
            """,
            lesson_id=lesson_id,
            now=self._now(),
            reason=f"{lesson_id} is superseded by {by}",
        )

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


LONGEST_BODY = 4000
# The number of lessons with most words in common that are compared word by word with a new one.
_COMPARED = 12
_CANDIDATES = 32
_MOST_CONTRADICTIONS = 5
# A lesson that is stated again within this time after a recall was most likely just read.
_JUST_RECALLED = timedelta(days=1)
_KIND = re.compile(r"[a-z][a-z0-9_-]{0,62}")
_REF = re.compile(r"(\S{1,200}):([1-9]\d*)")


class LessonWriter(LessonSettler):
    """Adds lessons, and merges those that state the same."""

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
        if not split_words(body):
            raise Invalid("a lesson needs words", field="body")
        if len(body) > LONGEST_BODY:
            raise Invalid(
                f"a lesson has at most {LONGEST_BODY} characters and this one has {len(body)}",
                hint="Say what to do next time; keep the details as an artifact.",
                field="body",
            )
        if not _KIND.fullmatch(source_kind):
            raise Invalid(f"{source_kind!r} can't be a kind of source: lower-case letters, digits, _ and -", field="source_kind")
        topics.check_name(topic)
        return {
            "topic": topic,
            "body": body,
            "project": project or None,
            "confidence": check_integer("confidence", confidence, high=100),
            "source_kind": source_kind,
        }

    def _payload(self, topic: str, payload: dict[str, Any], body: str) -> dict[str, Any]:
        """Check a payload, and give a failure its normalized error signature."""
        if topic == "failure_patterns" and isinstance(payload, dict):
            message = payload.get("error_signature") or body
            payload = {**payload, "error_signature": signature(message) if isinstance(message, str) else message}
        topics.check_payload(topic, payload)
        return payload

    def _remember(self, given: dict[str, Any], refs: list[str], key: str | None) -> Lesson:
        self._check_topic(given["topic"])
        self._check_refs(refs)
        self._lock_memory()
        with LessonIndex(self._db).following() as index:
            return self._learned(given, refs, key, index)

    def _learned(self, given: dict[str, Any], refs: list[str], key: str | None, index: LessonIndex) -> Lesson:
        if (seen := self._seek_by(Sighting, key=key)) is not None:
            return self._fetch(Lesson, seen.lesson_id).mark_already()
        # Compare values as they are stored, after redaction.
        body, _ = self._db.values.bind_text("body", given["body"])
        project, _ = self._db.values.bind_value("project", given["project"])
        if (known := self._same(given["topic"], project, body)) is not None:
            return self._learned_again(known, given, refs, key, index)
        lesson = self._write(given)
        self._see(lesson, given, refs, key, again=False)
        notes = self._contradicted(lesson)
        index.put(lesson)
        return lesson.warned(notes)

    def _learned_again(
        self, known: Lesson, given: dict[str, Any], refs: list[str], key: str | None, index: LessonIndex
    ) -> Lesson:
        """Count a lesson as seen again, unless it was only recalled here and is repeated without new evidence."""
        if self._was_only_recalled(known, given, refs):
            notes = [f"lesson {known.id} was recalled lately; saying it again is no proof of it, and is not counted without refs"]
            if known.superseded_by is not None:
                notes.append(f"lesson {known.id} was superseded by {known.superseded_by} and stays hidden")
            return known.mark_already().warned(notes)
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
        """Return warnings if a repeated lesson had been superseded or retired, and record a contradiction."""
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
        """Find and record lessons that contradict a new one; return warnings."""
        notes: list[str] = []
        for other in self._near(lesson.body, lesson.project):
            about = similarity.contradiction(lesson.body, other.body)
            if about is not None and len(notes) < _MOST_CONTRADICTIONS:
                found = self._oppose(lesson, other, about)
                command = f"decklog memory settle {found.id} KEEP"
                notes.append(f"contradicts {other.id} ({about}): {other.body!r}; settle it: {command}")
        return notes

    def _near(self, body: str, project: str | None) -> list[LessonText]:
        """Find active lessons of a project, of any topic, that have most of the terms of a text."""
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
        """Find the lesson that states this already. Active lessons come first."""
        found = [lesson for lesson in self._lessons_like(topic, project, body) if similarity.alike(lesson.body, body)]
        return min(found, key=lambda lesson: (not lesson.holds, lesson.created_at, lesson.id), default=None)

    def _lessons_like(self, topic: str, project: str | None, body: str) -> Iterator[Lesson]:
        exact = self._select_by(Lesson, fingerprint=self._fingerprint(body), topic=topic)
        yield from (lesson for lesson in exact if lesson.project == project)
        others = lesson_search(self._db).with_term(essence_term(body), topic=topic, project=project)
        yield from self._lessons(others[:_CANDIDATES])

    def _lessons(self, lesson_ids: list[str]) -> list[Lesson]:
        if not lesson_ids:
            return []
        # Generated ids need no check and no redaction.
        names, rows = lesson_search(self._db).whole(lesson_ids)
        return Lesson.from_rows(names, rows)

    def _write(self, given: dict[str, Any], **more: Any) -> Lesson:
        now = self._now()
        body, _ = self._db.values.bind_text("body", given["body"])
        fields: dict[str, Any] = {"id": self._ids.new("lesson"), "created_at": now, "last_seen_at": now, **given, **more}
        return self._add(Lesson, note=given["topic"], fingerprint=self._fingerprint(body), **fields)

    def _fingerprint(self, body: str) -> str:
        digest = similarity.fingerprint(body)
        # A generated digest is no secret, though it may look like one.
        self._db.values.mark_clean(digest)
        return digest

    def _count(self, known: Lesson, given: dict[str, Any]) -> Lesson:
        """Count one more sighting, add new payload fields, and keep the higher confidence."""
        payload = {**given["payload"], **known.payload}
        return self._update(
            Lesson,
            known.id,
            {
                "last_seen_at": self._now(),
                "payload": payload,
                "confidence": max(known.confidence, given["confidence"]),
                "scope": {**known.scope, **given["scope"]},
                "outdated_at": None,
                "outdated_by": None,
            },
            adding={"sightings": 1},
            note="seen again",
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


def _nearest(body: str, texts: list[LessonText]) -> list[LessonText]:
    """Return the lessons with most words in common: comparing all word by word would take too long."""
    words = set(body.casefold().split())
    return sorted(texts, key=lambda said: (-len(words.intersection(said.body.casefold().split())), said.id))[:_COMPARED]
