"""Real agents in an editor, with the proxy between: what the log says is what passed, and what is denied does not run."""

import asyncio
import os
import signal
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from decklog import Decklog, RunStatus
from tests.agents.fake_model import FakeModel, Step, Use
from tests.agents.real.editors import (
    CLAUDE_ADAPTER,
    CODEX_ADAPTER,
    NODE,
    ClaudeInEditor,
    CodexInEditor,
    Connection,
    proxied,
    settled,
)
from tests.agents.real.programs import DECKLOG, entries, needs

pytestmark = [needs(CLAUDE_ADAPTER), needs(CODEX_ADAPTER), needs(NODE)]
Desk = ClaudeInEditor | CodexInEditor


def bash(command: str) -> Use:
    return Use("Bash", {"command": command, "description": "do it"})


def shell(command: str) -> Use:
    return Use("exec_command", {"cmd": command})


def patch(path: str) -> Use:
    return Use("apply_patch", {"input": f"*** Begin Patch\n*** Add File: {path}\n+made\n*** End Patch\n"})


SCRIPTS = {
    "claude": {
        "tools": [
            Step("Let me look.", (bash("ls"),), input_tokens=101),
            Step(uses=(Use("Write", {"file_path": "made.txt", "content": "made\n"}),), input_tokens=102),
            Step("All done.", input_tokens=103),
        ],
        "held": [Step(uses=(Use("Write", {"file_path": ".git/hooks/pre-commit", "content": "made"}),)), Step("It was held.")],
        "slow": [Step("Thinking."), Step("Never said.")],
        "next": [Step("It goes on.", input_tokens=104)],
    },
    "codex": {
        "tools": [
            Step("Let me look.", (shell("ls"),), input_tokens=101),
            Step(uses=(patch("made.txt"),), input_tokens=102),
            Step("All done.", input_tokens=103),
        ],
        "held": [Step(uses=(patch(".git/hooks/pre-commit"),)), Step("It was held.")],
        "next": [Step("It goes on.", input_tokens=104)],
    },
}
PROGRAMS: dict[str, type[Desk]] = {"claude": ClaudeInEditor, "codex": CodexInEditor}


@pytest.fixture(params=["claude", "codex"])
def program(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def desk(tmp_path: Path, program: str) -> Iterator[Desk]:
    with FakeModel(SCRIPTS[program]) as model:
        yield PROGRAMS[program](tmp_path, model).prepare()  # type: ignore[misc]


def assert_paid(desk: Desk, log: Decklog, *tokens: int) -> None:
    """Each answer of the conversation was paid for, and not more than the model gave; what it asks for besides is a sum."""
    paid = [charge.input_tokens for charge in log.ledger.find(limit=50)]
    assert sum(paid) <= sum(given.step.input_tokens for given in desk.model.given)
    assert Counter(tokens) <= Counter(paid)


def said(told: list[tuple[str | None, str | None]]) -> list[str | None]:
    # Codex tells of its sandbox as if the agent had said it.
    return [body for subtype, body in told if subtype == "said" and not str(body).startswith("Config warning")]


def test_a_session_in_an_editor_is_on_record_to_the_token(desk: Desk, program: str) -> None:
    with desk.connect() as editor:
        session = editor.begin()
        assert editor.prompt(session, "lane=tools go")["result"]["stopReason"] == "end_turn"
        assert editor.asked
    settled(desk)
    with desk.log() as log:
        run = log.runs.get(f"{program}-{session}")
        assert (run.goal, run.status, run.worktree) == ("lane=tools go", RunStatus.COMPLETED, str(desk.repository))
        told = entries(log, run.id)
        assert [body for subtype, body in told if subtype == "prompt"] == ["lane=tools go"]
        assert said(told) == ["Let me look.", "All done."]
        assert next(body for subtype, body in told if subtype == "call") == "ls"
        assert [body for subtype, body in told if subtype == "permission"][1] == "allow_once by person"
        assert sum(subtype == "result" for subtype, _ in told) == 2
        assert any(subtype == "diff" and "+made" in str(body) for subtype, body in told)
        assert_paid(desk, log, 101, 102, 103)
        assert log.journal.verify().ok
    assert (desk.repository / "made.txt").read_text() == "made\n"


def test_the_second_version_of_the_protocol_is_on_record_too(desk: Desk, program: str) -> None:
    with desk.connect() as editor:
        editor.call("initialize", protocolVersion=2, capabilities={}, info={"name": "scripted", "version": "1"})
        session = editor.call("session/new", cwd=str(desk.repository), mcpServers=[])["result"]["sessionId"]
        assert "messageId" in editor.prompt(session, "lane=tools go")["result"]
        editor.until(lambda message: "idle" in str(message.get("params", {}).get("update", {}).get("state")))
        editor.prompt(session, "lane=held go")
        editor.until(lambda message: "idle" in str(message.get("params", {}).get("update", {}).get("state")))
        assert len(editor.asked) == 1
    assert not (desk.repository / ".git" / "hooks" / "pre-commit").exists()
    settled(desk)
    with desk.log() as log:
        told = entries(log, f"{program}-{session}")
        assert [body for subtype, body in told if subtype == "prompt"] == ["lane=tools go", "lane=held go"]
        assert said(told)[:2] == ["Let me look.", "All done."]
        assert any(subtype == "diff" and "+made" in str(body) for subtype, body in told)
        assert any(subtype == "permission" and "by policy" in str(body) for subtype, body in told)
        assert_paid(desk, log, 101, 102, 103)
    assert (desk.repository / "made.txt").read_text() == "made\n"


def test_what_the_policy_denies_does_not_run_and_nobody_is_asked(desk: Desk, program: str) -> None:
    with desk.connect() as editor:
        session = editor.begin()
        editor.prompt(session, "lane=held go")
        assert editor.asked == []
    assert not (desk.repository / ".git" / "hooks" / "pre-commit").exists()
    settled(desk)
    with desk.log() as log:
        told = entries(log, f"{program}-{session}")
        assert any(subtype == "permission" and "by policy: Decklog's policy denies this" in str(body) for subtype, body in told)


def test_everything_an_agent_writes_reaches_the_editor_byte_for_byte(desk: Desk, program: str, tmp_path: Path) -> None:
    adapter = CLAUDE_ADAPTER if program == "claude" else CODEX_ADAPTER
    wrapper = tmp_path / "agent"
    wrapper.write_text(f"#!/bin/sh\n{NODE} {adapter} | tee {tmp_path / 'written'}\n")
    wrapper.chmod(0o755)
    with desk.connect() as editor:
        command, environment = [str(DECKLOG), "acp", "--", str(wrapper)], editor.environment
    heard = tmp_path / "heard"
    with Connection(command, desk, environment, copy=heard) as editor:
        editor.prompt(editor.begin(), "lane=tools go")
    assert heard.read_bytes() == (tmp_path / "written").read_bytes()[: heard.stat().st_size]
    assert heard.stat().st_size > 1000


def test_a_proxy_that_is_killed_loses_nothing_and_the_session_goes_on(desk: Desk, program: str) -> None:
    with desk.connect() as editor:
        session = editor.begin()
        editor.prompt(session, "lane=tools go")
        editor.process.send_signal(signal.SIGKILL)
        editor.process.wait(30)
    with desk.connect() as editor:
        editor.call("initialize", protocolVersion=1, clientCapabilities={}, clientInfo={"name": "scripted", "version": "1"})
        assert "result" in editor.call("session/load", sessionId=session, cwd=str(desk.repository), mcpServers=[])
        assert "result" in editor.prompt(session, "lane=next go")
    settled(desk)
    with desk.log() as log:
        told = entries(log, f"{program}-{session}")
        assert [body for subtype, body in told if subtype == "prompt"] == ["lane=tools go", "lane=next go"]
        assert said(told) == ["Let me look.", "All done.", "It goes on."]
        assert sum(subtype == "call" for subtype, _ in told) == 2
        assert_paid(desk, log, 101, 102, 103, 104)


def test_enforcement_has_the_agent_ask_for_what_it_would_do_unasked(tmp_path: Path) -> None:
    script = {"tools": [Step(uses=(bash("echo hello"),)), Step("Done.")]}
    with FakeModel(script) as model:
        desk: Any = ClaudeInEditor(tmp_path, model).prepare()
        with desk.connect("--enforce") as editor:
            session = editor.begin()
            editor.prompt(session, "lane=tools go")
            assert [asked["params"]["toolCall"]["rawInput"]["command"] for asked in editor.asked] == ["echo hello"]
            assert all(option["kind"] != "allow_always" for option in editor.asked[0]["params"]["options"])
            refused = editor.call("session/set_mode", sessionId=session, modeId="bypassPermissions")
            assert "does not ask in the mode bypassPermissions" in refused["error"]["message"]
        settled(desk)
        with desk.log() as log:
            told = entries(log, f"claude-{session}")
            assert any(subtype == "guard" and "set to ask for Bash" in str(body) for subtype, body in told)
            assert any(subtype == "denied" for subtype, _ in told)


def test_enforcement_holds_codex_to_the_mode_in_which_it_asks(tmp_path: Path) -> None:
    with FakeModel(SCRIPTS["codex"]) as model:
        desk: Any = CodexInEditor(tmp_path, model).prepare()
        with desk.connect("--enforce", mode="") as editor:
            session = editor.begin()
            editor.says = "reject_once"
            editor.prompt(session, "lane=tools go")
            assert len(editor.asked) == 1
            refused = editor.call("session/set_mode", sessionId=session, modeId="agent-full-access")
            assert "does not ask in the mode agent-full-access" in refused["error"]["message"]
        assert not (desk.repository / "made.txt").exists()
        settled(desk)
        with desk.log() as log:
            told = entries(log, f"codex-{session}")
            assert ("permission", "reject_once by person") in told


def test_hooks_and_the_proxy_together_tell_everything_once(tmp_path: Path) -> None:
    with FakeModel(SCRIPTS["claude"]) as model:
        desk: Any = ClaudeInEditor(tmp_path, model).prepare()
        desk.set_up_hooks()
        with desk.connect() as editor:
            session = editor.begin()
            editor.prompt(session, "lane=tools go")
        settled(desk)
        with desk.log() as log:
            told = entries(log, f"claude-{session}")
            for subtype, count in {"prompt": 1, "said": 2, "call": 2, "result": 2, "turn": 1, "session": 1}.items():
                assert sum(each == subtype for each, _ in told) == count, (subtype, told)
            assert_paid(desk, log, 101, 102, 103)


def test_the_protocols_own_client_talks_through_the_proxy(desk: Desk, program: str) -> None:
    acp = pytest.importorskip("acp", reason="the protocol's SDK is not installed: `make test-agents` does it")
    with desk.connect() as editor:
        environment = editor.environment

    class Client:
        said = ""

        async def request_permission(self, options: Any, session_id: str, tool_call: Any, **_: Any) -> Any:
            chosen = next(option for option in options if option.kind == "allow_once")
            return {"outcome": {"outcome": "selected", "optionId": chosen.option_id}}

        async def session_update(self, session_id: str, update: Any, **_: Any) -> None:
            self.said += getattr(getattr(update, "content", None), "text", None) or ""

        def on_connect(self, _connection: Any) -> None:
            """Nothing is to be done."""

    async def talk(client: Any) -> str:
        command = proxied(CLAUDE_ADAPTER if program == "claude" else CODEX_ADAPTER)
        async with acp.spawn_agent_process(client, *command, env=environment, cwd=desk.repository) as (connection, _):
            await connection.initialize(protocol_version=1)
            session = await connection.new_session(cwd=str(desk.repository), mcp_servers=[])
            prompt = [acp.text_block("lane=tools go")]
            answer = await connection.prompt(session_id=session.session_id, prompt=prompt)
            assert answer.stop_reason == "end_turn"
            return str(session.session_id)

    client = Client()
    session = asyncio.run(talk(client))
    assert "All done." in client.said
    settled(desk)
    with desk.log() as log:
        assert ("said", "All done.") in entries(log, f"{program}-{session}")
    assert os.path.exists(desk.repository / "made.txt")
