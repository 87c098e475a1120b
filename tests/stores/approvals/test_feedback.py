from collections.abc import Callable
from itertools import product

import pytest

from decklog import Conflict, Decklog, Invalid, ManualClock, NotFound, Refused
from decklog.stores.approvals.feedback import MOVES, Feedback, FeedbackState, FixClass
from tests.every import every

STEPS: dict[FeedbackState, Callable[[Decklog, str], Feedback]] = {
    FeedbackState.TRIAGED: lambda log, fb: log.feedback.triage(fb, "tool"),
    FeedbackState.IN_FIX: lambda log, fb: log.feedback.start_fix(fb),
    FeedbackState.FIX_PR_OPEN: lambda log, fb: log.feedback.open_pr(fb, "https://example.org/pull/9"),
    FeedbackState.VERIFIED: lambda log, fb: log.feedback.verify(fb, regression_test_path="tests/test_it.py"),
    FeedbackState.REJECTED: lambda log, fb: log.feedback.reject(fb, "not what was asked"),
    FeedbackState.CLOSED: lambda log, fb: log.feedback.close(fb),
}
WAYS = {
    FeedbackState.PENDING: (),
    FeedbackState.TRIAGED: ("triaged",),
    FeedbackState.IN_FIX: ("triaged", "in-fix"),
    FeedbackState.FIX_PR_OPEN: ("triaged", "in-fix", "fix-pr-open"),
    FeedbackState.VERIFIED: ("triaged", "in-fix", "fix-pr-open", "verified"),
    FeedbackState.REJECTED: ("triaged", "rejected"),
    FeedbackState.CLOSED: ("triaged", "rejected", "closed"),
}


def put(log: Decklog, state: FeedbackState) -> str:
    feedback_id = log.feedback.file("ana", "You broke the build").id
    for step in WAYS[state]:
        STEPS[FeedbackState(step)](log, feedback_id)
    return feedback_id


@pytest.mark.slow
@every(("state", "to"), product(FeedbackState, STEPS))
def test_only_lawful_moves_are_made(log: Decklog, state: FeedbackState, to: FeedbackState) -> None:
    feedback_id = put(log, state)
    before = log.feedback.get(feedback_id)
    if to in MOVES[state]:
        after = STEPS[to](log, feedback_id)
        assert after.state == to
        assert after.notes[-1]["from"] == state  # type: ignore[index]
    elif to == state:
        assert STEPS[to](log, feedback_id).already
        assert log.feedback.get(feedback_id) == before
    else:
        with pytest.raises(Conflict, match=state):
            STEPS[to](log, feedback_id)
        assert log.feedback.get(feedback_id) == before


def test_a_fix_is_followed_from_triage_to_the_end(log: Decklog, clock: ManualClock) -> None:
    feedback = log.feedback.file(
        "ana", "You broke the build", severity="high", channel="gh-pr-comment", context_url="https://e.org/1"
    )
    clock.advance(minutes=1)
    log.feedback.triage(feedback.id, "tool", root_cause="a race", success_criterion="ten green builds", by="triager")
    log.feedback.start_fix(feedback.id)
    log.feedback.open_pr(feedback.id, "https://e.org/pull/2", regression_test_path="tests/test_race.py")
    log.feedback.verify(feedback.id, note="merged as abc")
    end = log.feedback.close(feedback.id)
    assert (end.severity, end.fix_class, end.root_cause) == ("high", "tool", "a race")
    assert (end.success_criterion, end.fix_pr_url) == ("ten green builds", "https://e.org/pull/2")
    assert (end.regression_test_path, end.closed_at) == ("tests/test_race.py", clock.now())
    assert [(n["from"], n["to"]) for n in end.notes] == [  # type: ignore[index]
        ("pending", "triaged"),
        ("triaged", "in-fix"),
        ("in-fix", "fix-pr-open"),
        ("fix-pr-open", "verified"),
        ("verified", "closed"),
    ]
    assert end.notes[0] == {
        "at": "2026-01-01T00:01:00.000000Z",
        "from": "pending",
        "to": "triaged",
        "by": "triager",
        "text": None,
    }
    assert end.notes[3]["text"] == "merged as abc"  # type: ignore[index]


def test_no_fix_is_verified_without_a_regression_test(log: Decklog) -> None:
    feedback_id = put(log, FeedbackState.FIX_PR_OPEN)
    with pytest.raises(Conflict, match="regression test"):
        log.feedback.verify(feedback_id)
    with pytest.raises(Conflict, match="regression test"):
        log.feedback.verify(feedback_id, regression_test_path="  ")
    for change in ("regression_test_path = null", "regression_test_path = ''"):
        with pytest.raises(Invalid), log.transaction():
            log.db.rows(f"update feedback set state = 'verified', {change} where id = :id", {"id": feedback_id})
    assert log.feedback.get(feedback_id).state == "fix-pr-open"


def test_a_failed_fix_goes_back_step_by_step_with_its_reason(log: Decklog) -> None:
    feedback_id = put(log, FeedbackState.FIX_PR_OPEN)
    assert log.feedback.give_back(feedback_id, "review asks for another way").state == "in-fix"
    back = log.feedback.give_back(feedback_id, "the branch was lost")
    assert back.state == "triaged"
    assert [note["text"] for note in back.notes[-2:]] == ["review asks for another way", "the branch was lost"]  # type: ignore[index]
    with pytest.raises(Conflict):
        log.feedback.give_back(feedback_id, "again")
    with pytest.raises(Invalid):
        log.feedback.give_back(put(log, FeedbackState.IN_FIX), " ")
    assert log.feedback.start_fix(feedback_id).state == "in-fix"


def test_what_is_out_of_scope_gets_no_fix(log: Decklog) -> None:
    feedback_id = log.feedback.file("ana", "The provider is slow").id
    log.feedback.triage(feedback_id, FixClass.OUT_OF_SCOPE)
    with pytest.raises(Conflict, match="out of scope"):
        log.feedback.start_fix(feedback_id)
    assert log.feedback.reject(feedback_id, "not ours").state == "rejected"


def test_notes_are_added_and_never_go(log: Decklog) -> None:
    feedback_id = put(log, FeedbackState.TRIAGED)
    first = log.feedback.get(feedback_id).notes
    noted = log.feedback.add_note(feedback_id, "seen again on Tuesday", by="ana")
    assert noted.state == "triaged"
    assert noted.notes[: len(first)] == first
    assert noted.notes[-1]["text"] == "seen again on Tuesday"  # type: ignore[index]


@pytest.mark.parametrize(
    "bad",
    [{"body": " "}, {"from_handle": ""}, {"channel": ""}, {"severity": "question"}, {"fix_class": "tool"}],
)
def test_bad_feedback_is_refused(log: Decklog, bad: dict[str, object]) -> None:
    with pytest.raises(Invalid):
        log.feedback.file(**{"from_handle": "ana", "body": "x", **bad})  # type: ignore[arg-type]
    assert log.feedback.find() == []


def test_unknown_feedback_and_unknown_words_are_refused(log: Decklog) -> None:
    with pytest.raises(NotFound, match="fb_nobody"):
        log.feedback.triage("fb_nobody", "tool")
    feedback_id = put(log, FeedbackState.PENDING)
    with pytest.raises(Invalid):
        log.feedback.triage(feedback_id, "hardware")
    with pytest.raises(Invalid):
        log.feedback.open_pr(feedback_id, "")
    with pytest.raises(Invalid):
        log.feedback.reject(feedback_id, "")
    with pytest.raises(Invalid):
        log.feedback.find(state="lost")


def test_the_oldest_pending_feedback_comes_first_when_asked_so(log: Decklog, clock: ManualClock) -> None:
    for number in range(4):
        clock.advance(seconds=1)
        log.feedback.file("ana", str(number), feedback_id=f"fb-{number}")
    log.feedback.triage("fb-0", "doc")
    assert [f.id for f in log.feedback.find()] == ["fb-3", "fb-2", "fb-1", "fb-0"]
    assert [f.id for f in log.feedback.find(state="pending", oldest_first=True, limit=1)] == ["fb-1"]
    assert [f.id for f in log.feedback.find(fix_class="doc")] == ["fb-0"]


def test_the_same_id_or_key_files_once(log: Decklog) -> None:
    log.feedback.file("ana", "x", feedback_id="fb-1", key="k")
    assert log.feedback.file("ana", "y", feedback_id="fb-1").already
    assert log.feedback.file("ana", "y", key="k").already
    assert len(log.feedback.find()) == 1


@pytest.mark.parametrize("verdict", ["pass", "request-changes", "block", "unproven"])
def test_no_pull_request_is_named_while_the_gate_holds_its_change(log: Decklog, verdict: str) -> None:
    log.runs.start("Review", run_id="run_1")
    log.feedback.file("ana", "It eats commas", feedback_id="fb-1")
    log.feedback.triage("fb-1", "tool")  # type: ignore[arg-type]
    log.feedback.start_fix("fb-1")
    bound = {"base": "b", "head": "h", "tree": "t", "patch": "p", "settings": "s"}
    review = log.reviews.record("run_1", verdict, feedback_id="fb-1", **bound)  # type: ignore[arg-type]
    if not review.verdict.holds:
        assert log.feedback.open_pr("fb-1", "https://example.test/1").state == "fix-pr-open"
        return
    with pytest.raises(Refused, match=f"verdict of review {review.id} .* is {verdict}"):
        log.feedback.open_pr("fb-1", "https://example.test/1")
    assert log.feedback.get("fb-1").state == "in-fix"
    asked = log.approvals.ask("run_1", "Publish it?", by="dev-1", about=review.about)
    log.approvals.decide(asked.id, "granted", by="ana", rationale="It is a false alarm")  # type: ignore[arg-type]
    assert log.reviews.holding("fb-1") is None
    assert log.feedback.open_pr("fb-1", "https://example.test/1").state == "fix-pr-open"
