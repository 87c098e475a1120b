from datetime import timedelta
from pathlib import Path

import pytest

from decklog import Conflict, Decklog, Invalid, LeaseLost, ManualClock, NotFound
from decklog.stores.approvals.inbox import MessageChannel, MessageSeverity, MessageState
from tests.stores.approvals.trust.trust_desk import make_keys
from tests.stores.claiming import claimed


@pytest.fixture
def managed(log: Decklog, run_id: str, tmp_path: Path) -> Decklog:
    """A log whose owner is ana, with a task t1."""
    log.trust.bind("ana", "cli", make_keys(tmp_path)["owner"].public)
    log.tasks.add(run_id, "Change the lexer", task_id="t1")
    return log


def post(log: Decklog, body: str = "Why did you drop the cache?", **more: object) -> str:
    return log.inbox.post("ana", body, **more).id  # type: ignore[arg-type]


def test_a_message_is_acknowledged_in_the_moment_it_comes_in(managed: Decklog, clock: ManualClock) -> None:
    log, before = managed, len(managed.journal.find("@desk"))
    message = log.inbox.post("ana", "Why did you drop the cache?", severity="question", channel="tui", eta_seconds=7 * 60)
    assert message.ack_sent_at == message.received_at == clock.now()
    assert message.ack.endswith("ETA: ~7 min")
    assert "question" in message.ack
    assert (message.state, message.is_authorised) == ("pending", True)
    assert log.inbox.get(message.id) == message
    assert len(log.journal.find("@desk")) == before + 1


@pytest.mark.parametrize(("severity", "minutes"), [("info", 1440), ("question", 30), ("critical", 5)])
def test_the_promise_depends_on_the_severity(log: Decklog, severity: MessageSeverity, minutes: int) -> None:
    assert f"~{minutes} min" in log.inbox.post("ana", "hello", severity=severity).ack


@pytest.mark.parametrize(
    "bad",
    [
        {"body": " \n"},
        {"from_handle": ""},
        {"channel": "pigeon"},
        {"severity": "high"},
        {"eta_seconds": 0},
        {"eta_seconds": -3},
        {"body": "nul \x00"},
        {"colour": "red"},
    ],
)
def test_a_bad_message_is_refused_whole(log: Decklog, bad: dict[str, object]) -> None:
    with pytest.raises(Invalid):
        log.inbox.post(**{"from_handle": "ana", "body": "hello", **bad})  # type: ignore[arg-type]
    assert log.inbox.find() == []
    assert log.journal.find("@desk") == []


def test_a_message_for_a_run_that_does_not_exist_is_refused(log: Decklog) -> None:
    with pytest.raises(NotFound):
        post(log, run_id="nobody")


def test_the_same_key_or_id_gives_the_first_message_back(log: Decklog) -> None:
    first = log.inbox.post("ana", "hello", key="mail-1")
    again = log.inbox.post("ana", "hello again", key="mail-1")
    assert again == first
    assert again.already
    named = log.inbox.post("ana", "imported", message_id="old-7")
    assert log.inbox.post("ana", "imported", message_id="old-7").already
    assert [message.id for message in log.inbox.find()] == [named.id, first.id]


def test_every_state_follows_the_one_before(log: Decklog, clock: ManualClock) -> None:
    message_id = post(log)
    clock.advance(minutes=1)
    seen = log.inbox.mark_seen(message_id, by="developer")
    clock.advance(minutes=1)
    answered = log.inbox.answer(message_id, "It was stale", by="developer")
    clock.advance(minutes=1)
    closed = log.inbox.close(message_id)
    assert [m.state for m in (seen, answered, closed)] == ["seen", "answered", "closed"]
    assert closed.seen_at == seen.received_at + timedelta(minutes=1)
    assert closed.answered_at == seen.received_at + timedelta(minutes=2)
    assert closed.closed_at == seen.received_at + timedelta(minutes=3)
    assert (closed.seen_by, closed.answered_by, closed.answer) == ("developer", "developer", "It was stale")


def test_each_verb_may_be_said_twice(log: Decklog) -> None:
    message_id = post(log)
    assert not log.inbox.mark_seen(message_id).already
    assert log.inbox.mark_seen(message_id).already
    assert not log.inbox.answer(message_id, "yes").already
    assert log.inbox.answer(message_id, "yes").already
    assert not log.inbox.close(message_id).already
    assert log.inbox.close(message_id).already
    assert len(log.journal.history("messages", message_id)) == 4


def test_answering_or_escalating_an_unread_message_sees_it(log: Decklog, clock: ManualClock) -> None:
    assert log.inbox.answer(post(log), "yes", by="qa").seen_at == clock.now()
    escalated = post(log)
    log.inbox.escalate(escalated, by="qa")
    assert log.inbox.get(escalated).seen_by == "qa"


def _put(log: Decklog, message_id: str, state: str) -> None:
    if state != "pending":
        log.inbox.mark_seen(message_id)
    if state == "answered":
        log.inbox.answer(message_id, "yes")
    if state == "escalated":
        log.inbox.escalate(message_id)
    if state == "closed":
        log.inbox.close(message_id)


@pytest.mark.parametrize(
    ("state", "verb", "arguments"),
    [
        ("pending", "close", ()),
        ("answered", "answer", ("another answer",)),
        ("answered", "escalate", ()),
        ("escalated", "answer", ("yes",)),
        ("closed", "answer", ("yes",)),
        ("closed", "escalate", ()),
    ],
)
def test_unlawful_moves_are_refused_and_change_nothing(log: Decklog, state: str, verb: str, arguments: tuple[str, ...]) -> None:
    message_id = post(log)
    _put(log, message_id, state)
    before = log.inbox.get(message_id)
    with pytest.raises(Conflict, match=state):
        getattr(log.inbox, verb)(message_id, *arguments)
    assert log.inbox.get(message_id) == before
    assert log.journal.verify().ok


@pytest.mark.parametrize(
    ("verb", "arguments"), [("mark_seen", ()), ("answer", ("x",)), ("escalate", ()), ("close", ()), ("get", ())]
)
def test_an_unknown_message_is_not_found(log: Decklog, verb: str, arguments: tuple[str, ...]) -> None:
    with pytest.raises(NotFound, match="msg_nobody"):
        getattr(log.inbox, verb)("msg_nobody", *arguments)


def test_a_blank_answer_is_refused(log: Decklog) -> None:
    with pytest.raises(Invalid):
        log.inbox.answer(post(log), "  ")


def test_an_agent_gets_what_is_for_it_or_for_everybody_oldest_first(log: Decklog, run_id: str, clock: ManualClock) -> None:
    log.runs.start("Another goal", run_id="run_2")
    addresses: dict[str, dict[str, str]] = {
        "all": {},
        "developers": {"agent": "developer"},
        "testers": {"agent": "qa_expert"},
        "run 1": {"run_id": run_id},
        "run 2": {"run_id": "run_2"},
        "task 1": {"run_id": run_id, "task_id": "t1"},
        "task 2": {"run_id": run_id, "task_id": "t2"},
        "developers of run 2": {"agent": "developer", "run_id": "run_2"},
    }
    for body, address in addresses.items():
        clock.advance(seconds=1)
        post(log, body, **address)

    def bodies(agent: str, **narrow: str) -> list[str]:
        return [message.body for message in log.inbox.pending_for(agent, **narrow)]  # type: ignore[arg-type]

    assert bodies("developer", run_id=run_id) == ["all", "developers", "run 1", "task 1", "task 2"]
    assert bodies("developer", run_id=run_id, task_id="t1") == ["all", "developers", "run 1", "task 1"]
    assert bodies("developer", run_id="run_2") == ["all", "developers", "run 2", "developers of run 2"]
    assert bodies("qa_expert", run_id="run_2") == ["all", "testers", "run 2"]
    assert len(bodies("developer")) == 7
    page = log.inbox.pending_for("developer", limit=3)
    assert [m.body for m in log.inbox.pending_for("developer", limit=3, after=page.next)] == ["run 2", "task 1", "task 2"]


def test_what_was_seen_is_no_longer_pending(log: Decklog) -> None:
    first, second = post(log, "one"), post(log, "two")
    log.inbox.mark_seen(first)
    assert [message.id for message in log.inbox.pending_for("developer")] == [second]


def test_recent_messages_come_newest_first_and_by_state(log: Decklog, clock: ManualClock) -> None:
    for number in range(5):
        clock.advance(seconds=1)
        message_id = post(log, str(number))
    log.inbox.answer(message_id, "yes")
    assert [message.body for message in log.inbox.find()] == ["4", "3", "2", "1", "0"]
    assert [message.body for message in log.inbox.find(state="answered")] == ["4"]
    with pytest.raises(Invalid):
        log.inbox.find(state="lost")


# Who counts


def test_a_critical_message_pauses_the_task_it_is_about(managed: Decklog) -> None:
    claim = claimed(managed)
    message = managed.inbox.post("ana", "Stop!", severity="critical", task_id="t1")
    task = managed.tasks.get("t1")
    assert (message.paused_task_id, message.pause_problem, task.state) == ("t1", None, "paused")
    assert task.reason == f"critical message {message.id} from ana"
    with pytest.raises(LeaseLost):
        claim.finish()


@pytest.mark.parametrize("severity", ["info", "question"])
def test_other_messages_pause_nothing(managed: Decklog, severity: MessageSeverity) -> None:
    assert managed.inbox.post("ana", "Stop!", severity=severity, task_id="t1").paused_task_id is None
    assert managed.tasks.get("t1").state == "pending"


def test_a_strangers_message_is_kept_and_flagged_and_pauses_nothing(managed: Decklog) -> None:
    message = managed.inbox.post("mallory", "Stop!", severity="critical", task_id="t1")
    assert not message.is_authorised
    assert "owner" in message.ack
    assert managed.tasks.get("t1").state == "pending"
    assert managed.inbox.pending_for("developer") == [message]


def test_where_nobody_can_vouch_for_a_sender_nobody_is_authorised(log: Decklog, run_id: str) -> None:
    log.tasks.add(run_id, "Change the lexer", task_id="t1")
    assert not log.inbox.post("ana", "Stop!", severity="critical", task_id="t1").is_authorised
    assert log.tasks.get("t1").state == "pending"


def test_a_task_that_cannot_be_paused_does_not_keep_the_message_out(managed: Decklog) -> None:
    managed.inbox.post("ana", "Stop!", severity="critical", task_id="t1")
    again = managed.inbox.post("ana", "Really, stop!", severity="critical", task_id="t1")
    assert again.paused_task_id is None
    assert "paused" in (again.pause_problem or "")
    unknown = managed.inbox.post("ana", "Stop", severity="critical", task_id="t2")
    assert "t2" in (unknown.pause_problem or "")


# Escalation


@pytest.mark.parametrize(("severity", "becomes"), [("info", "low"), ("question", "med"), ("critical", "critical")])
def test_an_escalated_message_becomes_feedback_in_the_senders_words(
    log: Decklog, severity: MessageSeverity, becomes: str
) -> None:
    message = log.inbox.post("ana", "You broke the build", severity=severity, channel="gh-comment")
    feedback = log.inbox.escalate(message.id, context_url="https://example.org/pull/7")
    assert (feedback.body, feedback.from_handle, feedback.channel) == ("You broke the build", "ana", "gh-comment")
    assert (feedback.severity, feedback.state) == (becomes, "pending")
    assert (feedback.received_at, feedback.context_url) == (message.received_at, "https://example.org/pull/7")
    escalated = log.inbox.get(message.id)
    assert (escalated.state, escalated.escalated_to) == ("escalated", feedback.id)
    assert log.feedback.get(feedback.id) == feedback


def test_escalating_twice_gives_the_same_feedback(log: Decklog) -> None:
    message_id = post(log)
    first = log.inbox.escalate(message_id)
    log.inbox.close(message_id)
    again = log.inbox.escalate(message_id)
    assert again == first
    assert again.already
    assert len(log.feedback.find()) == 1


# The record


def test_the_table_itself_refuses_what_is_not_lawful(log: Decklog) -> None:
    message_id = post(log)
    for change in (
        "state = 'lost'",
        "severity = 'high'",
        "channel = 'pigeon'",
        "is_authorised = 2",
        "state = 'answered'",
        "state = 'closed'",
        "state = 'escalated', seen_at = 'x'",
    ):
        with pytest.raises(Invalid), log.transaction():
            log.db.rows(f"update messages set {change} where id = :id", {"id": message_id})
    assert set(MessageChannel) == {"cli", "tui", "gh-comment", "email", "daily-standup-reply"}
    assert set(MessageState) == {"pending", "seen", "answered", "escalated", "closed"}
    assert log.journal.verify().ok
