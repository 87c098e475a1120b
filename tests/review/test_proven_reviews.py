"""With an owner bound, a verdict that anybody could have written lets nothing be published."""

from collections.abc import Iterator
from typing import Any

import pytest

from decklog import Decklog, Review
from decklog.core.errors import Conflict
from decklog.review.change import Change
from decklog.review.gate import load_settings
from decklog.review.publishing import publish_block_reason, request_override
from tests.review.changes import GOOD, Desk

PASSWORD = "correct horse " + "battery staple"


@pytest.fixture
def change(desk: Desk) -> Change:
    return desk.commit(GOOD)


@pytest.fixture
def elsewhere(desk: Desk, sqlite_target: str) -> Iterator[Decklog]:
    """The same log in another program, such as a hook."""
    with Decklog.open(sqlite_target) as log:
        yield log


def bind(log: Decklog) -> None:
    log.trust.bind("ana", "cli", password=PASSWORD)


def forged(log: Decklog, change: Change, verdict: str = "pass", **given: Any) -> Review:
    """Record a verdict that no gate came to, as any program with the log can."""
    facts = {"base": change.base, "head": change.head, "tree": change.tree, "patch": change.patch}
    settings = load_settings(change).digest
    return log.reviews.record(log.runs.start("Review").id, verdict, settings=settings, **facts, **given)  # type: ignore[arg-type]


@pytest.mark.parametrize("verdict", ["pass", "request-changes"])
def test_unsigned_pass_of_another_process_does_not_publish(desk: Desk, change: Change, elsewhere: Decklog, verdict: str) -> None:
    bind(desk.log)
    review = forged(desk.log, change, verdict)
    assert "the owner did not sign it" in str(publish_block_reason(elsewhere, change))
    assert not elsewhere.reviews.lets_pass(review.id)


def test_without_an_owner_a_pass_publishes_from_every_process(desk: Desk, change: Change, elsewhere: Decklog) -> None:
    forged(desk.log, change)
    assert publish_block_reason(elsewhere, change) is None


def test_pass_that_the_owner_signed_publishes_from_every_process(desk: Desk, change: Change, elsewhere: Decklog) -> None:
    bind(desk.log)
    question = request_override(elsewhere, forged(desk.log, change), by="dev")
    assert "the owner has not signed that" in str(elsewhere.approvals.get(question).question)
    with elsewhere.proving(password=PASSWORD):
        elsewhere.approvals.decide(question, "granted", by="ana", rationale="I read it")  # type: ignore[arg-type]
    assert publish_block_reason(elsewhere, change) is None
    forged(desk.log, change)
    assert publish_block_reason(elsewhere, change) is not None, "a later verdict is another one"


@pytest.mark.slow
def test_build_gate_this_process_publishes_what_it_let_pass(desk: Desk, change: Change) -> None:
    bind(desk.log)
    assert desk.review(change).verdict == "pass"
    assert publish_block_reason(desk.log, change) is None
    with pytest.raises(Conflict, match="does not block"):
        request_override(desk.log, desk.log.reviews.find()[0], by="dev")


def test_verdict_changed_in_the_database_is_not_the_one_this_process_recorded(desk: Desk, change: Change) -> None:
    bind(desk.log)
    forged(desk.log, change, "block")
    with desk.log.transaction():
        desk.log.db.rows("update reviews set verdict = 'pass' returning id", {})
    assert publish_block_reason(desk.log, change) is not None


@pytest.mark.slow
def test_forged_pass_on_record_does_not_stand_in_for_a_review(desk: Desk, change: Change, elsewhere: Decklog) -> None:
    bind(desk.log)
    fake = forged(elsewhere, change, passes=[])
    found = desk.review(change)
    assert found.id != fake.id
    assert not found.already


def test_forged_stages_do_not_stand_in_for_those_of_the_gate(desk: Desk, change: Change, elsewhere: Decklog) -> None:
    bind(desk.log)
    run_id = desk.log.runs.start("Review").id
    elsewhere.reviews.keep_pass(run_id, "what", 6, {"number": 6, "status": "pass"})
    assert desk.log.reviews.passes(run_id, "what") == []
    desk.log.reviews.keep_pass(run_id, "what", 4, {"number": 4, "status": "pass"})
    assert [one.number for one in desk.log.reviews.passes(run_id, "what")] == [4]


def test_answer_to_feedback_is_held_by_an_unsigned_pass(desk: Desk, change: Change, elsewhere: Decklog) -> None:
    bind(desk.log)
    fake = forged(elsewhere, change, feedback_id="fb_1")
    held = desk.log.reviews.holding("fb_1")
    assert held is not None
    assert held.id == fake.id
