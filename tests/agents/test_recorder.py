"""Sessions in the log: a run each, whoever tells of them and however often."""

from datetime import UTC, datetime, timedelta
from typing import Any

from decklog import Decklog, EntryKind, RunStatus
from decklog.agents.entries import MOST_CHARACTERS
from decklog.agents.events import (
    CallOutcome,
    MessageSent,
    PromptSubmitted,
    SessionEnded,
    SessionEvent,
    SessionStarted,
    SubagentEnded,
    SubagentStarted,
    TokensUsed,
    ToolCalled,
    ToolReturned,
    TurnEnded,
)
from decklog.agents.recorder import Recorder
from tests.conftest import on_both

AT = datetime(2026, 11, 15, 12, tzinfo=UTC)


def at(second: int, **more: Any) -> dict[str, Any]:
    return {"session_id": "s1", "at": AT + timedelta(seconds=second), **more}


def session() -> list[SessionEvent]:
    return [
        SessionStarted(**at(0), cwd="/repo", model="m"),
        PromptSubmitted(**at(1), prompt_id="p1", text="Fix the parser"),
        ToolCalled(**at(2), call_id="t1", tool="Bash", arguments={"command": "ls", "description": "look"}),
        ToolReturned(**at(3), call_id="t1", outcome=CallOutcome.OK, output="a\nb"),
        TokensUsed(**at(4), answer_id="msg_1", model="m", input_tokens=10, output_tokens=5),
        MessageSent(**at(4), text="It is the lexer.", message_id="u1"),
        SubagentStarted(**at(5, agent_id="a1"), role="explore"),
        ToolCalled(**at(6, agent_id="a1"), call_id="t2", tool="Read", arguments={"file_path": "x.py"}),
        ToolReturned(**at(7, agent_id="a1"), call_id="t2", outcome=CallOutcome.FAILED, output="no such file"),
        TokensUsed(**at(7, agent_id="a1"), answer_id="msg_2", model="m", input_tokens=7),
        SubagentEnded(**at(8, agent_id="a1"), text="Nothing found"),
        TurnEnded(**at(9)),
        SessionEnded(**at(10), reason="other"),
    ]


def entries(log: Decklog, run_id: str) -> list[tuple[str, str | None, str | None]]:
    found = log.journal.find(run_id, oldest_first=True, limit=100)
    return [(str(entry.kind), entry.subtype, entry.body) for entry in found if entry.kind != EntryKind.CHANGE]


def test_a_session_is_a_run_and_a_sub_agent_one_below_it(log: Decklog) -> None:
    Recorder(log, "claude").record(session())
    run, below = log.runs.get("claude-s1"), log.runs.get("claude-s1-a1")
    assert (run.goal, run.status, run.worktree) == ("Fix the parser", RunStatus.COMPLETED, "/repo")
    assert (below.parent_run_id, below.goal, below.summary) == (run.id, "explore", "Nothing found")
    assert entries(log, run.id) == [
        ("event", "session", "session startup"),
        ("interaction", "prompt", "Fix the parser"),
        ("tool", "call", "ls"),
        ("tool", "result", "a\nb"),
        ("interaction", "said", "It is the lexer."),
        ("event", "turn", "turn ended"),
    ]
    assert entries(log, below.id) == [("tool", "call", "Read x.py"), ("tool", "result", "no such file")]
    assert [(charge.run_id, charge.tokens) for charge in log.ledger.find(limit=9)] == [(below.id, 7), (run.id, 15)]
    assert log.journal.verify().ok


@on_both
def test_what_is_told_twice_is_written_once(log: Decklog) -> None:
    Recorder(log, "claude").record(session())
    before = log.journal.heads()
    Recorder(log, "claude").record(session()[1:-1])
    assert log.journal.heads() == before


@on_both
def test_parts_that_come_late_and_in_any_order_end_as_the_same_entries(log: Decklog) -> None:
    Recorder(log, "claude").record(reversed(session()[1:6]))
    assert sorted(entries(log, "claude-s1"), key=str) == sorted(
        [
            ("interaction", "prompt", "Fix the parser"),
            ("tool", "call", "ls"),
            ("tool", "result", "a\nb"),
            ("interaction", "said", "It is the lexer."),
        ],
        key=str,
    )
    assert log.runs.get("claude-s1").goal == "Fix the parser"


def test_a_fork_of_a_conversation_pays_for_no_answer_again(log: Decklog) -> None:
    answer = {"answer_id": "msg_1", "model": "m", "input_tokens": 10}
    Recorder(log, "claude").record([TokensUsed(session_id="s1", at=AT, **answer), TokensUsed(session_id="s2", at=AT, **answer)])
    assert len(log.ledger.find(limit=9)) == 1


def test_a_call_without_a_result_is_lost_when_its_session_ends(log: Decklog) -> None:
    recorder = Recorder(log, "claude")
    recorder.record([ToolCalled(**at(1), call_id="t1", tool="Bash", arguments={"command": "sleep 9"})])
    Recorder(log, "claude").record([SessionStarted(**at(2), source="resume")])
    assert not log.journal.find("claude-s1", subtype="result"), "its result may be told yet"
    Recorder(log, "claude").record([SessionEnded(**at(3))])
    assert _outcomes(log) == ["lost"]


def _outcomes(log: Decklog) -> list[str]:
    found = log.journal.find("claude-s1", kind=EntryKind.TOOL, subtype="result", oldest_first=True)
    return [str(entry.payload["outcome"]) for entry in found if isinstance(entry.payload, dict)]


@on_both
def test_a_call_has_one_result_however_often_its_session_is_taken_up(log: Decklog) -> None:
    # Another process is still at it, or its files were not written to the end.
    Recorder(log, "claude").record([ToolCalled(**at(1), call_id="t1", tool="Bash", arguments={"command": "make"})])
    for _ in range(2):
        Recorder(log, "claude").record(
            [SessionStarted(**at(2), source="resume"), ToolReturned(**at(3), call_id="t1", outcome=CallOutcome.OK)]
        )
        Recorder(log, "claude").record([SessionEnded(**at(4))])
    assert _outcomes(log) == ["ok"]


def test_a_call_that_was_lost_has_no_second_result(log: Decklog) -> None:
    Recorder(log, "claude").record([ToolCalled(**at(1), call_id="t1", tool="Bash"), SessionEnded(**at(2))])
    Recorder(log, "claude").record([ToolReturned(**at(3), call_id="t1", outcome=CallOutcome.OK)])
    assert _outcomes(log) == ["lost"]


def test_a_session_that_ended_goes_on_when_it_is_taken_up_again(log: Decklog) -> None:
    Recorder(log, "claude").record(session())
    Recorder(log, "claude").record([SessionStarted(**at(20), source="resume")])
    assert log.runs.get("claude-s1").status == RunStatus.ACTIVE


def test_with_a_run_given_a_session_is_recorded_in_it(log: Decklog, run_id: str) -> None:
    task = log.tasks.add(run_id, "work")
    Recorder(log, "claude", run_id=run_id, task_id=task.id).record(session())
    assert len(log.runs.find()) == 1
    assert log.runs.get(run_id).status == RunStatus.ACTIVE
    assert {entry.task_id for entry in log.journal.find(run_id, kind=EntryKind.TOOL)} == {task.id}


def test_long_output_is_cut_and_its_digest_kept(log: Decklog) -> None:
    long = "x" * (MOST_CHARACTERS + 10)
    Recorder(log, "claude").record([ToolReturned(**at(1), call_id="t1", outcome=CallOutcome.OK, output=long)])
    (entry,) = log.journal.find("claude-s1", kind=EntryKind.TOOL)
    assert isinstance(entry.payload, dict)
    assert entry.payload["cut"]["bytes"] == len(long)
    assert len(entry.body or "") == MOST_CHARACTERS


@on_both
def test_signs_that_no_database_takes_are_marked_and_the_rest_is_kept(log: Decklog) -> None:
    half, other = "\ud83d", "\ude00"
    arguments = {"command": "printf '\0'", f"{half}": [f"x{half}"]}
    Recorder(log, "claude").record(
        [
            PromptSubmitted(**at(1), prompt_id="p1", text=f"go \0 {half}"),
            ToolCalled(**at(2), call_id="t1", tool="Bash", arguments=arguments),
            MessageSent(**at(3), text=f"a {half}{other} b", message_id="m1"),
            SubagentEnded(**at(4, agent_id="a1"), text=f"{half}"),
        ]
    )
    assert [body for _, _, body in entries(log, "claude-s1")] == ["go \ufffd \ufffd", "printf '\ufffd'", "a \U0001f600 b"]
    assert log.runs.get("claude-s1").goal == "go \ufffd \ufffd"


def test_a_session_whose_last_turn_ended_in_an_error_has_failed_and_an_interrupted_one_has_not(log: Decklog) -> None:
    for name, error in (("s1", "API Error: 500"), ("s2", "interrupted"), ("s3", None)):
        place = {"session_id": name, "at": AT}
        Recorder(log, "claude").record(
            [SessionStarted(**place, cwd="/repo"), TurnEnded(**place, error=error), SessionEnded(**place, reason="other")]
        )
    states = [log.runs.get(f"claude-{name}").status for name in ("s1", "s2", "s3")]
    assert states == [RunStatus.FAILED, RunStatus.COMPLETED, RunStatus.COMPLETED]
