"""The gate step: review the one commit of a fix, bound to the feedback that it answers."""

from typing import TYPE_CHECKING, Any

from decklog.fixes.proof_step import proof_of, sent_back
from decklog.review.publishing import pending_override, publish_block_reason
from decklog.review.result import ACTIONABLE, had_outage
from decklog.review.reviewing import review as reviewed
from decklog.stores.workflow.mends import MendState, MendWait
from decklog.stores.workflow.reviews import ReviewVerdict

if TYPE_CHECKING:
    from decklog.fixes.ground import FixContext
    from decklog.log import Decklog
    from decklog.stores.workflow.mends import Mend
    from decklog.stores.workflow.reviews import Review


def review(ground: "FixContext", *, again: bool) -> "Mend":
    """Have the fix reviewed. Only a pass, or a person's yes to exactly it, lets it go on; not green is not published.

    What the gate holds is reviewed anew only `again`, and not while a person is asked about what it said.
    """
    log, mend, change, say = ground.log, ground.mend, ground.change, ground.say
    if mend.waits_for is MendWait.GATE and mend.review_id is not None:
        said = log.reviews.get(mend.review_id)
        if log.reviews.is_overridden(said.id) and publish_block_reason(log, change) is None:
            return log.mends.move(mend, MendState.CLEARED, review_id=said.id)
        if not again or asked_about(log, mend) is not None:
            return mend
    found = reviewed(
        log,
        change,
        make=ground.make,
        on_stage=lambda one: say(f"{one.number} {one.name} {one.status}{f': {one.why}' if one.why else ''}"),
        feedback_id=mend.feedback_id,
        is_mending=True,
        proof=lambda one: proof_of(ground, one),
    )
    if found.verdict is ReviewVerdict.PASS:
        return log.mends.move(mend, MendState.CLEARED, review_id=found.id)
    reason = f"review {found.id} says {found.verdict}: {_words(found)}"[:1000]
    if found.verdict is ReviewVerdict.UNPROVEN:
        waits = MendWait.WEATHER if had_outage(found) else MendWait.GATE
        if (mend.waits_for, mend.reason, mend.review_id) == (waits, reason, found.id):
            return mend
        return log.mends.move(mend, waits_for=waits, reason=reason, review_id=found.id)
    return sent_back(ground, _findings(found), MendWait.GATE, reason, review_id=found.id)


def asked_about(log: "Decklog", mend: "Mend") -> str | None:
    """Return the open question to a person about what the gate holds of a mend; none is null."""
    if mend.waits_for is not MendWait.GATE or mend.review_id is None:
        return None
    return pending_override(log, log.reviews.get(mend.review_id))


def _findings(review: "Review") -> list[dict[str, Any]]:
    found: list[Any] = [one for one in review.findings if one["severity"] in ACTIONABLE]  # type: ignore[index]
    return [{"kind": f"review.{one['pass']} {one['kind']}", "text": one["text"], "remedy": one["remedy"]} for one in found]


def _words(review: "Review") -> str:
    passes: list[Any] = review.passes
    unproven = [f"pass {one['pass']}: {one['why']}" for one in passes if one["status"] == "unproven"]
    return "; ".join([one["text"] for one in _findings(review)] or unproven) or "its score is too low"
