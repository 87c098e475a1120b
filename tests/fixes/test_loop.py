"""The loop from feedback to a fix that is verified on the merged commit."""

from pathlib import Path

import pytest
from benchmarks.mending_faults import FAULTS, files

from decklog import MendState, MendWait
from decklog.core.errors import Conflict
from decklog.fixes.fixing import find_override_question
from decklog.fixes.loop import _STEPS, NEXT_COMMANDS, STAGES, next_commands
from decklog.review.publishing import request_override
from tests.conductor.repositories import everything, git
from tests.db.processes import ROOT
from tests.fixes.bench import TRIAGE, Bench, answering, scripted

FAULT = FAULTS[0]


@pytest.mark.slow
def test_agent_fixes_feedback_and_the_merged_commit_is_verified(bench: Bench, tmp_path: Path) -> None:
    before = everything(bench.folder)
    feedback = bench.file(scripted(FAULT, "true", tmp_path / "c"), severity="high")
    mend = bench.mend(feedback)
    assert (mend.state, mend.waits_for) == ("published", "merge"), mend.reason
    assert bench.called_sites == ["mend.triage", "review.3", "review.6", "review.7"]
    branch = f"mend/{feedback}"
    assert mend.published == {"way": "branch", "commit": mend.head, "branch": branch, "message": mend.published["message"]}
    assert git(bench.folder, "log", "--format=%s", f"main..{branch}").startswith("Mend: clamp_low(1, 3) gives")
    assert f"Feedback: {feedback}" in git(bench.folder, "log", "-1", "--format=%B", branch)
    changed = {name for name, content in everything(bench.folder).items() if before.get(name) != content}
    assert {name for name in changed if not name.startswith(".git/")} == set(), "nothing of the user's tree is touched"
    assert bench.log.feedback.get(feedback).state == "fix-pr-open"

    bench.merge(branch)
    mend = bench.mend(feedback)
    assert (mend.state, mend.merged) == ("closed", git(bench.folder, "rev-parse", "main")), mend.reason
    closed = bench.log.feedback.get(feedback)
    assert (closed.state, closed.regression_test_path) == ("closed", "test_clamp_low.py::test_clamp_low")
    topics = {one.topic for one in bench.log.memory.find()}
    assert topics == {"failure_patterns", "review_patterns"}
    (edit,) = bench.log.self_edits.find(feedback_id=feedback)
    assert (edit.fix_class, edit.review_passes["feedback_binding"], edit.confidence) == ("tool", "pass", 92)
    assert "clamp_low" in bench.log.learnings.find()[0].observation
    assert {one.status.value for one in bench.log.runs.find()} == {"completed"}, (
        "nothing is left running, the agent's run neither"
    )
    assert bench.log.effects.open(mend.run_id) == []
    assert bench.log.journal.verify().ok


@pytest.mark.slow
def test_person_fixes_feedback_without_a_model(bench: Bench, tmp_path: Path) -> None:
    bench.settle(lambda text: text.replace('mend = "mine"', "").replace('review = "mine"', ""))
    feedback = bench.file(FAULT.said)
    mend = bench.mend(feedback)
    assert (mend.state, mend.waits_for) == ("filed", "model")
    assert "no model is configured for mend.triage" in mend.reason
    bench.commit("by-hand", files(FAULT, "vacuous", tmp_path / "c"))
    mend = bench.mend(feedback, branch="by-hand")
    assert (mend.state, mend.waits_for, mend.fix_class) == ("fixed", "fix", "tool")
    assert mend.reason.startswith("not proven, vacuous")
    bench.commit("by-hand", files(FAULT, "true", tmp_path / "c"))
    mend = bench.mend(feedback, branch="by-hand")
    assert (mend.state, mend.waits_for) == ("proven", "gate"), mend.reason
    assert "no model is configured for review.6" in mend.reason
    review = bench.log.reviews.get(str(mend.review_id))
    approval = request_override(bench.log, review, by="mend")
    bench.log.approvals.decide(approval, "granted", by="ana", rationale="I have read it")
    mend = bench.mend(feedback)
    assert (mend.state, mend.waits_for) == ("published", "merge"), mend.reason
    assert bench.called_sites == []

    bench.merge("by-hand")
    assert bench.mend(feedback).state == "closed"
    (edit,) = bench.log.self_edits.find(feedback_id=feedback)
    assert edit.fix_class == "tool"


def test_triage_below_sixty_is_out_of_scope(bench: Bench) -> None:
    bench.script = answering(mend_triage={**TRIAGE, "confidence": 59})
    feedback = bench.file("Something is odd somewhere")
    mend = bench.mend(feedback)
    assert (mend.state, mend.confidence) == ("dropped", 59)
    rejected = bench.log.feedback.get(feedback)
    assert (rejected.state, rejected.fix_class) == ("rejected", "out-of-scope")
    assert "confidence 59" in str(rejected.notes)
    assert bench.mend(bench.file("Somewhere else")).state == "dropped"


@pytest.mark.slow
def test_a_large_plan_waits_for_a_yes_to_exactly_it(bench: Bench, tmp_path: Path) -> None:
    bench.script = answering(mend_triage={**TRIAGE, "fix_class": "architectural"})
    feedback = bench.file(scripted(FAULT, "true", tmp_path / "c"))
    mend = bench.mend(feedback)
    assert (mend.state, mend.waits_for) == ("planned", "approval")
    (message,) = bench.log.inbox.find()
    assert "Large because: it is architectural" in message.body
    assert bench.mend(feedback).waits_for == "approval", "nothing goes on without an answer"
    bench.log.approvals.decide(str(mend.plan["approval"]), "granted", by="ana")
    assert bench.mend(feedback).state == "published"


def test_a_plan_that_is_not_allowed_ends_the_matter(bench: Bench) -> None:
    bench.script = answering(mend_triage={**TRIAGE, "fix_class": "state-machine"})
    feedback = bench.file(FAULT.said)
    mend = bench.mend(feedback)
    bench.log.approvals.decide(str(mend.plan["approval"]), "denied", by="ana", rationale="Too risky now")
    mend = bench.mend(feedback)
    assert (mend.state, mend.reason) == ("dropped", "the plan was not approved: Too risky now")
    assert bench.log.feedback.get(feedback).state == "rejected"


@pytest.mark.slow
def test_unproven_fix_is_sent_back_and_waits(bench: Bench, tmp_path: Path) -> None:
    feedback = bench.file(scripted(FAULT, "marker", tmp_path / "c"))
    mend = bench.mend(feedback)
    assert (mend.state, mend.waits_for) == ("fixing", "fix"), mend.reason
    assert "proof marker" in mend.reason
    assert "review.7" not in bench.called_sites
    assert bench.repository.refs("refs/heads/mend") == {}
    tried = str(mend.fix_run_id)
    bench.commit("better", files(FAULT, "true", tmp_path / "c"))
    assert bench.mend(feedback, branch="better").state == "published"
    assert bench.log.runs.get(tried).status == "cancelled"


@pytest.mark.slow
def test_rejected_fix_is_published_after_an_override_or_another_branch(bench: Bench, tmp_path: Path) -> None:
    low = {"findings": [], "score": 70, "reasoning": "It says little of why."}
    bench.script = answering(review_6=low)
    bench.commit("by-hand", files(FAULT, "true", tmp_path / "c"))
    mend = bench.mend(bench.file(FAULT.said), branch="by-hand")
    assert (mend.state, mend.waits_for, "request-changes" in mend.reason) == ("proven", "gate", True)
    review = bench.log.reviews.get(str(mend.review_id))
    approval = request_override(bench.log, review, by="dev-1")
    assert find_override_question(bench.log, mend) == approval
    assert next_commands(mend, approval)[0] == f"decklog approvals decide {approval} granted --by NAME --rationale WHY"
    assert bench.mend(mend.id).moves == mend.moves
    bench.log.approvals.decide(approval, "denied", by="ana", rationale="Say why")
    with pytest.raises(Conflict, match="ana was asked about review"):
        request_override(bench.log, review, by="dev-1")
    assert next_commands(mend, find_override_question(bench.log, mend))[:2] == [
        f"decklog review ask {mend.feedback_id}",
        f"decklog mend {mend.feedback_id} --branch NAME",
    ]
    bench.commit("better", files(FAULT, "true", tmp_path / "c"), "Give the last item, since the list is counted from its end")
    mend = bench.mend(mend.id, branch="better")
    approval = request_override(bench.log, bench.log.reviews.get(str(mend.review_id)), by="dev-1")
    bench.log.approvals.decide(approval, "granted", by="ana", rationale="It does")
    assert bench.mend(mend.id).state == "published"


@pytest.mark.slow
def test_fix_can_be_dropped_in_any_state(bench: Bench, tmp_path: Path) -> None:
    bench.commit("by-hand", files(FAULT, "true", tmp_path / "c"))
    bench.script = answering(review_6="no JSON")
    waiting = [bench.mend(bench.file(FAULT.said), branch="by-hand")]
    bench.script = answering(mend_triage="nothing")
    waiting.append(bench.mend(bench.file("Another one is wrong")))
    for mend in waiting:
        dropped = bench.mending.drop(mend.id, "we live with it", by="ana")
        assert (dropped.state, bench.log.feedback.get(mend.feedback_id).state) == ("dropped", "rejected")
    assert [one.state for one in waiting] == ["proven", "filed"]
    assert list(bench.mending.find_ready()) == []


def test_documentation_of_states_matches_the_code() -> None:
    page = (ROOT / "docs/explanation/mending.md").read_text(encoding="utf-8").splitlines()
    missing = [
        state
        for state, one in STAGES.items()
        if f"| {state} | {one.proven} | {one.step or '–'} | {one.after_kill} | {', '.join(one.waits) or '–'} |" not in page
    ]
    assert missing == []
    assert set(STAGES) == set(MendState)
    assert set(NEXT_COMMANDS) == set(MendWait)
    assert set(_STEPS) == {state for state, one in STAGES.items() if one.step not in ("", "review", "verify")}
