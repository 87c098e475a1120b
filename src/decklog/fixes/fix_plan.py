"""The plan of a fix: what, where, how much, and how it will be shown. A large one is a person's to allow, and waits for that."""

import posixpath
from typing import TYPE_CHECKING, Any

from decklog.fixes import telling
from decklog.fixes.dropping import drop
from decklog.fixes.locating import missing
from decklog.guard.files.gitignore import IgnoreFile
from decklog.stores.approvals.feedback import FeedbackState, FixClass
from decklog.stores.workflow.mends import MendState, MendWait

if TYPE_CHECKING:
    from decklog.fixes.ground import FixContext
    from decklog.stores.workflow.mends import Mend

AROUND, LEAST_LINES = 5, 10
_ALWAYS_LARGE = (FixClass.ARCHITECTURAL, FixClass.STATE_MACHINE)
_CRITERION = "a test that fails without the fix by an assertion passes with it, and what was said no longer happens"


def plan(ground: "FixContext") -> "Mend":
    """Put the plan on record; a large one is asked about in the same breath, and waits."""
    log, mend = ground.log, ground.mend
    document = _document(ground)
    if not document["large"] or mend.branch is not None:
        return log.mends.move(mend, MendState.PLANNED, plan=document)
    with log.transaction():
        asked = telling.planned(ground, document)
        return log.mends.move(
            mend,
            MendState.PLANNED,
            plan={**document, "approval": asked.id, "digest": asked.subject_digest},
            waits_for=MendWait.APPROVAL,
            reason=f"the plan is large: {document['large']}",
        )


def approve(ground: "FixContext") -> "Mend":
    """Begin the fix: at once where the plan is small or a person fixes it, and otherwise with a yes, which is used up."""
    log, mend = ground.log, ground.mend
    approval = mend.plan.get("approval")
    with log.transaction():
        is_asked = approval is not None and mend.branch is None
        if is_asked and log.approvals.use(mend.run_id, str(mend.plan["digest"])) is None:
            return _unanswered(ground, str(approval))
        if mend.branch is not None:
            telling.plan_is_over(ground, f"a person fixes it: {mend.branch}")
        if ground.feedback.state is FeedbackState.TRIAGED:
            log.feedback.start_fix(mend.feedback_id, by="mend", note=f"mend {mend.id}")
        return log.mends.move(mend, MendState.FIXING)


def _unanswered(ground: "FixContext", approval: str) -> "Mend":
    found = ground.log.approvals.get(approval)
    if found.state.value in ("denied", "expired"):
        return drop(ground, f"the plan was not allowed: {found.rationale or found.state}")
    if ground.mend.waits_for is MendWait.APPROVAL:
        return ground.mend
    return ground.log.mends.move(ground.mend, waits_for=MendWait.APPROVAL, reason=f"approval {approval} is {found.state}")


def _document(ground: "FixContext") -> dict[str, Any]:
    mend, feedback, triage = ground.mend, ground.feedback, ground.mend.triage
    files = _files(ground)
    estimate = sum(files.values())
    return {
        "task": feedback.body.strip().split("\n", 1)[0][:200],
        "fix_class": mend.fix_class,
        "root_cause": triage.get("root_cause") or "not known yet",
        "approach": triage.get("proposed_change") or "mend it where its words are found",
        "test": triage.get("test_sketch") or "a test of what was said, which fails without the fix",
        "success_criterion": triage.get("success_criterion") or _CRITERION,
        "files": [{"path": path, "lines": lines} for path, lines in files.items()],
        "missing": missing(ground),
        "lines": estimate,
        "alternatives": ["leave it and say so: decklog mend drop", "fix it by hand: decklog mend --branch"],
        "cost": f"at most {ground.rules.rounds} rounds of an agent and their reviews; their price is not known before",
        "risks": "what else uses these files; their tests are run with it",
        "large": _why_large(ground, files, estimate),
    }


def _files(ground: "FixContext") -> dict[str, int]:
    """Estimate the lines of each file: what was found, with a few around it."""
    found: dict[str, int] = {}
    for spot in ground.mend.places:
        assert isinstance(spot, dict)
        span = int(spot["last"]) - int(spot["first"]) + 1
        found[str(spot["path"])] = found.get(str(spot["path"]), 0) + span + AROUND
    return {path: max(lines, LEAST_LINES) for path, lines in found.items()}


def _why_large(ground: "FixContext", files: dict[str, int], estimate: int) -> str:
    """Return why a plan is large; nothing when it is not. Only files that triage named count as several components."""
    if ground.mend.fix_class in _ALWAYS_LARGE:
        return f"it is {ground.mend.fix_class}"
    if estimate > ground.rules.large:
        return f"about {estimate} lines, more than {ground.rules.large}"
    if not ground.mend.triage.get("candidate_files"):
        return ""
    tests = IgnoreFile(ground.settings.tests)
    folders = sorted({posixpath.dirname(path) for path in files if not tests.covers(path)})
    apart = [(one, other) for one in folders for other in folders if one < other and not _is_within(one, other)]
    return f"it is in two components, {apart[0][0]} and {apart[0][1]}" if apart else ""


def _is_within(one: str, other: str) -> bool:
    """Return whether one of two folders lies in the other: then they are one component."""
    return one == "" or f"{other}/".startswith(f"{one}/") or f"{one}/".startswith(f"{other}/")
