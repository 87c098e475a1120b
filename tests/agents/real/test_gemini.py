"""Gemini CLI itself, set up by `decklog setup gemini`: what the log says is what the model saw, to the token."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from decklog import Decklog, RunStatus
from tests.agents.fake_model import FakeModel, Step, Use
from tests.agents.real.programs import GEMINI, HELD, Gemini, decklog, entries, needs

SCRIPT = {
    "main": [
        Step("Let me look.", (Use("run_shell_command", {"command": "echo hi"}),), cache_read_tokens=40),
        Step(uses=(Use("run_shell_command", {"command": "exit 3"}), Use("read_file", {"file_path": "missing.txt"}))),
        Step(uses=(Use("run_shell_command", {"command": HELD}),)),
        Step(uses=(Use("invoke_agent", {"agent_name": "generalist", "prompt": "lane=below look"}),)),
        Step("Done.", output_tokens=33),
    ],
    "below": [
        Step(uses=(Use("run_shell_command", {"command": "echo below"}),), input_tokens=7),
        Step(uses=(Use("complete_task", {"result": {"response": "found"}}),), input_tokens=9),
        Step("That is all."),
    ],
    "more": [Step("More.")],
}


@pytest.fixture
def model() -> Iterator[FakeModel]:
    with FakeModel(SCRIPT) as model:
        yield model


@needs(GEMINI)
def test_a_session_is_on_record_with_what_failed_what_was_held_and_what_a_sub_agent_spent(
    tmp_path: Path, model: FakeModel
) -> None:
    gemini = Gemini(tmp_path, model)
    gemini.prepare()
    gemini.configure()
    decklog(gemini, "setup", "gemini")
    session = str(gemini.run("lane=main go")[0]["session_id"])
    run = f"gemini-{session}"
    with gemini.log() as log:
        assert_told(log, run)
        assert not (gemini.home / ".bashrc").exists()
        below = log.runs.find(parent_run_id=run)
        assert [(each.goal, each.status) for each in below] == [("lane=below look", RunStatus.COMPLETED)]
        assert ("result", "below") in entries(log, below[0].id)
        gemini.assert_paid(log)
    gemini.run("lane=more go on", "--resume", "latest")
    with gemini.log() as log:
        assert entries(log, run)[-4:-1] == [("session", "session resume"), ("prompt", "lane=more go on"), ("said", "More.")]
        gemini.assert_paid(log)
        before = len(entries(log, run))
    decklog(gemini, "import", "gemini", str(gemini.home / ".gemini" / "tmp"))
    with gemini.log() as log:
        assert len(entries(log, run)) == before
        gemini.assert_paid(log)


def assert_told(log: Decklog, run: str) -> None:
    """Hold the session against its script: nothing that the program says by itself is taken for a person's words."""
    told = entries(log, run)
    assert [body for subtype, body in told if subtype == "prompt"] == ["lane=main go"]
    assert [body for subtype, body in told if subtype == "said"] == ["Let me look.", "Done."]
    assert not [body for subtype, body in told if subtype == "compacting"]
    results = log.journal.find(run, subtype="result", oldest_first=True)
    outcomes = [entry.payload["outcome"] for entry in results if isinstance(entry.payload, dict)]
    assert outcomes == ["ok", "failed", "failed", "denied", "ok"]
    assert results[0].body == "hi"
    assert isinstance(results[1].payload, dict)
    assert results[1].payload["exit_code"] == 3
