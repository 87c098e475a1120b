"""Gemini CLI's sessions: from its chat files, its hooks and both, each thing once."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from decklog import Decklog, RunStatus
from decklog.agents.events import ToolReturned
from decklog.agents.history import HistoryImport, HistorySummary
from decklog.agents.intake import run_intake
from decklog.agents.programs.base import TranscriptInput
from decklog.agents.programs.gemini import Chat
from decklog.agents.spool import Spool
from tests.agents.acp.sample_session import list_bodies
from tests.every import every

AT = datetime(2026, 11, 15, 12, tzinfo=UTC)
RUN = "gemini-g1"


def stamp(second: int) -> str:
    return (AT + timedelta(seconds=second)).isoformat().replace("+00:00", "Z")


def message(second: int, kind: str, content: Any, **fields: Any) -> dict[str, Any]:
    return {"id": f"m{second}", "timestamp": stamp(second), "type": kind, "content": content, **fields}


def usage_events(output: str, tool: str = "run_shell_command", way: str = "output") -> list[dict[str, Any]]:
    return [{"functionResponse": {"id": "c1", "name": tool, "response": {way: output}}}]


def printed(text: str, *behind: str) -> str:
    """What the model is told of a command."""
    inside = "\n".join([f"Output: {text}", *behind, "Process Group PGID: 4041"])
    return f"<untrusted_context>\n{inside}\n</untrusted_context>"


def use(status: str | None, output: str = "a.py", tool: str = "run_shell_command", way: str = "output") -> dict[str, Any]:
    result = usage_events(output, tool, way) if status else None
    return {"id": "c1", "name": tool, "args": {"command": "ls"}, "status": status or "executing", "result": result}


TOKENS = {"input": 100, "output": 5, "cached": 60, "thoughts": 7, "tool": 0, "total": 112}
HEADER = {"sessionId": "g1", "projectHash": "p", "startTime": stamp(0), "lastUpdated": stamp(9)}
LINES = [
    HEADER,
    message(1, "user", [{"text": "Fix it"}]),
    message(2, "gemini", "Let me look.", model="gemini-x"),
    {"$set": {"lastUpdated": stamp(3)}},
    message(2, "gemini", "Let me look.", model="gemini-x", toolCalls=[use(None)]),
    message(
        2,
        "gemini",
        "Let me look.",
        model="gemini-x",
        toolCalls=[use("success", printed("a.py"))],
        tokens=TOKENS,
        thoughts=[{"subject": "Where", "description": "in the parser"}],
    ),
    # What a tool answered goes to the model in a person's place.
    message(4, "user", usage_events(printed("a.py"))),
    message(5, "info", "something of its own"),
    message(6, "gemini", "Done.", model="gemini-x", tokens={**TOKENS, "cached": 0}),
]
TOLD = [
    ("session", "session import"),
    ("prompt", "Fix it"),
    ("thought", "Where: in the parser"),
    ("said", "Let me look."),
    ("call", "ls"),
    ("result", "a.py"),
    ("said", "Done."),
]


@pytest.fixture
def chat(tmp_path: Path) -> Path:
    path = tmp_path / "tmp" / "project" / "chats" / "session-2026-11-15T12-00-g1.jsonl"
    path.parent.mkdir(parents=True)
    write(path, LINES)
    return path


def write(path: Path, lines: list[dict[str, Any]]) -> None:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))


def imported(log: Decklog, tmp_path: Path) -> HistorySummary:
    return HistoryImport(log, "gemini", str(tmp_path / "tmp"), Spool(str(tmp_path / "spool"))).run()


def spent(log: Decklog) -> list[tuple[int, int, int]]:
    found = log.ledger.find(RUN, oldest_first=True)
    return [(each.input_tokens, each.cache_read_tokens, each.output_tokens) for each in found]


def test_a_chat_comes_in_with_what_was_said_done_and_spent(log: Decklog, chat: Path, tmp_path: Path) -> None:
    assert chat.exists()
    imported(log, tmp_path)
    assert list_bodies(log, RUN) == TOLD
    assert spent(log) == [(40, 60, 12), (100, 0, 12)]
    assert log.runs.get(RUN).goal == "Fix it"
    assert log.runs.get(RUN).status == RunStatus.COMPLETED


def test_a_chat_that_grew_is_read_on_and_one_that_did_not_is_left_alone(log: Decklog, chat: Path, tmp_path: Path) -> None:
    for end in range(1, len(LINES) + 1):
        write(chat, LINES[:end])
        imported(log, tmp_path)
    again = imported(log, tmp_path)
    assert (again.unchanged, again.new) == (1, 0)
    assert sorted(map(str, list_bodies(log, RUN))) == sorted(map(str, TOLD))
    assert spent(log) == [(40, 60, 12), (100, 0, 12)]


def payload(event: str, chat: Path | str, **fields: Any) -> dict[str, Any]:
    return {"session_id": "g1", "transcript_path": str(chat), "cwd": "/repo", "hook_event_name": event, **fields}


def hooks(log: Decklog, tmp_path: Path, *payloads: dict[str, Any], **facts: Any) -> None:
    spool = Spool(str(tmp_path / "spool"))
    for each in payloads:
        spool.put("gemini", "g1", {"session": "g1", **facts}, json.dumps(each).encode())
    assert run_intake(log, spool).unread == 0


USE = {"tool_name": "run_shell_command", "tool_input": {"command": "ls"}, "timestamp": stamp(2)}


def test_hooks_and_the_chat_file_tell_each_thing_once(log: Decklog, chat: Path, tmp_path: Path) -> None:
    hooks(
        log,
        tmp_path,
        payload("SessionStart", chat, source="startup"),
        payload("BeforeAgent", chat, prompt="Fix it"),
        payload("BeforeTool", chat, **USE),
        payload("AfterTool", chat, **USE, tool_response={"llmContent": "a.py"}),
        payload("AfterAgent", chat, prompt="Fix it", prompt_response="Done."),
        payload("SessionEnd", chat, reason="exit"),
    )
    imported(log, tmp_path)
    assert sorted(map(str, list_bodies(log, RUN))) == sorted(
        map(str, [*TOLD[1:], ("session", "session startup"), ("turn", "turn ended")])
    )
    assert spent(log) == [(40, 60, 12), (100, 0, 12)]


def test_hooks_tell_of_tools_where_there_is_no_chat_file(log: Decklog, tmp_path: Path) -> None:
    hooks(
        log,
        tmp_path,
        payload("SessionStart", "nowhere", source="startup"),
        payload("BeforeAgent", "nowhere", prompt="Fix it"),
        payload("BeforeTool", "nowhere", **USE),
        payload("AfterTool", "nowhere", **USE, tool_response={"error": "no such file"}),
    )
    assert [subtype for subtype, _ in list_bodies(log, RUN)] == ["session", "prompt", "call", "result"]
    (result,) = log.journal.find(RUN, subtype="result")
    assert isinstance(result.payload, dict)
    assert (result.body, result.payload["outcome"]) == ("no such file", "failed")


def test_a_call_that_was_held_is_on_record_with_the_reason(log: Decklog, chat: Path, tmp_path: Path) -> None:
    hooks(log, tmp_path, payload("BeforeTool", chat, **USE), denied="not this")
    assert ("denied", "not this") in list_bodies(log, RUN)


@every(
    ("call", "outcome", "body"),
    [
        (use("success", printed("a.py")), "ok", "a.py"),
        (use("success", printed("(empty)")), "ok", "ok"),
        (use("success", printed("two\nlines", "Exit Code: 3")), "failed", "two\nlines"),
        (use("success", printed("(empty)", "Signal: SIGTERM", "Background PIDs: 7")), "failed", "failed"),
        (use("success", "Exit Code: 3", tool="read_file"), "ok", "Exit Code: 3"),
        (use("error", "File not found: x", tool="read_file", way="error"), "failed", "File not found: x"),
        (use("error", "Tool execution blocked: not this", way="error"), "denied", "Tool execution blocked: not this"),
        (use("cancelled", "the person said no", way="error"), "denied", "the person said no"),
    ],
)
def test_what_became_of_a_call_is_read_from_what_the_model_was_told(call: dict[str, Any], outcome: str, body: str) -> None:
    reader = Chat(TranscriptInput(session_id="g1"))
    assert list(reader.events(message(2, "gemini", "", toolCalls=[call]))) == []
    found = [event for event in reader.pending_events() if isinstance(event, ToolReturned)]
    assert [(event.outcome, event.output or event.outcome) for event in found] == [(outcome, body)]


def test_what_comes_before_every_request_is_no_compaction(log: Decklog, chat: Path, tmp_path: Path) -> None:
    hooks(log, tmp_path, payload("SessionStart", chat, source="startup"), payload("PreCompress", chat, trigger="auto"))
    assert not log.journal.find(RUN, subtype="compacting")
    hooks(log, tmp_path, payload("PreCompress", chat, trigger="manual"))
    assert log.journal.find(RUN, subtype="compacting")


BELOW = [
    {**HEADER, "sessionId": "sub1", "kind": "subagent", "directories": ["/repo"]},
    message(3, "user", [{"text": "Look into it"}]),
    message(4, "gemini", "Found.", model="gemini-x", tokens={**TOKENS, "cached": 0}),
]


@pytest.mark.parametrize("way", ["hooks", "import", "both"])
def test_a_sub_agent_is_a_run_below_its_session_with_what_it_spent(log: Decklog, chat: Path, tmp_path: Path, way: str) -> None:
    (chat.parent / "g1").mkdir()
    write(chat.parent / "g1" / "sub1.jsonl", BELOW)
    if way != "import":
        hooks(log, tmp_path, payload("SessionStart", chat, source="startup"), payload("AfterAgent", chat))
    if way != "hooks":
        imported(log, tmp_path)
    below = log.runs.get(f"{RUN}-sub1")
    assert (below.parent_run_id, below.goal, below.status) == (RUN, "Look into it", RunStatus.COMPLETED)
    assert [charge.input_tokens for charge in log.ledger.find(below.id)] == [100]
    assert spent(log) == [(40, 60, 12), (100, 0, 12)]


def test_an_imported_chat_is_of_the_folder_that_the_program_notes_beside_it(log: Decklog, chat: Path, tmp_path: Path) -> None:
    (chat.parents[1] / ".project_root").write_text("/srv/app")
    imported(log, tmp_path)
    assert log.runs.get(RUN).worktree == "/srv/app"
