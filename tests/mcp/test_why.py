from pathlib import Path

import pytest

from decklog import Decklog
from tests.mcp.conftest import Agent
from tests.provenance.sessions import RecordedSession
from tests.provenance.text_repositories import TextFolder


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> TextFolder:
    found = TextFolder(tmp_path / "repo")
    found.commit("First", a="one\n")
    monkeypatch.chdir(found.folder)
    return found


def test_agent_learns_who_wrote_a_line_and_why(log: Decklog, folder: TextFolder, agent: object) -> None:
    session = RecordedSession(log, folder, "claude", "s1")
    session.prompt("Count further")
    session.edit("a", "one\ntwo\n")
    folder.commit("Second")
    me: Agent = agent()
    data = me.data("why", place="a:2")
    assert data["origin"]["sessions"] == ["claude:s1"]
    assert data["edits"][0]["prompt"]["text"] == "Count further"
    text = me("why", place="a:2").content[0].text
    assert "prompt: Count further" in text
    assert me.data("why", place="a:1")["origin"] == {"kind": "unknown"}


def test_line_that_is_not_there_is_an_error_with_a_next_step(log: Decklog, folder: TextFolder, agent: object) -> None:
    me: Agent = agent()
    assert me.error("why", place="a:9")["code"] == "not_found"
    assert me.error("why", place="/etc/passwd:1")["code"] == "not_found"
    assert me.error("why", place="a")["code"] == "invalid"
