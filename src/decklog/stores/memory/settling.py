"""Contradictions: lessons that can't both be followed, kept apart, told, and settled by whoever knows."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Literal

from decklog.core.errors import Conflict, Invalid
from decklog.db.search.lessons import Saying
from decklog.db.where import Where, enum_of
from decklog.records.operations import reads, writes
from decklog.records.record import Page, Record
from decklog.stores.base import Store
from decklog.stores.memory import scope as scopes
from decklog.stores.memory.indexing import STREAM, LessonIndex
from decklog.stores.memory.lesson import HOLDS, Lesson

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
    """Replaces lessons by others, and keeps those that contradict each other until it is known which one holds."""

    @writes
    def supersede(self, lesson_id: str, by: str, *, reason: str | None = None) -> Lesson:
        """Replace a lesson by another one: it stays on record, and is no longer recalled."""
        self._alone()
        lesson = self._fetch(Lesson, lesson_id)
        if lesson.superseded_by == by:
            return lesson.marked_already()
        if lesson.superseded_by is not None:
            raise Conflict(f"lesson {lesson_id} is superseded by {lesson.superseded_by} already", id=lesson_id)
        self._refuse_circle(lesson_id, by)
        with LessonIndex(self._db).following() as index:
            changed = self._change(
                Lesson,
                lesson_id,
                "update lessons set superseded_by = :by where id = :id and superseded_by is null returning *",
                note=reason,
                by=by,
            )
            index.put(changed)
            self._close(lesson_id, by)
        return changed

    @writes
    def retire(self, lesson_id: str, *, reason: str | None = None) -> Lesson:
        """Retire a lesson without a replacement: it stays in the log and is no longer recalled."""
        self._alone()
        if not (lesson := self._fetch(Lesson, lesson_id)).holds:
            return lesson.marked_already()
        with LessonIndex(self._db).following() as index:
            changed = self._change(
                Lesson,
                lesson_id,
                "update lessons set retired_at = :now where id = :id returning *",
                note=reason or "retired",
                now=self._now(),
            )
            index.put(changed)
            self._close(lesson_id, "nothing")
        return changed

    @writes
    def reinstate(self, lesson_id: str) -> Lesson:
        """Reinstate a superseded or retired lesson."""
        self._alone()
        if (lesson := self._fetch(Lesson, lesson_id)).holds:
            return lesson.marked_already()
        with LessonIndex(self._db).following() as index:
            changed = self._change(
                Lesson,
                lesson_id,
                "update lessons set superseded_by = null, retired_at = null where id = :id returning *",
                note="reinstated",
            )
            index.put(changed)
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
        self._alone()
        where = Where(Lesson)
        where.equal(project=project)
        where.add(f"{HOLDS} and scope <> '{{}}' and outdated_at is null")
        found = self._select(Lesson, f"select * from lessons {where.sql} order by created_at, id", **where.bound)
        what = {lesson.id: scopes.changed(lesson.scope, now_used, paths or [], undone_commit) for lesson in found}
        with LessonIndex(self._db).following():
            return [self._outdate(lesson_id, reason) for lesson_id, reason in what.items() if reason is not None]

    def _outdate(self, lesson_id: str, reason: str) -> Lesson:
        return self._change(
            Lesson,
            lesson_id,
            "update lessons set outdated_at = :now, outdated_by = :reason where id = :id returning *",
            note=reason,
            now=self._now(),
            reason=reason,
        )

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
        where = Where(Contradiction)
        where.equal(state=enum_of(ContradictionState, state, "state"))
        if lesson_id is not None:
            where.add("(lesson_id = :of or other_id = :of)", of=lesson_id)
        return self._page(Contradiction, where, order=("found_at", "id"), limit=limit, after=after, descending=True)

    @writes
    def settle(self, contradiction_id: str, keep: str, *, by: str | None = None, reason: str | None = None) -> Contradiction:
        """Settle a contradiction: KEEP is the lesson that holds, which supersedes the other one, or `both`."""
        self._alone()
        found = self._fetch(Contradiction, contradiction_id)
        lessons = (found.lesson_id, found.other_id)
        if keep not in (*lessons, BOTH):
            raise Invalid(f"keep is {keep!r}; it is {lessons[0]}, {lessons[1]} or both", field="keep")
        if found.state is not ContradictionState.OPEN:
            raise Conflict(f"contradiction {contradiction_id} is {found.state} already", id=contradiction_id, state=found.state)
        settled = self._decide(contradiction_id, both=keep == BOTH, by=by, reason=reason)
        if keep != BOTH:
            self._let_hold(keep, lessons[0] if keep == lessons[1] else lessons[1])
        return settled

    def _decide(self, contradiction_id: str, *, both: bool, by: str | None, reason: str | None) -> Contradiction:
        with LessonIndex(self._db).following():
            return self._change(
                Contradiction,
                contradiction_id,
                """
                update contradictions set state = :state, settled_at = :now, settled_by = :by, reason = :reason
                 where id = :id and state = 'open'
                returning *
                """,
                state=ContradictionState.BOTH_HOLD if both else ContradictionState.SETTLED,
                now=self._now(),
                by=by,
                reason=reason,
            )

    def _let_hold(self, kept: str, other: str) -> None:
        """Make one lesson stand in the place of another, whichever of them stood there before."""
        self.reinstate(kept)
        if self._fetch(Lesson, other).superseded_by is None:
            self.supersede(other, kept)

    def _alone(self) -> None:
        """Be the only one who adds or supersedes lessons until this transaction ends."""
        self._db.lock_stream(STREAM)
        self._db.rows("select id from lesson_desk where id = 1 for update", {})

    def _oppose(self, lesson: Lesson, other: Lesson | Saying, about: str) -> Contradiction:
        """Keep that two lessons contradict each other; what is known already comes back as it is."""
        known = self._select(
            Contradiction,
            """
            select * from contradictions
             where (lesson_id = :one and other_id = :other) or (lesson_id = :other and other_id = :one)
            """,
            one=lesson.id,
            other=other.id,
        )
        if known:
            return known[0].marked_already()
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
        """Keep that two lessons contradict each other, as one to settle; what was settled before is open again."""
        found = self._oppose(lesson, other, why)
        if found.state is ContradictionState.OPEN:
            return found
        return self._change(
            Contradiction,
            found.id,
            """
            update contradictions set state = 'open', settled_at = null, settled_by = null, reason = null
             where id = :id and state <> 'open'
            returning *
            """,
            note=why,
        )

    def _close(self, lesson_id: str, by: str) -> None:
        """Settle what a lesson contradicts that holds no more."""
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
