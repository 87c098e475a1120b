"""What a verified fix teaches: two lessons, a learning, and the record of the change, each once."""

from typing import TYPE_CHECKING, Any

from decklog.review.result import STAGES
from decklog.stores.approvals.feedback import FeedbackState, FixClass
from decklog.stores.approvals.self_edits import PASSES
from decklog.stores.workflow.mends import MendState

if TYPE_CHECKING:
    from decklog.fixes.ground import FixContext
    from decklog.stores.workflow.mends import Mend

_LONGEST = 300


def learn(ground: "FixContext") -> "Mend":
    """Write down what the fix taught, close the feedback, let the run go on that it was for, and end."""
    log, mend = ground.log, ground.mend
    with log.transaction():
        _lessons(ground)
        observation = f"{_first(ground)} Mended as {mend.fix_class}; shown by {_test(mend)}."
        log.learnings.note(mend.id, observation, run_id=mend.run_id, key=f"mend:{mend.id}")
        _self_edit(ground)
        if ground.feedback.state is FeedbackState.VERIFIED:
            log.feedback.close(mend.feedback_id, by="mend", note=f"mend {mend.id}")
        if mend.for_run_id is not None and log.runs.get(mend.for_run_id).status.value == "paused":
            log.runs.update(mend.for_run_id, status="active")
        log.runs.finish(mend.run_id, summary=f"mended as {str(mend.merged)[:12]}")
        return log.mends.move(mend, MendState.CLOSED)


def _lessons(ground: "FixContext") -> None:
    log, mend = ground.log, ground.mend
    common: dict[str, Any] = {"fix_class": mend.fix_class, "merged_sha": mend.merged}
    where: dict[str, Any] = {"source_kind": "feedback", "source_id": mend.feedback_id, "run_id": mend.run_id}
    cause = str(mend.triage.get("root_cause") or mend.plan.get("root_cause") or "")
    log.memory.remember(
        "failure_patterns",
        f"{_first(ground)} Cause: {cause}"[: 4 * _LONGEST],
        payload={
            **common,
            "error_signature": _first(ground),
            "root_cause": cause,
            "feedback_body": ground.feedback.body,
            "regression_test_path": _test(mend),
            "affected_files": [one.path for one in ground.change.paths],
            "fix_pr_url": str(ground.feedback.fix_pr_url or ""),
        },
        confidence=85,
        key=f"failure:{mend.id}",
        **where,
    )
    log.memory.remember(
        "review_patterns",
        f"A fix of class {mend.fix_class} was let through and merged: {_first(ground)}",
        payload={**common, "diff_signature": ground.change.patch, "verdict": "approved", "outcome": "merged"},
        confidence=80,
        key=f"review:{mend.id}",
        **where,
    )


def _self_edit(ground: "FixContext") -> None:
    """Record the change, an agent's or a person's branch, with the result of each review pass."""
    log, mend = ground.log, ground.mend
    review = log.reviews.get(str(mend.review_id))
    said: dict[str, str] = {str(one["name"]): str(one["status"]) for one in review.passes}  # type: ignore[index]
    log.self_edits.record(
        str(ground.feedback.fix_pr_url or mend.published.get("branch") or mend.head),
        FixClass(str(mend.fix_class)),
        [one.path for one in ground.change.paths],
        ground.base,
        str(mend.merged),
        {name: said[passed] for name, passed in zip(PASSES, STAGES, strict=True)},
        review.confidence or 0,
        "merged by a person",
        feedback_id=mend.feedback_id,
    )


def _first(ground: "FixContext") -> str:
    return " ".join(ground.feedback.body.strip().split("\n", 1)[0].split())[:_LONGEST]


def _test(mend: "Mend") -> str:
    return ", ".join(str(name) for name in mend.tests)[:_LONGEST]
