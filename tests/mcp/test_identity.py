"""The worker of a call: from the environment, the session or the program."""

from pathlib import Path
from typing import Any

import pytest

from decklog import Decklog
from tests.mcp.conftest import Agent


def worker_of(log: Decklog, folder: Path, program: str, environment: dict[str, str], **meta: Any) -> str | None:
    """Write a note as a program, and give the name that it has in the log."""
    from decklog.mcp.server import build
    from decklog.mcp.source import LogSource

    me = Agent(build(LogSource(opened=(log, str(folder / "claims"))), environment), program=program)
    noted = me.talk(lambda client: client.call_tool("note", {"text": "a thought"}, meta=meta or None))
    return log.journal.get(noted.structured_content["entry"]).agent


THREAD = "01a1e1c2-1c46-7c42-8da7-eea13fe17ff2"


@pytest.mark.parametrize(
    ("program", "environment", "meta", "name"),
    [
        ("claude-code", {"CLAUDE_CODE_SESSION_ID": "11111111-1111-4111-8111-11112222abcd"}, {}, "claude-2222abcd"),
        ("codex-mcp-client", {}, {"threadId": THREAD}, "codex-3fe17ff2"),
        ("codex-mcp-client", {"DECKLOG_WORKER": "dev-1"}, {"threadId": THREAD}, "dev-1"),
        ("codex-mcp-client", {}, {"threadId": 7}, "codex-mcp-client-"),
        ("codex-mcp-client", {}, {"threadId": "no name \n"}, "codex-mcp-client-"),
        ("another", {}, {"threadId": THREAD}, "another-"),
        ("An Editor/2 \u202e", {}, {}, "An-Editor-2-"),
        ("\u202e", {}, {}, "mcp-"),
        ("claude-code", {"DECKLOG_AGENT": "ada"}, {}, "ada"),
    ],
)
def test_a_call_is_of_the_worker_that_its_program_or_session_is(
    log: Decklog, run_id: str, tmp_path: Path, program: str, environment: dict[str, str], meta: dict[str, Any], name: str
) -> None:
    found = worker_of(log, tmp_path, program, environment, **meta)
    assert found is not None
    assert found.rstrip("0123456789") == name if name.endswith("-") else found == name


def test_a_worker_without_a_name_is_refused(log: Decklog, run_id: str, tmp_path: Path) -> None:
    from decklog.mcp.server import build
    from decklog.mcp.source import LogSource

    me = Agent(build(LogSource(opened=(log, str(tmp_path / "claims"))), {"DECKLOG_WORKER": "  "}))
    assert me.error("next")["message"] == "a worker needs a name"
