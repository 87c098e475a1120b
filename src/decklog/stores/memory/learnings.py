"""Learnings: observations from tasks, until someone makes them part of a document or a skill, or dismisses them."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from decklog.clock import from_text, to_text
from decklog.errors import Conflict, Invalid
from decklog.operations import reads, writes
from decklog.records import Page, Record
from decklog.stores.base import Store, Where, enum_of
from decklog.stores.memory import learning_line
from decklog.stores.memory.learning_line import DISMISSED, DOCUMENT, LearningLine, format_entry

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class LearningState(StrEnum):
    OPEN = "open"
    PROMOTED = "promoted"
    DISMISSED = "dismissed"


@dataclass(frozen=True, kw_only=True)
class Learning(Record):
    """`candidate` is where it should go: a document, `skill:NAME`, or `dismissed`."""

    table = "learnings"
    home = "@memory"

    id: str
    task_id: str
    observation: str
    candidate: str
    state: LearningState = LearningState.OPEN
    noted_at: datetime
    run_id: str | None = None
    key: str | None = None
    decided_at: datetime | None = None
    decided_by: str | None = None
    reason: str | None = None

    def line(self) -> str:
        """Write it as its line of a plain-text log."""
        return format_entry(LearningLine(to_text(self.noted_at), self.task_id, self.observation, self.candidate))


class Learnings(Store):
    """Notes what tasks taught, and what was made of it."""

    records = (Learning,)

    @writes
    def note(
        self,
        task_id: str,
        observation: str,
        *,
        candidate: str = DOCUMENT,
        noted_at: datetime | None = None,
        run_id: str | None = None,
        key: str | None = None,
    ) -> Learning:
        """Note an observation, and where it might go: GAIA.md, skill:NAME, or dismissed at once.

        It is one line of text. With a key that is known already, that learning comes back as it is.
        """
        noted = noted_at or self.now()
        clean, _ = self.db.values.text("observation", observation)
        LearningLine(to_text(noted), task_id, clean, candidate)
        gone = candidate == DISMISSED
        return self.once(
            lambda: self._known(key),
            lambda: self.add(
                Learning,
                id=self.ids.new("learning"),
                task_id=task_id,
                observation=observation,
                candidate=candidate,
                state=LearningState.DISMISSED if gone else LearningState.OPEN,
                noted_at=noted,
                run_id=run_id,
                key=key,
                decided_at=noted if gone else None,
            ),
        )

    def _known(self, key: str | None) -> Learning | None:
        if key is None:
            return None
        found = self.select(Learning, "select * from learnings where key = :key", key=key)
        return found[0] if found else None

    @writes
    def promote(self, learning_id: str, *, to: str | None = None, by: str | None = None) -> Learning:
        """Make a learning part of where it was meant to go, or of `to`: GAIA.md or skill:NAME."""
        learning = self.fetch(Learning, learning_id)
        place = to or learning.candidate
        learning_line.check_candidate(place)
        if place == DISMISSED:
            raise Invalid("promoting means a document or a skill; use dismiss", field="to")
        if learning.state is LearningState.PROMOTED and learning.candidate == place:
            return learning.marked_already()
        return self._decide(learning, LearningState.PROMOTED, place, by, None)

    @writes
    def dismiss(self, learning_id: str, *, by: str | None = None, reason: str | None = None) -> Learning:
        """Decide that nothing is made of a learning."""
        learning = self.fetch(Learning, learning_id)
        if learning.state is LearningState.DISMISSED:
            return learning.marked_already()
        return self._decide(learning, LearningState.DISMISSED, DISMISSED, by, reason)

    def _decide(self, learning: Learning, state: LearningState, place: str, by: str | None, reason: str | None) -> Learning:
        if learning.state is LearningState.PROMOTED:
            raise Conflict(f"learning {learning.id} is in {learning.candidate} already", id=learning.id, state=learning.state)
        return self.change(
            Learning,
            learning.id,
            """
            update learnings set state = :state, candidate = :place, decided_at = :now, decided_by = :by, reason = :reason
             where id = :id and state = :was
            returning *
            """,
            note=f"{state}: {place}",
            state=state,
            place=place,
            now=self.now(),
            by=by,
            reason=reason,
            was=learning.state,
        )

    @reads
    def get(self, learning_id: str) -> Learning:
        """Get a learning."""
        return self.fetch(Learning, learning_id)

    @reads
    def find(
        self,
        *,
        state: LearningState | None = None,
        task_id: str | None = None,
        run_id: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        oldest_first: bool = False,
        limit: int = 20,
        after: str | None = None,
    ) -> Page:
        """List learnings, newest first."""
        where = Where(Learning)
        where.equal(state=state and enum_of(LearningState, state, "state"), task_id=task_id, run_id=run_id)
        where.between("noted_at", since, until)
        return self.page(Learning, where, order=("noted_at", "id"), limit=limit, after=after, descending=not oldest_first)

    @reads
    def lines(self) -> str:
        """Write all learnings as a plain-text log, one line each, oldest first."""
        learnings = self.select(Learning, "select * from learnings order by noted_at, id")
        return "".join(learning.line() + "\n" for learning in learnings)

    @writes
    def take_over(self, text: str, *, tolerant: bool = False) -> "dict[str, Any]":
        """Take over a plain-text log; say how many learnings are new, known already, or in lines that can't be read.

        A bad line is an error that names its number, and nothing is taken; `tolerant` takes the rest and lists the bad ones.
        """
        entries, bad = learning_line.read_all(text, tolerant=tolerant)
        taken = [self._take(entry) for entry in entries]
        known = sum(learning.already for learning in taken)
        return {
            "added": len(taken) - known,
            "known": known,
            "bad": [{"line": number, "problem": problem} for number, problem in bad],
        }

    def _take(self, entry: LearningLine) -> Learning:
        from hashlib import sha256

        digest = sha256(format_entry(entry).encode()).hexdigest()
        moment = from_text(entry.timestamp)
        return self.note(entry.task_id, entry.observation, candidate=entry.candidate, noted_at=moment, key=f"line:{digest}")
