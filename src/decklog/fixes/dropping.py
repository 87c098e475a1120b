"""Giving a mend up: whatever state it is in, its feedback is told why, and nothing stays open."""

from typing import TYPE_CHECKING, Any

from decklog.fixes import telling
from decklog.fixes.fixing import given_up
from decklog.stores.approvals.feedback import FeedbackState, FixClass
from decklog.stores.workflow.mends import MendState

if TYPE_CHECKING:
    from decklog.fixes.ground import FixContext
    from decklog.stores.workflow.mends import Mend


def drop(ground: "FixContext", reason: str, *, by: str = "mend", **changes: Any) -> "Mend":
    """End a mend with the reason; feedback that was not verified is rejected with the same."""
    log, mend = ground.log, ground.mend
    with log.transaction():
        feedback = ground.feedback
        if feedback.state is FeedbackState.PENDING:
            feedback = log.feedback.triage(feedback.id, FixClass.OUT_OF_SCOPE, by=by, note=reason)
        if feedback.state in (FeedbackState.TRIAGED, FeedbackState.IN_FIX, FeedbackState.FIX_PR_OPEN):
            log.feedback.reject(feedback.id, reason, by=by)
        telling.plan_is_over(ground, reason)
        given_up(ground, f"dropped: {reason}")
        telling.ended(ground, f"given up: {reason}")
        dropped = log.mends.move(mend, MendState.DROPPED, reason=reason, **changes)
        log.runs.finish(mend.run_id, status="cancelled", summary=f"dropped: {reason}"[:500])
    return dropped
