"""The record of one piece of feedback. Kept apart, because an escalated message becomes one."""

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from decklog.records import Record


class FeedbackSeverity(StrEnum):
    LOW = "low"
    MED = "med"
    HIGH = "high"
    CRITICAL = "critical"


class FixClass(StrEnum):
    PROMPT = "prompt"
    DOC = "doc"
    TEST = "test"
    TOOL = "tool"
    POLICY = "policy"
    ARCHITECTURAL = "architectural"
    STATE_MACHINE = "state-machine"
    OUT_OF_SCOPE = "out-of-scope"


class FeedbackState(StrEnum):
    PENDING = "pending"
    TRIAGED = "triaged"
    IN_FIX = "in-fix"
    FIX_PR_OPEN = "fix-pr-open"
    VERIFIED = "verified"
    REJECTED = "rejected"
    CLOSED = "closed"


# Where feedback may go from each state: triage, fix, pull request, verdict, end. What is out of scope is rejected without a fix.
MOVES = {
    FeedbackState.PENDING: (FeedbackState.TRIAGED,),
    FeedbackState.TRIAGED: (FeedbackState.IN_FIX, FeedbackState.REJECTED),
    FeedbackState.IN_FIX: (FeedbackState.FIX_PR_OPEN, FeedbackState.REJECTED),
    FeedbackState.FIX_PR_OPEN: (FeedbackState.VERIFIED, FeedbackState.REJECTED),
    FeedbackState.VERIFIED: (FeedbackState.CLOSED,),
    FeedbackState.REJECTED: (FeedbackState.CLOSED,),
    FeedbackState.CLOSED: (),
}
# The one way back, always with a reason: a fix that fails must not stay in its state for ever.
BACK = {FeedbackState.FIX_PR_OPEN: FeedbackState.IN_FIX, FeedbackState.IN_FIX: FeedbackState.TRIAGED}


@dataclass(frozen=True, kw_only=True)
class Feedback(Record):
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
