"""Who calls."""

import os

import pytest

from decklog import Invalid
from decklog.agents.caller import is_agent, worker


def test_a_name_goes_before_a_session_and_that_before_the_program_that_calls() -> None:
    session = {"CLAUDECODE": "1", "CLAUDE_CODE_SESSION_ID": "aaaa-bbbb-12345678", "USER": "ana"}
    assert worker("dev", {**session, "DECKLOG_WORKER": "other"}).name == "dev"
    assert worker(None, {**session, "DECKLOG_WORKER": "other"}).name == "other"
    assert worker(None, session).name == "claude-12345678"
    assert worker(None, {"USER": "ana"}).name.startswith(f"ana@{os.uname().nodename}-")
    assert worker(None, {"GEMINI_CLI": "1"}).name.startswith("gemini-")
    with pytest.raises(Invalid):
        worker(" ", {})


def test_an_agent_that_another_one_started_is_not_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    outer = {"CLAUDECODE": "1", "CLAUDE_CODE_SESSION_ID": "one"}
    inner = {**outer, "CODEX_THREAD_ID": "two"}
    assert (worker(None, outer).name, worker(None, outer).instance) == ("claude-one", "one")
    assert (worker(None, inner).name, worker(None, inner).instance) == ("claude+codex-onetwo", "one two")
    assert not is_agent()
    monkeypatch.setenv("CODEX_THREAD_ID", "two")
    assert is_agent()
