"""Sessions of the Claude Agent SDK over a scripted transport: the SDK is the real one, its program is played.

With its own program and a model on loopback it is tried in `tests/agents/real`.
"""

import asyncio
import logging
import math
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from decklog import Decklog, EntryKind, RunStatus
from decklog.agents import recorded

if find_spec("claude_agent_sdk") is None:
    pytest.skip("the Claude Agent SDK is not installed: `make test-agents` brings it", allow_module_level=True)

SESSION = "s1"
RUN = f"claude-{SESSION}"
BASE = {"session_id": SESSION, "transcript_path": "/nowhere/s1.jsonl", "cwd": "/nowhere"}
# Held by the policy.
HELD = "echo alias ls=true >> ~/.bashrc"


def setup_module() -> None:
    """Import what takes longer than most that is collected, for those who run these tests alone."""
    global ClaudeAgentOptions, DecklogSessions, HookMatcher, Played
    from claude_agent_sdk import ClaudeAgentOptions, HookMatcher

    from decklog.plugins.adapters.claude_sdk import DecklogSessions
    from tests.plugins.adapters.claude_sdk.played import Played


def hook(name: str, **facts: Any) -> tuple[str, dict[str, Any]]:
    return "hook", {**BASE, "hook_event_name": name, **facts}


def bash(call: str, command: str) -> tuple[str, dict[str, Any]]:
    return hook("PreToolUse", tool_name="Bash", tool_use_id=call, tool_input={"command": command})


def said(text: str, message_id: str) -> tuple[str, dict[str, Any]]:
    message = {"id": message_id, "model": "sonnet", "role": "assistant", "content": [{"type": "text", "text": text}]}
    return "message", {"type": "assistant", "message": message, "session_id": SESSION}


def result(uuid: str, tokens: int, cost: float, **facts: Any) -> tuple[str, dict[str, Any]]:
    used = {"inputTokens": tokens, "outputTokens": 2 * tokens, "cacheReadInputTokens": 3, "cacheCreationInputTokens": 1}
    told = {"subtype": "success", "duration_ms": 5, "duration_api_ms": 4, "is_error": False, "num_turns": 1, "result": "Done."}
    usage = {"modelUsage": {"sonnet": {**used, "costUSD": cost}}, "total_cost_usd": cost}
    return "message", {"type": "result", "session_id": SESSION, "uuid": uuid, **told, **usage, **facts}


def play(sessions: "DecklogSessions", *script: tuple[str, dict[str, Any]], **settings: Any) -> list[Any]:
    async def all_of_it() -> list[Any]:
        played = Played(*script)
        async for _ in sessions.query(prompt="go", options=ClaudeAgentOptions(**settings), transport=played):
            pass
        return [answer["response"] for answer in played.answers]

    return asyncio.run(all_of_it())


def entry_texts(log: Decklog, run_id: str, *subtypes: str) -> list[tuple[str | None, str | None]]:
    found = log.journal.find(run_id, oldest_first=True, limit=100)
    return [(one.subtype, one.body) for one in found if one.kind is not EntryKind.CHANGE and one.subtype in subtypes]


SCRIPT = (
    hook("UserPromptSubmit", prompt="go", prompt_id="p1"),
    bash("t1", "ls"),
    hook("PostToolUse", tool_name="Bash", tool_use_id="t1", tool_input={"command": "ls"}, tool_response={"stdout": "a"}),
    said("One.", "m1"),
    said("Two.", "m1"),
    hook("PreCompact", trigger="auto"),
    hook("Stop"),
    result("u1", 100, 0.01),
    # The program tells a result again, and then one of the next turn, whose sums hold the first.
    result("u1", 100, 0.01),
    result("u2", 150, 0.03),
)


def test_a_session_is_a_run_and_what_is_repeated_is_paid_once(log: Decklog) -> None:
    with DecklogSessions(log) as sessions:
        assert play(sessions, *SCRIPT) == [{}] * 5
    run = log.runs.get(RUN)
    assert (run.goal, run.status, run.summary) == ("go", RunStatus.COMPLETED, "Done.")
    assert entry_texts(log, RUN, "prompt", "call", "result", "said", "compacting") == [
        ("prompt", "go"),
        ("call", "ls"),
        ("result", "a"),
        ("compacting", "auto"),
        ("said", "One."),
        ("said", "Two."),
    ]
    charges = log.ledger.find(RUN, limit=9)
    paid = [(one.input_tokens, one.output_tokens, one.cache_read_tokens, one.cost_microdollars) for one in charges]
    assert paid == [(50, 100, 0, 20_000), (100, 200, 3, 10_000)]
    assert len(entry_texts(log, RUN, "turn.result")) == 2
    assert log.journal.verify().ok


def test_what_is_denied_by_anybody_is_on_record_as_denied(log: Decklog) -> None:
    denial = {"tool_name": "Write", "tool_use_id": "t3", "tool_input": {"file_path": "x"}}
    script = (bash("t1", HELD), bash("t2", "ls"), result("u1", 1, 0.0, permission_denials=[denial]))
    heard = []

    async def own(given: Any, _id: str | None, _context: Any) -> dict[str, Any]:
        heard.append(given["tool_use_id"])
        return {}

    with DecklogSessions(log) as sessions:
        first, *rest = play(sessions, *script, hooks={"PreToolUse": [HookMatcher(hooks=[own])]})[1::2]
    assert first["hookSpecificOutput"]["permissionDecision"] == "deny"
    assert (rest, heard) == ([{}], ["t1", "t2"])
    facts: list[Any] = [one.payload for one in log.journal.find(RUN, kind=EntryKind.TOOL) if one.subtype == "result"]
    outcomes = {fact["call"]: fact["outcome"] for fact in facts}
    assert outcomes == {"t1": "denied", "t2": "lost", "t3": "denied"}


def test_inside_of_a_recorded_run_everything_belongs_to_that_and_a_failed_turn_fails_its_session(log: Decklog) -> None:
    with DecklogSessions(log, guard=False) as sessions:
        with recorded(log, "All of it", run_id="all"):
            assert play(sessions, bash("t1", HELD), result("u1", 1, 0.0)) == [{}]
        play(sessions, result("u2", 5, 0.5, is_error=True, subtype="error_max_turns"))
    assert {run.id: run.status for run in log.runs.find()} == {"all": RunStatus.COMPLETED, RUN: RunStatus.FAILED}
    assert entry_texts(log, "all", "call", "turn.result") == [("call", HELD), ("turn.result", "Done.")]


def test_a_log_that_can_not_be_written_stops_nobody_and_what_is_held_is_held(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    closed = Decklog.open(tmp_path / "late.db")
    closed.close()
    sessions = DecklogSessions(closed)
    with caplog.at_level(logging.WARNING, "decklog.plugins.adapters"):
        (answer,) = play(sessions, bash("t1", HELD), result("u1", 1, 0.0))
        assert not sessions.flush(math.inf)
    assert answer["hookSpecificOutput"]["permissionDecision"] == "deny"
    assert "not everything is on record yet" in caplog.text
    with Decklog.open(tmp_path / "late.db") as log, DecklogSessions(log) as later:
        assert later.flush()
        assert log.runs.get(RUN).status is RunStatus.COMPLETED
