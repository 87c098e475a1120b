"""Fixes of feedback: how far each is proven, and what it waits for."""

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, Literal

from decklog.core.errors import Conflict, Invalid
from decklog.db.where import Where
from decklog.records.fork_rules import not_copied
from decklog.records.operations import reads, within_lease
from decklog.records.record import Page, Record
from decklog.stores.base import Store


class MendState(StrEnum):
    """The state of a fix. `closed` and `dropped` are final."""

    FILED = "filed"
    TRIAGED = "triaged"
    LOCATED = "located"
    PLANNED = "planned"
    FIXING = "fixing"
    FIXED = "fixed"
    PROVEN = "proven"
    CLEARED = "cleared"
    PUBLISHED = "published"
    VERIFIED = "verified"
    CLOSED = "closed"
    DROPPED = "dropped"

    @property
    def is_end(self) -> bool:
        return self in (MendState.CLOSED, MendState.DROPPED)


MendStateLike = (
    MendState
    | Literal[
        "filed",
        "triaged",
        "located",
        "planned",
        "fixing",
        "fixed",
        "proven",
        "cleared",
        "published",
        "verified",
        "closed",
        "dropped",
    ]
)


class MendWait(StrEnum):
    """What a fix waits for."""

    MODEL = "model"
    APPROVAL = "approval"
    FIX = "fix"
    GATE = "gate"
    MERGE = "merge"
    WEATHER = "weather"
    PERSON = "person"


MendWaitLike = MendWait | Literal["model", "approval", "fix", "gate", "merge", "weather", "person"]


@dataclass(frozen=True, kw_only=True)
class Mend(Record):
    """The fix of one piece of feedback in one repository.

    `base` is the commit that the fix starts from, `head` the one commit that it comes to; `branch` is a person's, where a person
    made it, and `fix_run_id` the run in which an agent did. `moves` counts every change, so that of two who take it on one does.
    """

    table = "mends"
    fork = not_copied("One piece of feedback in one repository has one fix, and it goes on in the run where it began.")

    id: str
    run_id: str
    feedback_id: str
    repo: str
    state: MendState
    created_at: datetime
    updated_at: datetime
    waits_for: MendWait | None = None
    reason: str = ""
    moves: int = 0
    rounds: int = 0
    base: str | None = None
    branch: str | None = None
    head: str | None = None
    fix_class: str | None = None
    confidence: int | None = None
    triage: dict[str, object] = field(default_factory=dict)
    places: list[object] = field(default_factory=list)
    plan: dict[str, object] = field(default_factory=dict)
    findings: list[object] = field(default_factory=list)
    fix_run_id: str | None = None
    proof: dict[str, object] = field(default_factory=dict)
    tests: list[object] = field(default_factory=list)
    review_id: str | None = None
    published: dict[str, object] = field(default_factory=dict)
    merged: str | None = None
    for_run_id: str | None = None


_IS_OPEN = "state <> 'closed' and state <> 'dropped'"


class Mends(Store):
    """Stores the state of the fix of each piece of feedback; `decklog mend` advances it."""

    records = (Mend,)

    def begin(self, run_id: str, feedback_id: str, *, repo: str, base: str, for_run_id: str | None = None) -> Mend:
        """Start the fix of a feedback; return the open one of the same repository if there is one.

        No interface offers this or `move`: proofs come only from running the checks.
        """
        now = self._now()

        def add() -> Mend:
            return self._add(
                Mend,
                note=f"mend of {feedback_id}",
                id=self._ids.new("mend"),
                run_id=run_id,
                feedback_id=feedback_id,
                repo=repo,
                base=base,
                for_run_id=for_run_id,
                state=MendState.FILED,
                created_at=now,
                updated_at=now,
            )

        return within_lease(self._db, lambda: self._find_or_add(lambda: self._open_of(feedback_id, repo), add))

    def _open_of(self, feedback_id: str, repo: str) -> Mend | None:
        where = Where(Mend, feedback_id=feedback_id, repo=repo)
        where.add(_IS_OPEN)
        return next(iter(self._list(Mend, where, order="created_at desc, id desc", limit=1)), None)

    def move(self, known: Mend, state: MendState | None = None, **changes: Any) -> Mend:
        """Move a fix on from the state that the caller saw. If somebody else moved it since, nothing changes.

        Unless given, it waits for nothing afterwards.
        """
        unknown = sorted(changes.keys() - set(Mend.columns()))
        if unknown:
            raise Invalid(f"a mend has no {unknown[0]}", field=unknown[0])
        to = known.state if state is None else state
        if known.state.is_end:
            raise Conflict(f"mend {known.id} is {known.state}", hint="File the rest as new feedback.", state=known.state)
        given = {"waits_for": None, "reason": "", **changes, "state": to}
        waits = f", waits for {given['waits_for']}: {given['reason']}" if given["waits_for"] else ""
        unmoved: dict[str, Any] = {"condition": "moves = :moves", "moves": known.moves}
        return within_lease(
            self._db, lambda: self._update(Mend, known.id, given, adding={"moves": 1}, note=f"{to}{waits}", **unmoved)
        )

    @reads
    def get(self, mend_id: str) -> Mend:
        """Get a mend: how far it is proven, and what it waits for."""
        return self._fetch(Mend, mend_id)

    @reads
    def find(
        self,
        *,
        feedback_id: str | None = None,
        state: MendStateLike | None = None,
        waits_for: MendWaitLike | None = None,
        repo: str | None = None,
        open_only: bool = False,
        oldest_first: bool = False,
        limit: int = 20,
        after: str | None = None,
    ) -> Page[Mend]:
        """List mends, newest first; `open_only` leaves out those that are closed or dropped."""
        where = Where(Mend, feedback_id=feedback_id, repo=repo, state=state, waits_for=waits_for)
        if open_only:
            where.add(_IS_OPEN)
        return self._page(Mend, where, order=("created_at", "id"), limit=limit, after=after, descending=not oldest_first)
