"""Events out of the spool: whatever one of them is, those behind it come into the log."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from decklog import Decklog, EntryKind
from decklog.agents import intake
from decklog.agents.intake import run_intake
from decklog.agents.spool import Spool
from decklog.agents.transcripts import lines_of
from tests.conftest import on_both

STRANGE: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"session_id": "a b:c", "hook_event_name": "UserPromptSubmit", "prompt": "x"}, {}),
    ({"session_id": "s" * 400, "hook_event_name": "Stop"}, {}),
    ({"session_id": "@desk", "hook_event_name": "Stop"}, {}),
    ({"session_id": "s", "hook_event_name": "Stop"}, {"run": "no-such-run"}),
    ({"session_id": "s", "hook_event_name": "Stop"}, {"run": 5, "task": []}),
    ({"session_id": "s", "hook_event_name": "Stop"}, {"at": 1e300}),
    ({"session_id": "s", "hook_event_name": "PostCompact", "compact_summary": {"a": 1}}, {}),
    ({"session_id": "s", "hook_event_name": "SubagentStop", "agent_id": "a/b c", "agent_type": "x"}, {}),
    (
        {"session_id": "s", "hook_event_name": "SubagentStop", "agent_id": "a", "agent_type": "x", "last_assistant_message": [1]},
        {},
    ),
    ({"session_id": "s", "hook_event_name": "SessionStart", "cwd": 5, "model": {}, "transcript_path": []}, {}),
    ({"session_id": "s", "hook_event_name": "x" * 5000, "message": {"m": 1}}, {}),
    (
        {"session_id": "s", "hook_event_name": "PreToolUse", "tool_use_id": "t" * 9000, "tool_input": {"command": "\ud800\x00"}},
        {},
    ),
    ({"session_id": "s", "hook_event_name": "Stop", "transcript_path": "/nowhere/\x00x"}, {}),
    ({"session_id": "s", "hook_event_name": "Stop", "transcript_path": "/"}, {}),
    ({"session_id": "a\x00b", "hook_event_name": "Stop"}, {}),
    ({"session_id": "\ud800", "hook_event_name": "Stop"}, {}),
    ({"session_id": "s", "hook_event_name": "SubagentStart", "agent_id": "a\x00\udfff", "agent_type": "\x00"}, {}),
    ({"session_id": "s", "hook_event_name": "UserPromptSubmit", "prompt": "x", "prompt_id": "p\x00\ud800"}, {}),
    ({"session_id": "s", "hook_event_name": "SessionStart", "cwd": "/a\x00b", "model": "\ud800", "transcript_path": "\x00"}, {}),
    (
        {"session_id": "s", "hook_event_name": "PreToolUse", "tool_use_id": "\x00", "tool_input": {"n": [float("nan"), -1e999]}},
        {},
    ),
    ({"session_id": "s", "hook_event_name": "\x00", "message": "m", "n": float("inf")}, {}),
]


@pytest.fixture
def spool(tmp_path: Path) -> Spool:
    return Spool(str(tmp_path / "spool"))


def put(spool: Spool, payload: dict[str, Any], facts: dict[str, Any] | None = None) -> None:
    spool.put("claude", "one", {"session": payload.get("session_id"), **(facts or {})}, json.dumps(payload).encode())


@on_both
@pytest.mark.parametrize("number", range(len(STRANGE)))
def test_no_event_keeps_those_behind_it_out(log: Decklog, spool: Spool, number: int) -> None:
    put(spool, *STRANGE[number])
    put(spool, {"session_id": "after", "hook_event_name": "UserPromptSubmit", "prompt": "I came after", "prompt_id": "p"})
    run_intake(log, spool)
    assert spool.is_empty
    assert [entry.body for entry in log.journal.find("claude-after", kind=EntryKind.INTERACTION)] == ["I came after"]
    assert log.journal.verify().ok


def test_a_pipe_in_the_place_of_a_transcript_keeps_nobody_waiting(log: Decklog, spool: Spool, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "t.jsonl")
    put(spool, {"session_id": "s", "hook_event_name": "Stop", "transcript_path": str(tmp_path / "t.jsonl")})
    assert run_intake(log, spool).events == 1
    assert spool.is_empty


@on_both
def test_a_transcript_that_was_written_anew_is_read_from_its_beginning(log: Decklog, spool: Spool, tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    for first in (1, 4):
        path.write_text("".join(json.dumps(said(number)) + "\n" for number in range(first, first + 2 + first)))
        put(spool, {"session_id": "s", "hook_event_name": "Stop", "transcript_path": str(path)})
        run_intake(log, spool)
    found = log.journal.find("claude-s", kind=EntryKind.INTERACTION, oldest_first=True)
    assert [entry.body for entry in found] == [f"text {number}" for number in range(1, 10)]


def test_what_another_log_has_taken_in_is_read_again_for_this_one(log: Decklog, spool: Spool, tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_text(json.dumps(said(1)) + "\n")
    with Decklog.open(tmp_path / "other.db") as other:
        for place in (other, log):
            put(spool, {"session_id": "s", "hook_event_name": "Stop", "transcript_path": str(path)})
            run_intake(place, spool)
    assert [entry.body for entry in log.journal.find("claude-s", kind=EntryKind.INTERACTION)] == ["text 1"]


def test_a_long_transcript_keeps_nobody_waiting_until_it_is_read(
    spool: Spool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, seen = tmp_path / "t.jsonl", list[int]()
    path.write_text("".join(json.dumps(said(number)) + "\n" for number in range(1, 9)))
    monkeypatch.setattr(intake, "_MUCH_BYTES", 500)
    monkeypatch.setattr(intake, "_LINES_TOGETHER", 2)
    with Decklog.open(tmp_path / "log.db") as log, Decklog.open(tmp_path / "log.db", read_only=True) as other:

        def read(*arguments: Any, **options: Any) -> Any:
            # What others see of it is what was committed.
            seen.append(len(other.journal.find("claude-s", kind=EntryKind.INTERACTION)) if seen else 0)
            yield from lines_of(*arguments)

        monkeypatch.setattr(intake, "lines_of", read)
        put(spool, {"session_id": "s", "hook_event_name": "Stop", "transcript_path": str(path)})
        run_intake(log, spool)
        found = log.journal.find("claude-s", kind=EntryKind.INTERACTION, oldest_first=True)
        assert [entry.body for entry in found] == [f"text {number}" for number in range(1, 9)]
    assert seen[:3] == [0, 2, 4]


def test_a_fork_is_read_on_after_the_clock_was_set_back(log: Decklog, spool: Spool, tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    base = {"session_id": "s", "transcript_path": str(path)}
    # 2026-11-15T12:00:03Z: the first two lines are those of the session that it was made of.
    forked_at = 1794744003
    path.write_text("".join(json.dumps(said(number)) + "\n" for number in (1, 2)))
    put(spool, {**base, "hook_event_name": "SessionStart", "source": "fork"}, {"at": forked_at})
    for number in (4, 1, 2):
        with path.open("a") as file:
            file.write(json.dumps({**said(number), "message": {**said(number)["message"], "id": f"own{number}"}}) + "\n")
        put(spool, {**base, "hook_event_name": "Stop"})
        run_intake(log, spool)
    found = log.journal.find("claude-s", kind=EntryKind.INTERACTION, oldest_first=True)
    assert [entry.body for entry in found] == ["text 4", "text 1", "text 2"]


def said(number: int) -> dict[str, Any]:
    message = {"id": f"m{number}", "model": "m", "content": [{"type": "text", "text": f"text {number}"}]}
    return {"type": "assistant", "sessionId": "s", "timestamp": f"2026-11-15T12:00:0{number}Z", "message": message}


def test_a_line_that_a_killed_hook_left_half_written_is_waited_for_by_nobody(log: Decklog, spool: Spool) -> None:
    put(spool, {"session_id": "s", "hook_event_name": "Stop"})
    (name,) = spool.list_waiting()
    with open(os.path.join(spool.folder, name), "ab") as file:
        file.write(b'{"at": 1, "prog')
    assert run_intake(log, spool).events == 1
    assert spool.is_empty
    put(spool, {"session_id": "s", "hook_event_name": "Stop"})
    assert run_intake(log, spool).unread == 1


def test_two_sessions_whose_names_are_spelled_alike_are_two_runs(log: Decklog, spool: Spool) -> None:
    for session in ("a b", "a_b", "a:b"):
        put(spool, {"session_id": session, "hook_event_name": "Stop"})
    run_intake(log, spool)
    assert len(log.runs.find()) == 3


def test_a_fork_whose_file_comes_later_does_not_tell_what_it_was_made_of(log: Decklog, spool: Spool, tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    base = {"session_id": "s", "transcript_path": str(path)}
    put(spool, {**base, "hook_event_name": "SessionStart", "source": "fork"}, {"at": 1794744003})
    run_intake(log, spool)
    path.write_text("".join(json.dumps(said(number)) + "\n" for number in (1, 2, 4)))
    put(spool, {**base, "hook_event_name": "Stop"})
    run_intake(log, spool)
    found = log.journal.find("claude-s", kind=EntryKind.INTERACTION, oldest_first=True)
    assert [entry.body for entry in found] == ["text 4"]
