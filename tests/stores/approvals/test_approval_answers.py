"""What was answered before: lately, to the same thing, and to what the same rule held."""

from typing import Any

import pytest

from decklog import Answers, Approval, Decklog, Invalid, ManualClock
from decklog.stores.approvals import approval as answers


def answered(log: Decklog, run_id: str, about: str, payload: object = None, verdict: str = "granted") -> Approval:
    asked = log.approvals.ask(run_id, f"May I {about}?", by="ada", about=about, payload=payload)
    return log.approvals.decide(asked.id, verdict, by="bo", rationale="so")  # type: ignore[arg-type]


def ids(found: Answers) -> dict[str, list[str]]:
    return {name: [one.id for one in listed] for name, listed in vars(found).items()}


def test_nothing_was_answered_in_a_new_log(log: Decklog) -> None:
    assert log.approvals.answers().as_dict() == {"latest": [], "same_thing": [], "same_rule": []}


def test_what_was_answered_is_listed_newest_question_first_and_what_waits_is_not(
    log: Decklog, run_id: str, clock: ManualClock
) -> None:
    first = answered(log, run_id, "a")
    clock.advance(seconds=1)
    last = answered(log, run_id, "b", verdict="denied")
    for number in range(30):
        clock.advance(seconds=1)
        log.approvals.ask(run_id, "wait", by="ada", about=f"c{number}")
    assert ids(log.approvals.answers()) == {"latest": [last.id, first.id], "same_thing": [], "same_rule": []}
    assert ids(log.approvals.answers(limit=1))["latest"] == [last.id]


def test_what_nobody_answered_in_time_counts_as_what_it_became(log: Decklog, run_id: str, clock: ManualClock) -> None:
    given: dict[str, Any] = {"expires_in_seconds": 300, "default_verdict": "denied"}
    asked = log.approvals.ask(run_id, "late?", by="ada", about="x", **given)
    assert log.approvals.answers().latest == []
    clock.advance(minutes=6)
    assert [(one.id, one.state.value) for one in log.approvals.answers().latest] == [(asked.id, "denied")]


def test_answers_to_the_same_thing_come_from_every_run(log: Decklog, run_id: str) -> None:
    other = log.runs.start("another").id
    here, there, _ = answered(log, run_id, "push"), answered(log, other, "push"), answered(log, other, "pull")
    found = ids(log.approvals.answers(subject_digest=here.subject_digest))
    assert sorted(found["same_thing"]) == sorted([here.id, there.id])
    with pytest.raises(Invalid):
        log.approvals.answers(subject_digest="x")


def test_of_its_own_run_every_answer_to_a_thing_is_found_and_of_others_the_newest(
    log: Decklog, run_id: str, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(answers, "_SAME_THING", answers._SAME_THING.replace("limit 300", "limit 2"))
    first = answered(log, run_id, "push")
    for number in range(3):
        clock.advance(seconds=1)
        answered(log, log.runs.start("another").id, f"pull {number}")
    digest = first.subject_digest
    assert log.approvals.answers(subject_digest=digest).same_thing == []
    assert [one.id for one in log.approvals.answers(subject_digest=digest, run_id=run_id).same_thing] == [first.id]


@pytest.mark.parametrize(
    "rule", ["git-push", 'a "quoted" 100%_rule!', "x" * 300, "ü\\n\n"], ids=["plain", "odd", "long", "signs"]
)
def test_answers_to_the_same_rule_are_those_whose_payload_says_it(log: Decklog, run_id: str, rule: str) -> None:
    same = answered(log, run_id, "a", {"rule": rule, "z": 1})
    answered(log, run_id, "b", {"rule": f"{rule[:100]}x"})
    answered(log, run_id, "c", {"inside": {"rule": rule}})
    answered(log, run_id, "d", {"rule": rule.upper() + "X"})
    answered(log, run_id, "e", ["rule"])
    found = log.approvals.answers(rule=log.approvals.show(same.id)["cause"]["rule"])
    assert [one.id for one in found.same_rule] == [same.id]


def test_what_is_about_the_same_thing_is_not_told_twice(log: Decklog, run_id: str) -> None:
    one, other = answered(log, run_id, "a", {"rule": "r"}), answered(log, run_id, "b", {"rule": "r"})
    found = ids(log.approvals.answers(subject_digest=one.subject_digest, rule="r"))
    assert (found["same_thing"], found["same_rule"]) == ([one.id], [other.id])
