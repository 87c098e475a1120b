"""Feedback: a correction from a person, tracked from triage to a fix that a regression test proves."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, Literal, Protocol

from decklog.core.clock import to_text
from decklog.core.errors import Conflict, Refused
from decklog.db.where import Where, parse_enum
from decklog.records.operations import reads, writes
from decklog.records.record import Page, Record
from decklog.stores.base import Store, StoreParts
from decklog.stores.checks import check_filled


class FixGate(Protocol):
    """Changes that must not be published; implemented by the reviews store."""

    def holding(self, feedback_id: str) -> Any: ...


class FeedbackSeverity(StrEnum):
    LOW = "low"
    MED = "med"
    HIGH = "high"
    CRITICAL = "critical"


FeedbackSeverityLike = FeedbackSeverity | Literal["low", "med", "high", "critical"]


class FixClass(StrEnum):
    PROMPT = "prompt"
    DOC = "doc"
    TEST = "test"
    TOOL = "tool"
    POLICY = "policy"
    ARCHITECTURAL = "architectural"
    STATE_MACHINE = "state-machine"
    OUT_OF_SCOPE = "out-of-scope"


FixClassLike = FixClass | Literal["prompt", "doc", "test", "tool", "policy", "architectural", "state-machine", "out-of-scope"]


class FeedbackState(StrEnum):
    PENDING = "pending"
    TRIAGED = "triaged"
    IN_FIX = "in-fix"
    FIX_PR_OPEN = "fix-pr-open"
    VERIFIED = "verified"
    REJECTED = "rejected"
    CLOSED = "closed"


FeedbackStateLike = FeedbackState | Literal["pending", "triaged", "in-fix", "fix-pr-open", "verified", "rejected", "closed"]


# Allowed transitions: triage, fix, pull request, verdict, end. Feedback out of scope is rejected without a fix.
MOVES = {
    FeedbackState.PENDING: (FeedbackState.TRIAGED,),
    FeedbackState.TRIAGED: (FeedbackState.IN_FIX, FeedbackState.REJECTED),
    FeedbackState.IN_FIX: (FeedbackState.FIX_PR_OPEN, FeedbackState.REJECTED),
    FeedbackState.FIX_PR_OPEN: (FeedbackState.VERIFIED, FeedbackState.REJECTED),
    FeedbackState.VERIFIED: (FeedbackState.CLOSED,),
    FeedbackState.REJECTED: (FeedbackState.CLOSED,),
    FeedbackState.CLOSED: (),
}
# Transitions back, always with a reason, for a fix that fails.
BACK = {FeedbackState.FIX_PR_OPEN: FeedbackState.IN_FIX, FeedbackState.IN_FIX: FeedbackState.TRIAGED}


@dataclass(frozen=True, kw_only=True)
class Feedback(Record):
    """A correction from a person, and its state."""

    table = "feedback"
    home = "@desk"

    id: str
    from_handle: str
    channel: str
    severity: FeedbackSeverity
    body: str
    received_at: datetime
    updated_at: datetime
    state: FeedbackState = FeedbackState.PENDING
    message_id: str | None = None
    fix_class: FixClass | None = None
    context_url: str | None = None
    root_cause: str | None = None
    success_criterion: str | None = None
    fix_pr_url: str | None = None
    regression_test_path: str | None = None
    notes: list[object] = field(default_factory=list)
    key: str | None = None
    closed_at: datetime | None = None


class FeedbackStore(Store):
    """Records feedback and moves it through its states, with a note for each step."""

    records = (Feedback,)

    def __init__(self, parts: StoreParts, *, gate: Callable[[], FixGate]) -> None:
        super().__init__(parts)
        self._gate = gate

    @writes
    def file(
        self,
        from_handle: str,
        body: str,
        *,
        severity: FeedbackSeverityLike = FeedbackSeverity.MED,
        channel: str = "cli",
        context_url: str | None = None,
        feedback_id: str | None = None,
        received_at: datetime | None = None,
        key: str | None = None,
    ) -> Feedback:
        """Record feedback in the reporter's words. A known id or key returns that feedback unchanged."""
        now = self._now()
        return self._find_or_add(
            lambda: self._seek_known(Feedback, feedback_id, key=key),
            lambda: self._add(
                Feedback,
                note=body,
                id=feedback_id or self._ids.new("fb"),
                from_handle=check_filled("from_handle", from_handle).strip(),
                channel=check_filled("channel", channel).strip(),
                severity=parse_enum(FeedbackSeverity, severity, "severity"),
                body=check_filled("body", body),
                context_url=context_url,
                key=key,
                received_at=received_at or now,
                updated_at=now,
            ),
        )

    @reads
    def get(self, feedback_id: str) -> Feedback:
        """Get one piece of feedback."""
        return self._fetch(Feedback, feedback_id)

    @reads
    def find(
        self,
        *,
        state: FeedbackStateLike | None = None,
        fix_class: FixClassLike | None = None,
        severity: FeedbackSeverityLike | None = None,
        oldest_first: bool = False,
        limit: int = 20,
        after: str | None = None,
    ) -> Page[Feedback]:
        """List feedback, newest first."""
        where = Where(Feedback, state=state, fix_class=fix_class, severity=severity)
        return self._page(Feedback, where, order=("received_at", "id"), limit=limit, after=after, descending=not oldest_first)

    @writes
    def triage(
        self,
        feedback_id: str,
        fix_class: FixClassLike,
        *,
        root_cause: str | None = None,
        success_criterion: str | None = None,
        severity: FeedbackSeverityLike | None = None,
        by: str | None = None,
        note: str | None = None,
    ) -> Feedback:
        """Record what kind of fix pending feedback needs, and its cause."""
        return self._move(
            feedback_id,
            FeedbackState.TRIAGED,
            by,
            note,
            fix_class=parse_enum(FixClass, fix_class, "fix_class"),
            root_cause=root_cause,
            success_criterion=success_criterion,
            severity=severity and parse_enum(FeedbackSeverity, severity, "severity"),
        )

    @writes
    def start_fix(self, feedback_id: str, *, by: str | None = None, note: str | None = None) -> Feedback:
        """Start the fix of triaged feedback; what is out of scope can only be rejected."""
        return self._move(feedback_id, FeedbackState.IN_FIX, by, note)

    @writes
    def open_pr(
        self,
        feedback_id: str,
        fix_pr_url: str,
        *,
        regression_test_path: str | None = None,
        by: str | None = None,
        note: str | None = None,
    ) -> Feedback:
        """Name the pull request that carries the fix; refused while the gate holds the change that answers this feedback."""
        address = check_filled("fix_pr_url", fix_pr_url).strip()
        held = self._gate().holding(feedback_id)
        if held is not None:
            raise Refused(
                f"the verdict of review {held.id} on the change for feedback {feedback_id} is {held.verdict}",
                hint=f"Mend it and review it again, or have a person let exactly it pass: decklog review ask {held.id}",
                review_id=held.id,
                rule="gate",
            )
        return self._move(
            feedback_id,
            FeedbackState.FIX_PR_OPEN,
            by,
            note,
            fix_pr_url=address,
            regression_test_path=regression_test_path,
        )

    @writes
    def verify(
        self, feedback_id: str, *, regression_test_path: str | None = None, by: str | None = None, note: str | None = None
    ) -> Feedback:
        """Accept a merged fix. It needs a regression test: named here, or already when its pull request was opened."""
        known = self._fetch_for_update(Feedback, feedback_id)
        path = (regression_test_path or known.regression_test_path or "").strip()
        if not path:
            raise Conflict(
                f"feedback {feedback_id} has no regression test, so nothing proves its fix",
                hint="Give regression_test_path: a test that fails without the fix and passes with it.",
                state=known.state,
            )
        return self._move(feedback_id, FeedbackState.VERIFIED, by, note, regression_test_path=path)

    @writes
    def reject(self, feedback_id: str, reason: str, *, by: str | None = None) -> Feedback:
        """Reject feedback or its fix, with the reason."""
        return self._move(feedback_id, FeedbackState.REJECTED, by, check_filled("reason", reason).strip())

    @writes
    def give_back(self, feedback_id: str, reason: str, *, by: str | None = None) -> Feedback:
        """Undo a step of a fix that did not work: from its pull request to the fix, from the fix to triage."""
        known = self._fetch_for_update(Feedback, feedback_id)
        if known.state not in BACK:
            raise self._refusal(Feedback, feedback_id)
        to = BACK[known.state]
        note = _format_note(known, to, by, check_filled("reason", reason).strip(), self._now())
        return self._set(known, {"state": to, **note}, reason)

    @writes
    def close(self, feedback_id: str, *, by: str | None = None, note: str | None = None) -> Feedback:
        """Close feedback that was verified or rejected."""
        return self._move(feedback_id, FeedbackState.CLOSED, by, note, closed_at=self._now())

    @writes
    def add_note(self, feedback_id: str, text: str, *, by: str | None = None) -> Feedback:
        """Add a note without a change of state. Notes are never changed or removed."""
        known = self._fetch_for_update(Feedback, feedback_id)
        return self._set(known, _format_note(known, known.state, by, check_filled("text", text).strip(), self._now()), text)

    def _move(self, feedback_id: str, to: FeedbackState, by: str | None, note: str | None, **changes: Any) -> Feedback:
        known = self._fetch_for_update(Feedback, feedback_id)
        given = {name: value for name, value in changes.items() if value is not None}
        if known.state == to and not self._differing_fields(known, given).keys() - {"closed_at"}:
            return known.mark_already()
        if to not in MOVES[known.state]:
            raise Conflict(
                f"feedback {feedback_id} is {known.state}, which does not lead to {to}",
                hint=f"From {known.state} it can become: {', '.join(MOVES[known.state]) or 'nothing else'}.",
                state=known.state,
                allowed=list(MOVES[known.state]),
            )
        if to is FeedbackState.IN_FIX and known.fix_class is FixClass.OUT_OF_SCOPE:
            raise Conflict(f"feedback {feedback_id} is out of scope, so it gets no fix; reject it", state=known.state)
        return self._set(known, {"state": to, **given, **_format_note(known, to, by, note, self._now())}, note or f"{to}")

    def _set(self, known: Feedback, changes: dict[str, Any], note: str) -> Feedback:
        return self._update(Feedback, known.id, changes, condition="state = :known", note=note, known=known.state)


def _format_note(known: Feedback, to: FeedbackState, by: str | None, text: str | None, now: datetime) -> dict[str, Any]:
    note = {"at": to_text(now), "from": known.state.value, "to": to.value, "by": by, "text": text}
    return {"notes": [*known.notes, note]}
