"""Every event of Claude Code, written by hand after its own fields."""

from datetime import UTC, datetime
from typing import Any

import pytest

from decklog.agents.events import (
    CallOutcome,
    ConversationCompacted,
    OtherEvent,
    PromptSubmitted,
    SessionEnded,
    SessionEvent,
    SessionStarted,
    SubagentEnded,
    SubagentStarted,
    ToolCalled,
    ToolReturned,
    TurnEnded,
)
from decklog.agents.programs.claude import events_of, transcripts_of

AT = datetime(2026, 11, 15, 12, tzinfo=UTC)
PLACE: dict[str, Any] = {"session_id": "s1", "at": AT}


def hook_payload(event: str, **fields: object) -> dict[str, Any]:
    base = {
        "session_id": "s1",
        "transcript_path": "/t.jsonl",
        "cwd": "/repo",
        "hook_event_name": event,
        "permission_mode": "default",
    }
    return {**base, **fields}


def one(event: str, **fields: object) -> SessionEvent:
    (found,) = events_of(hook_payload(event, **fields), AT)
    return found


@pytest.mark.parametrize("source", ["startup", "resume", "clear", "compact", "fork"])
def test_a_session_begins(source: str) -> None:
    assert one("SessionStart", source=source, model="m") == SessionStarted(
        **PLACE, source=source, cwd="/repo", model="m", transcript="/t.jsonl"
    )


def test_a_prompt_is_persons_unless_the_program_wrote_it() -> None:
    assert one("UserPromptSubmit", prompt="go", prompt_id="p") == PromptSubmitted(**PLACE, prompt_id="p", text="go")
    notice = one("UserPromptSubmit", prompt="<task-notification>done", prompt_id="p")
    assert isinstance(notice, PromptSubmitted)
    assert notice.by == "program"


def test_a_call_and_its_results() -> None:
    call = {"tool_name": "Bash", "tool_input": {"command": "ls"}, "tool_use_id": "t"}
    assert one("PreToolUse", **call) == ToolCalled(**PLACE, call_id="t", tool="Bash", arguments={"command": "ls"})
    done = one("PostToolUse", **call, tool_response={"stdout": "a", "stderr": "b", "interrupted": False}, duration_ms=5)
    assert done == ToolReturned(
        **PLACE, call_id="t", tool="Bash", outcome=CallOutcome.OK, output="a\nb", facts={"duration_ms": 5}
    )
    cut = one("PostToolUse", **call, tool_response={"stdout": "a", "stderr": "", "interrupted": True})
    assert isinstance(cut, ToolReturned)
    assert cut.outcome is CallOutcome.INTERRUPTED
    failed = one("PostToolUseFailure", **call, error="Exit code 3", is_interrupt=False)
    assert isinstance(failed, ToolReturned)
    assert (failed.outcome, failed.output) == (CallOutcome.FAILED, "Exit code 3")
    stopped = one("PostToolUseFailure", **call, error="stopped", is_interrupt=True)
    assert isinstance(stopped, ToolReturned)
    assert stopped.outcome is CallOutcome.INTERRUPTED
    denied = one("PermissionDenied", **call, reason="no")
    assert isinstance(denied, ToolReturned)
    assert (denied.outcome, denied.output) == (CallOutcome.DENIED, "no")


@pytest.mark.parametrize(
    ("response", "text"),
    [
        ("plain", "plain"),
        ({"type": "text", "file": {"filePath": "a", "content": "inside", "numLines": 1}}, "inside"),
        ({"filePath": "a", "originalFile": "long", "oldString": "x", "newString": "y"}, '"newString": "y"'),
        ([{"type": "text", "text": "one"}, {"type": "image", "source": "…"}], "one\n[image]"),
        (None, ""),
    ],
)
def test_a_tools_answer_is_told_as_text(response: object, text: str) -> None:
    found = one("PostToolUse", tool_name="X", tool_use_id="t", tool_response=response)
    assert isinstance(found, ToolReturned)
    assert text in found.output
    assert "long" not in found.output


def test_sub_agents_begin_and_end_and_a_compaction_is_none() -> None:
    assert one("SubagentStart", agent_id="a", agent_type="explore") == SubagentStarted(**PLACE, agent_id="a", role="explore")
    ended = {"agent_id": "a", "agent_transcript_path": "/a.jsonl", "last_assistant_message": "found"}
    assert one("SubagentStop", **ended, agent_type="explore") == SubagentEnded(**PLACE, agent_id="a", text="found")
    assert events_of(hook_payload("SubagentStop", **ended, agent_type=""), AT) == []
    assert transcripts_of(hook_payload("SubagentStop", **ended, agent_type="explore")) == [("/t.jsonl", None), ("/a.jsonl", "a")]
    assert transcripts_of(hook_payload("SubagentStop", **ended, agent_type="")) == [("/t.jsonl", None)]


def test_a_call_inside_a_sub_agent_is_the_sub_agents() -> None:
    found = one("PreToolUse", tool_name="Bash", tool_input={}, tool_use_id="t", agent_id="a", agent_type="explore")
    assert found.agent_id == "a"


def test_turns_compactions_and_the_end() -> None:
    assert one("Stop", stop_hook_active=False, last_assistant_message="x") == TurnEnded(**PLACE)
    assert one("StopFailure", error="prompt is too long") == TurnEnded(**PLACE, error="prompt is too long")
    assert one("PreCompact", trigger="manual") == ConversationCompacted(**PLACE, trigger="manual", is_over=False)
    assert one("PostCompact", trigger="auto", compact_summary="so far") == ConversationCompacted(
        **PLACE, trigger="auto", summary="so far"
    )
    assert one("SessionEnd", reason="other") == SessionEnded(**PLACE, reason="other")
    assert transcripts_of(hook_payload("Stop")) == [("/t.jsonl", None)]
    assert transcripts_of(hook_payload("PreToolUse")) == []


@pytest.mark.parametrize("event", ["Notification", "TaskCreated", "CwdChanged", "SomethingNew", ""])
def test_whatever_else_is_told_is_noted(event: str) -> None:
    found = one(event, message="hello", other=1)
    assert isinstance(found, OtherEvent)
    assert (found.text, found.facts["other"]) == ("hello", 1)
    assert "cwd" not in found.facts


@pytest.mark.parametrize("event", ["PreToolUse", "PostToolUse", "PermissionDenied", "PostToolBatch", "SubagentStart"])
def test_what_names_nothing_tells_nothing(event: str) -> None:
    assert events_of(hook_payload(event), AT) == []
    assert events_of({"hook_event_name": event}, AT) == []


@pytest.mark.parametrize("wrong", [None, 7, [], {"a": 1}])
def test_values_of_the_wrong_kind_are_taken_as_they_come(wrong: object) -> None:
    names = (
        "prompt",
        "tool_name",
        "tool_input",
        "tool_response",
        "error",
        "source",
        "trigger",
        "reason",
        "agent_id",
        "agent_type",
    )
    for event in ("SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "Stop", "SubagentStop", "SessionEnd"):
        events_of(hook_payload(event, tool_use_id="t", **dict.fromkeys(names, wrong)), AT)
