"""The Claude Agent SDK with its own program and a model that answers by script: what the log says is what the model saw."""

import asyncio
import json
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from decklog import Decklog, EntryKind, RunStatus
from tests.agents.fake_model import FakeModel, Step
from tests.agents.real.programs import DECKLOG, EVENTS, TOOLS, Claude, entries
from tests.agents.real.test_claude import SCRIPT, SESSION
from tests.db.processes import ROOT
from tests.project.documents import blocks_of, variables

if find_spec("claude_agent_sdk") is None:
    pytest.skip("the Claude Agent SDK is not installed: `make test-agents` brings it", allow_module_level=True)

RUN = f"claude-{SESSION}"
TURNS = {"more": [Step("First.")]}


def setup_module() -> None:
    """Import what takes longer than most that is collected, for those who run these tests alone."""
    global ClaudeAgentOptions, ClaudeSDKClient, DecklogSessions, ResultMessage
    from claude_agent_sdk import ClaudeAgentOptions, ClaudeSDKClient, ResultMessage

    from decklog.plugins.adapters.claude_sdk import DecklogSessions


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Claude]:
    with FakeModel({**SCRIPT, **TURNS}) as model:
        yield Claude(tmp_path, model).prepare()  # type: ignore[misc]


def options(desk: Claude, **settings: Any) -> "ClaudeAgentOptions":
    tools = {"allowed_tools": TOOLS.split(","), "model": "sonnet", "session_id": SESSION}
    own = {**desk.environment, **desk._own}
    return ClaudeAgentOptions(cwd=str(desk.repository), env=own, **{**tools, **settings})


def ask(sessions: "DecklogSessions", prompt: str, given: "ClaudeAgentOptions") -> list[Any]:
    async def all_of_it() -> list[Any]:
        return [message async for message in sessions.query(prompt=prompt, options=given)]

    return asyncio.run(all_of_it())


def test_a_session_with_tools_is_on_record_to_the_token(desk: Claude) -> None:
    with desk.log() as log:
        with DecklogSessions(log) as sessions:
            messages = ask(sessions, "lane=tools go", options(desk))
            assert sessions.trouble is None
        assert isinstance(messages[-1], ResultMessage)
        run = log.runs.get(RUN)
        assert (run.goal, run.status, run.summary) == ("lane=tools go", RunStatus.COMPLETED, "All done.")
        told = entries(log, RUN)
        assert [each for each in told if each[0] in ("prompt", "call")] == [
            ("prompt", "lane=tools go"),
            ("call", "echo hello"),
            ("call", f"Write {desk.repository / 'made.txt'}"),
            ("call", "exit 3"),
        ]
        assert [each for each in told if each[0] == "said"] == [("said", "Let me look."), ("said", "All done.")]
        results = [entry.payload for entry in log.journal.find(RUN, kind=EntryKind.TOOL) if entry.subtype == "result"]
        outcomes = [(result["tool"], result["outcome"]) for result in results if isinstance(result, dict)]
        assert sorted(outcomes) == [("Bash", "failed"), ("Bash", "ok"), ("Write", "ok")]
        desk.assert_paid(log)


def test_what_the_policy_denies_does_not_run(desk: Claude) -> None:
    with desk.log() as log:
        with DecklogSessions(log) as sessions:
            ask(sessions, "lane=held go", options(desk))
        assert not (desk.home / ".bashrc").exists()
        result = log.journal.find(RUN, kind=EntryKind.TOOL)[0]
        assert isinstance(result.payload, dict)
        assert result.payload["outcome"] == "denied"
        desk.assert_paid(log)


def test_a_sub_agent_is_a_run_below_its_session(desk: Claude) -> None:
    with desk.log() as log:
        with DecklogSessions(log) as sessions:
            ask(sessions, "lane=agent go", options(desk))
        (below,) = log.runs.find(parent_run_id=RUN)
        assert ("call", "echo below") in entries(log, below.id)
        assert (below.status, below.summary) == (RunStatus.COMPLETED, "Below is done.")
        desk.assert_paid(log)


def test_the_turns_of_a_client_are_one_session(desk: Claude) -> None:
    async def talk(sessions: DecklogSessions) -> None:
        async with ClaudeSDKClient(sessions.options(options(desk))) as client:
            for prompt in ("lane=more one", "lane=tools two"):
                await client.query(prompt)
                async for _ in sessions.messages(client.receive_response()):
                    pass

    with desk.log() as log:
        with DecklogSessions(log) as sessions:
            asyncio.run(talk(sessions))
        run = log.runs.get(RUN)
        assert (run.goal, run.status, run.summary) == ("lane=more one", RunStatus.COMPLETED, "All done.")
        told = entries(log, RUN)
        assert [body for subtype, body in told if subtype in ("prompt", "turn.result")] == [
            "lane=more one",
            "First.",
            "lane=tools two",
            "All done.",
        ]
        desk.assert_paid(log)


def test_a_session_that_is_cancelled_says_so(desk: Claude) -> None:
    async def hear(sessions: DecklogSessions) -> None:
        async for _ in sessions.query(prompt="lane=slow go", options=options(desk)):
            pass

    async def cut(sessions: DecklogSessions, log: Decklog) -> None:
        task = asyncio.create_task(hear(sessions))
        while not log.runs.find() or ("result", "first") not in entries(log, RUN):
            await asyncio.sleep(0.05)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    with desk.log() as log:
        with DecklogSessions(log) as sessions:
            asyncio.run(cut(sessions, log))
        assert log.runs.get(RUN).status is RunStatus.CANCELLED
        assert [charge.input_tokens for charge in log.ledger.find(RUN)] == [100]


def test_a_program_that_has_our_hooks_too_is_heard_once(desk: Claude) -> None:
    hook = {"type": "command", "command": str(DECKLOG), "args": ["hook", "claude"], "timeout": 20}
    settings = json.dumps({"hooks": {event: [{"hooks": [hook]}] for event in EVENTS.split()}})
    with desk.log() as log:
        with DecklogSessions(log) as sessions:
            ask(sessions, "lane=tools go", options(desk, settings=settings))
        desk.settle()
        told = entries(log, RUN)
        assert [body for subtype, body in told if subtype in ("prompt", "said")] == ["lane=tools go", "Let me look.", "All done."]
        assert len([subtype for subtype, _ in told if subtype == "call"]) == 3
        desk.assert_paid(log)


def test_where_no_transcript_is_kept_messages_tell_what_was_said_and_spent(desk: Claude) -> None:
    with desk.log() as log:
        with DecklogSessions(log) as sessions:
            ask(sessions, "lane=tools go", options(desk, extra_args={"no-session-persistence": None}))
        told = entries(log, RUN)
        assert [body for subtype, body in told if subtype == "said"] == ["Let me look.", "All done."]
        assert all(charge.cost_microdollars for charge in log.ledger.find(RUN))
        desk.assert_paid(log)


def test_the_guide_s_programs_work(desk: Claude) -> None:
    for block in blocks_of(ROOT / "docs/how-to/claude-agent-sdk.md"):
        own = {**variables(desk.home), **desk.environment, **desk._own}
        words = [sys.executable, "-c", block.text]
        done = subprocess.run(words, cwd=desk.folder, env=own, capture_output=True, text=True, timeout=90, check=False)
        assert done.stdout.endswith("ResultMessage\n"), done.stderr
    with Decklog.open(desk.folder / "agents.db") as log:
        assert {(run.goal, run.status) for run in log.runs.find()} == {
            ("Fix the flaky test", RunStatus.COMPLETED),
            ("Which tests are flaky?", RunStatus.COMPLETED),
        }
        desk.assert_paid(log)
