import threading
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import Any

import pytest

from decklog import Conflict, Decklog, Denied, Invalid, ManualClock, NotFound
from decklog.core.errors import Damaged, StillPending, TooLarge
from decklog.records.record import find_all
from decklog.stores.approvals.approval import Approval, compute_digest, question_key
from tests.every import every

PATCH = "--- a/parser.py\n+++ b/parser.py\n"


@pytest.fixture
def asked(log: Decklog, run_id: str) -> Approval:
    return log.approvals.ask(run_id, "Merge this patch?", by="developer", about=PATCH, subject="parser.patch", asked_of="Ana")


def test_a_question_comes_back_as_it_was_asked(log: Decklog, run_id: str, clock: ManualClock) -> None:
    asked = log.approvals.ask(
        run_id,
        "Deploy?",
        by="  release   agent ",
        about={"b": 1, "a": ["ü"]},
        subject="release 7",
        asked_of="gate:review",
        source="conductor",
        task_id="task_1",
        expires_in_seconds=1800,
        default_verdict="denied",
        payload={"risk": "low"},
        key="release-7",
    )
    assert log.approvals.get(asked.id) == asked
    assert asked.id.startswith("apr_")
    assert (asked.asked_by, asked.asked_of, asked.number, asked.state) == ("release agent", "gate:review", 1, "open")
    assert asked.subject_digest == sha256('{"a":["ü"],"b":1}'.encode()).hexdigest()
    assert asked.expires_at == clock.now() + timedelta(minutes=30)
    assert asked.payload == {"risk": "low"}
    assert asked.as_dict()["is_expired"] is False


def test_a_digest_is_made_in_one_way() -> None:
    assert compute_digest(PATCH) == compute_digest(PATCH.encode()) == sha256(PATCH.encode()).hexdigest()
    assert compute_digest({"b": 1, "a": 2}) == compute_digest({"a": 2, "b": 1})
    assert compute_digest({"a": 1}) != compute_digest({"a": True})
    assert compute_digest([1, 2]) != compute_digest([2, 1])
    with pytest.raises(Invalid):
        compute_digest("half \ud800")
    with pytest.raises(Invalid):
        compute_digest({"x": float("nan")})


def test_an_approval_is_granted_by_another_than_who_asked(log: Decklog, asked: Approval, clock: ManualClock) -> None:
    clock.advance(minutes=1)
    granted = log.approvals.decide(
        asked.id, "granted", by=" Ana  ", rationale="reads well", subject_digest=compute_digest(PATCH).upper()
    )
    assert (granted.state, granted.verdict, granted.decided_by, granted.rationale) == ("granted", "granted", "Ana", "reads well")
    assert granted.decided_at == clock.now()
    assert not granted.is_expired
    assert log.approvals.granted_for(asked.run_id, compute_digest(PATCH)) == granted


@pytest.mark.parametrize("by", ["developer", "Developer", "  DEVELOPER ", "deve\u200bloper", "\uff24eveloper"])
def test_who_asked_can_not_decide(log: Decklog, asked: Approval, by: str) -> None:
    with pytest.raises(Denied, match="can't decide"):
        log.approvals.decide(asked.id, "granted", by=by)
    assert log.approvals.get(asked.id).state == "open"


def test_names_beyond_ascii_are_the_same_in_any_case(log: Decklog, run_id: str) -> None:
    asked = log.approvals.ask(run_id, "Well?", by="Ágnes", about="x")
    with pytest.raises(Denied):
        log.approvals.decide(asked.id, "granted", by="ÁGNES")


@pytest.mark.parametrize("by", ["developer", "DEVELOPER", "  Developer "])
def test_the_table_itself_refuses_a_decision_by_who_asked(log: Decklog, asked: Approval, by: str) -> None:
    with pytest.raises(Invalid), log.transaction():
        log.db.rows(
            "update approvals set state = 'granted', decided_by = :by, decided_at = '2026' where id = :id",
            {"by": by, "id": asked.id},
        )
    assert log.approvals.get(asked.id) == asked


@pytest.mark.parametrize(
    "change",
    [
        "state = 'granted', decided_at = '2026'",  # by nobody
        "state = 'granted', decided_by = 'ana'",  # at no time
        "decided_at = '2026'",
        "state = 'withdrawn', decided_at = '2026', decided_by = 'ana'",
        "asked_by = null",
        "subject_digest = 'short'",
        "state = 'maybe'",
        "default_verdict = 'granted'",  # with no time
    ],
)
def test_the_table_itself_refuses_what_can_not_be(log: Decklog, asked: Approval, change: str) -> None:
    with pytest.raises(Invalid), log.transaction():
        log.db.rows(f"update approvals set {change} where id = :id", {"id": asked.id})
    assert log.approvals.get(asked.id) == asked


def test_nobody_asks_themselves(log: Decklog, run_id: str) -> None:
    with pytest.raises(Denied):
        log.approvals.ask(run_id, "May I?", by="ana", about="x", asked_of=" ANA ")


def test_an_approval_serves_its_own_digest_alone(log: Decklog, asked: Approval) -> None:
    changed = PATCH + "+ one more line\n"
    with pytest.raises(Conflict, match="is about"):
        log.approvals.decide(asked.id, "granted", by="ana", subject_digest=compute_digest(changed))
    assert log.approvals.get(asked.id).state == "open"
    log.approvals.decide(asked.id, "granted", by="ana", subject_digest=compute_digest(PATCH))
    assert log.approvals.granted_for(asked.run_id, compute_digest(changed)) is None
    assert log.approvals.granted_for("run_2", compute_digest(PATCH)) is None
    anew = log.approvals.ask(asked.run_id, "And now?", by="developer", about=changed)
    assert log.approvals.granted_for(asked.run_id, compute_digest(changed)) is None
    log.approvals.decide(anew.id, "granted", by="ana")
    assert log.approvals.granted_for(asked.run_id, compute_digest(changed)).id == anew.id  # type: ignore[union-attr]


def test_the_newest_answer_about_a_digest_counts(log: Decklog, asked: Approval) -> None:
    log.approvals.decide(asked.id, "granted", by="ana")
    second = log.approvals.ask(asked.run_id, "Still?", by="developer", about=PATCH)
    assert log.approvals.granted_for(asked.run_id, compute_digest(PATCH)).id == asked.id  # type: ignore[union-attr]
    log.approvals.decide(second.id, "denied", by="ana")
    assert log.approvals.granted_for(asked.run_id, compute_digest(PATCH)) is None


def test_the_same_answer_again_changes_nothing_and_another_is_refused(log: Decklog, asked: Approval) -> None:
    first = log.approvals.decide(asked.id, "granted", by="ana")
    again = log.approvals.decide(asked.id, "granted", by="ANA")
    assert again == first
    assert again.already
    for verdict, by in [("denied", "ana"), ("granted", "bo"), ("denied", "bo")]:
        with pytest.raises(Conflict, match="is granted by ana"):
            log.approvals.decide(asked.id, verdict, by=by)
    with pytest.raises(Conflict, match="is granted by ana"):
        log.approvals.withdraw(asked.id)
    assert log.approvals.get(asked.id) == first


def test_the_same_key_asks_once_and_never_about_another_thing(log: Decklog, run_id: str) -> None:
    first = log.approvals.ask(run_id, "Merge?", by="developer", about=PATCH, key="merge")
    again = log.approvals.ask(run_id, "Merge it?", by="developer", about=PATCH, key="merge")
    assert again == first
    assert again.already
    with pytest.raises(Conflict, match="another subject"):
        log.approvals.ask(run_id, "Merge?", by="developer", about=PATCH + "x", key="merge")
    other = log.runs.start("another", run_id="run_2").id
    assert log.approvals.ask(other, "Merge?", by="developer", about=PATCH, key="merge").id != first.id
    with pytest.raises(Conflict):
        log.approvals.ask(other, "Merge?", by="developer", about=PATCH, approval_id=first.id)


# Time


def test_a_question_past_its_time_is_expired_before_anyone_records_it(log: Decklog, run_id: str, clock: ManualClock) -> None:
    asked = log.approvals.ask(run_id, "Now?", by="developer", about="x", expires_in_seconds=600)
    clock.advance(minutes=9)
    assert log.approvals.get(asked.id).state == "open"
    assert log.approvals.expire() == []
    clock.advance(minutes=1)
    seen = log.approvals.get(asked.id)
    assert (seen.state, seen.is_expired, seen.decided_by) == ("expired", True, None)
    assert [each.id for each in log.approvals.find(state="expired")] == [asked.id]
    assert log.approvals.find(state="open") == []
    with pytest.raises(Conflict, match="expired because nobody answered"):
        log.approvals.decide(asked.id, "granted", by="ana")
    with pytest.raises(Conflict, match="expired"):
        log.approvals.withdraw(asked.id)
    clock.advance(minutes=5)
    recorded = log.approvals.expire(run_id=run_id)
    assert recorded == [seen]
    assert log.approvals.get(asked.id) == seen
    assert log.approvals.expire() == []
    assert log.journal.verify().ok


@pytest.mark.parametrize("verdict", ["granted", "denied"])
def test_expiry_records_the_default(log: Decklog, run_id: str, clock: ManualClock, verdict: str) -> None:
    asked = log.approvals.ask(run_id, "Stop me?", by="developer", about="x", expires_in_seconds=120, default_verdict=verdict)
    clock.advance(minutes=3)
    seen = log.approvals.get(asked.id)
    assert (seen.state, seen.verdict, seen.decided_by, seen.is_expired) == (verdict, verdict, None, True)
    assert seen.decided_at == asked.expires_at
    assert [each.id for each in log.approvals.find(run_id=run_id, state=verdict)] == [asked.id]
    assert log.approvals.expire() == [seen]
    assert log.journal.at("approvals", asked.id, "3") == seen


def test_silence_grants_only_where_the_caller_lets_it(log: Decklog, run_id: str, clock: ManualClock) -> None:
    log.approvals.ask(run_id, "Stop me?", by="developer", about="x", expires_in_seconds=120, default_verdict="granted")
    assert log.approvals.granted_for(run_id, compute_digest("x"), or_by_default=True) is None
    clock.advance(minutes=3)
    assert log.approvals.granted_for(run_id, compute_digest("x")) is None
    assert log.approvals.granted_for(run_id, compute_digest("x"), or_by_default=True) is not None
    asked = log.approvals.ask(run_id, "Really?", by="developer", about="x")
    log.approvals.decide(asked.id, "denied", by="ana")
    assert log.approvals.granted_for(run_id, compute_digest("x"), or_by_default=True) is None


def test_silence_takes_no_answer_back(log: Decklog, run_id: str, clock: ManualClock) -> None:
    asked = log.approvals.ask(run_id, "Merge?", by="developer", about="x")
    log.approvals.decide(asked.id, "granted", by="ana")
    log.approvals.ask(run_id, "Merge?", by="developer", about="x", expires_in_seconds=60, default_verdict="denied")
    clock.advance(minutes=2)
    assert log.approvals.granted_for(run_id, compute_digest("x"), or_by_default=True).id == asked.id  # type: ignore[union-attr]


def test_any_write_in_the_run_records_what_expired(log: Decklog, run_id: str, clock: ManualClock) -> None:
    lapsing = log.approvals.ask(run_id, "Now?", by="developer", about="x", expires_in_seconds=60)
    other = log.approvals.ask(run_id, "Later?", by="developer", about="y")
    clock.advance(minutes=2)
    log.approvals.decide(other.id, "granted", by="ana")
    assert [entry.record_id for entry in log.journal.find(run_id, limit=2)] == [other.id, lapsing.id]
    assert log.approvals.expire() == []


def test_wait_gives_the_answer_when_it_comes(log: Decklog, asked: Approval) -> None:
    got: list[Approval] = []
    waiting = threading.Thread(target=lambda: got.append(log.approvals.wait(asked.id, 30)))
    waiting.start()
    decided = log.approvals.decide(asked.id, "denied", by="ana", rationale="not yet")
    waiting.join(30)
    assert got == [decided]
    assert log.approvals.wait(asked.id, 0) == decided


def test_wait_says_that_it_is_still_pending(log: Decklog, asked: Approval) -> None:
    with pytest.raises(StillPending, match="still open") as caught:
        log.approvals.wait(asked.id, 0.05)
    assert caught.value.retryable
    with pytest.raises(Invalid):
        log.approvals.wait(asked.id, float("nan"))
    with pytest.raises(NotFound):
        log.approvals.wait("apr_nothing", 1)


def test_wait_ends_when_the_question_expires(log: Decklog, run_id: str, clock: ManualClock) -> None:
    asked = log.approvals.ask(run_id, "Now?", by="developer", about="x", expires_in_seconds=60, default_verdict="denied")
    got: list[Approval] = []
    waiting = threading.Thread(target=lambda: got.append(log.approvals.wait(asked.id, 30)))
    waiting.start()
    clock.advance(minutes=1)
    waiting.join(30)
    assert got[0].state == "denied"
    assert got[0].is_expired


def test_a_question_can_be_taken_back(log: Decklog, asked: Approval) -> None:
    withdrawn = log.approvals.withdraw(asked.id, reason="the plan changed")
    assert (withdrawn.state, withdrawn.rationale, withdrawn.decided_by) == ("withdrawn", "the plan changed", None)
    assert log.approvals.withdraw(asked.id).already
    with pytest.raises(Conflict, match="withdrawn"):
        log.approvals.decide(asked.id, "granted", by="ana")


# Verdicts without a question


def test_a_verdict_without_a_question_keeps_its_own_words(log: Decklog, run_id: str) -> None:
    recorded = log.approvals.record(run_id, "checker", "Needs changes", rationale="two tests fail", payload=["a", "b"])
    assert (recorded.state, recorded.verdict, recorded.source, recorded.payload) == (
        "denied",
        "Needs changes",
        "checker",
        ["a", "b"],
    )
    assert (recorded.question, recorded.asked_by, recorded.subject_digest) == (None, None, None)
    assert log.approvals.record(run_id, "checker", " Approved ").state == "granted"
    assert log.approvals.record(run_id, "checker", "ship it", counts_as="granted", by="ana").decided_by == "ana"
    assert log.approvals.get(recorded.id) == recorded


def test_latest_is_by_order_not_by_time(log: Decklog, run_id: str) -> None:
    early, late = datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 2, tzinfo=UTC)
    log.approvals.record(run_id, "checker", "first", at=late)
    log.approvals.record(run_id, "strategy", "other")
    last = log.approvals.record(run_id, "checker", "second", at=early)
    assert log.approvals.latest(run_id, "checker") == last
    assert log.approvals.latest(run_id, "nobody") is None
    verdicts = [approval.verdict for approval in log.approvals.find(run_id=run_id)]
    assert verdicts == ["second", "other", "first"]


def test_an_imported_verdict_keeps_its_id_and_is_recorded_once(log: Decklog, run_id: str) -> None:
    at = datetime(2025, 5, 5, tzinfo=UTC)
    first = log.approvals.record(run_id, "checker", "approved", approval_id="0b1c", at=at)
    assert (first.id, first.asked_at, first.decided_at) == ("0b1c", at, at)
    assert log.approvals.record(run_id, "checker", "approved", approval_id="0b1c", at=at).already
    assert len(log.approvals.find(run_id=run_id)) == 1


# Lists


def test_filters_find_what_they_name_and_pages_follow(log: Decklog, run_id: str, clock: ManualClock) -> None:
    other = log.runs.start("another", run_id="run_2").id
    for number in range(9):
        clock.advance(seconds=number % 2)
        run = other if number % 3 == 0 else run_id
        log.approvals.ask(
            run, f"{number}?", by="developer", about=number, asked_of="Ana" if number % 2 else None, task_id=f"t{number}"
        )
    assert len(log.approvals.find(run_id=other)) == 3
    assert len(log.approvals.find(asked_of=" Ana ")) == 4
    assert [each.question for each in log.approvals.find(task_id="t5")] == ["5?"]
    assert [each.question for each in log.approvals.find(subject_digest=compute_digest(4))] == ["4?"]
    seen = [approval.id for approval in find_all(log.approvals.find, limit=2, oldest_first=True)]
    assert len(seen) == len(set(seen)) == 9
    assert seen == [approval.id for approval in log.approvals.find()][::-1]


# Refusals


@every(
    "bad",
    [
        {"question": "  "},
        {"by": " "},
        {"by": "\u200b"},
        {"by": "x" * 201},
        {"about": None},
        {"subject_digest": "abc"},
        {"subject_digest": "0" * 64},  # not that of the content
        {"default_verdict": "granted"},  # and no time
        {"expires_in_seconds": 60.0, "default_verdict": "maybe"},
        {"expires_in_seconds": 0.0},
        {"expires_in_seconds": float("nan")},
        {"expires_at": datetime(2025, 1, 1, tzinfo=UTC)},
        {"expires_at": datetime(2027, 1, 1)},
        {"expires_at": datetime(2027, 1, 1, tzinfo=UTC), "expires_in_seconds": 60.0},
        {"payload": "text"},
        {"colour": "red"},
    ],
)
def test_a_bad_question_is_refused_and_nothing_is_written(log: Decklog, run_id: str, bad: dict[str, Any]) -> None:
    given: dict[str, Any] = {"question": "Merge?", "by": "developer", "about": "x"}
    with pytest.raises(Invalid):
        log.approvals.ask(run_id, **(given | bad))
    assert log.approvals.find() == []
    assert len(log.journal.find(run_id)) == 1


def test_unknown_things_are_not_found(log: Decklog, asked: Approval) -> None:
    for call in (
        lambda: log.approvals.get("apr_nothing"),
        lambda: log.approvals.decide("apr_nothing", "granted", by="ana"),
        lambda: log.approvals.withdraw("apr_nothing"),
        lambda: log.approvals.ask("nobody", "Merge?", by="developer", about="x"),
        lambda: log.approvals.record("nobody", "checker", "approved"),
    ):
        with pytest.raises(NotFound):
            call()
    for bad in (
        lambda: log.approvals.decide(asked.id, "expired", by="ana"),  # type: ignore[arg-type]
        lambda: log.approvals.decide(asked.id, "granted", by=""),
        lambda: log.approvals.granted_for(asked.run_id, "abc"),
        lambda: log.approvals.find(state="lost"),  # type: ignore[arg-type]
        lambda: log.approvals.record(asked.run_id, " ", "approved"),
        lambda: log.approvals.record(asked.run_id, "checker", " "),
        lambda: log.approvals.record(asked.run_id, "checker", "fine", counts_as="expired"),  # type: ignore[arg-type]
    ):
        with pytest.raises(Invalid):
            bad()


def test_a_secret_in_a_question_is_not_kept(log: Decklog, run_id: str) -> None:
    secret = "ghp_" + "a1B2c3D4e5" * 3 + "f6G7h8"
    asked = log.approvals.ask(run_id, f"Use {secret}?", by="developer", about=secret, payload={"token": secret})
    assert secret not in str(log.approvals.get(asked.id).as_dict())
    assert log.journal.find(run_id)[0].redacted


# Several processes


def test_a_message_that_asks_the_same_in_words_is_answered_with_it(log: Decklog, run_id: str, clock: ManualClock) -> None:
    asked = [log.approvals.ask(run_id, "May I?", by="mend", about=n, expires_in_seconds=300) for n in range(5)]
    words = [log.inbox.post("mend", "May I?", severity="question", run_id=run_id, key=question_key(one.id)) for one in asked]
    log.inbox.answer(words[4].id, "I said so already", by="bo")
    log.approvals.decide(asked[0].id, "granted", by="ana", rationale="go on")
    log.approvals.decide(asked[1].id, "denied", by="ana")
    log.approvals.withdraw(asked[2].id, reason="not needed")
    # One thing that waits is one: the message has a similar meaning.
    assert [one.id for one in log.overview.waiting()] == [asked[3].id, asked[4].id]
    clock.advance(minutes=6)
    log.approvals.expire()
    told = [log.inbox.get(one.id) for one in words]
    assert [(one.answer, one.answered_by) for one in told] == [
        ("granted: go on", "ana"),
        ("denied", "ana"),
        ("withdrawn: not needed", "mend"),
        ("expired: nobody answered in time", "mend"),
        ("I said so already", "bo"),
    ]
    log.approvals.decide(asked[0].id, "granted", by="ana")
    assert log.inbox.get(words[0].id) == told[0]
    assert log.journal.verify().ok


@pytest.mark.parametrize("at", ["[]", "", "yesterday", "2026-13-01T00:00:00Z"])
def test_verdict_at_no_time_is_refused_and_find_still_works(log: Decklog, at: str) -> None:
    run_id = log.runs.start("Build").id
    with pytest.raises(Invalid, match=r"at (is a|can't be blank)"):
        log.approvals.record(run_id, "gate", "passed", at=at)  # type: ignore[arg-type]
    log.approvals.record(run_id, "gate", "passed")
    assert [approval.asked_at for approval in log.approvals.find()]


def test_time_that_can_not_be_read_does_not_hide_the_other_approvals(log: Decklog) -> None:
    run_id = log.runs.start("Build").id
    broken = log.approvals.record(run_id, "gate", "passed").id
    whole = log.approvals.record(run_id, "gate", "passed").id
    with log.transaction():
        log.db.rows("update approvals set asked_at = '[]' where id = :id returning id", {"id": broken})
    assert {one.id for one in log.approvals.find()} == {broken, whole}
    assert {one.id for one in log.approvals.answers().latest} == {broken, whole}
    assert [one.as_dict()["asked_at"] for one in log.approvals.find() if one.id == broken] == ["[]"]
    with pytest.raises(Damaged, match="asked_at"):
        _ = log.approvals.get(broken).asked_at


@pytest.mark.parametrize("what", ["question", "subject"])
def test_question_or_subject_that_is_too_long_is_refused(log: Decklog, what: str) -> None:
    run_id = log.runs.start("Build").id
    given = {"question": "May I?", "subject": "deploy", what: "x" * 10_001}
    with pytest.raises(TooLarge, match=f"the {what} of the approval"):
        log.approvals.ask(run_id, by="dev", about="x", **given)
