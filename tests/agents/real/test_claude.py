"""Claude Code itself, with a model that answers by script: what the log says is what the model saw."""

import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from decklog import EntryKind, RunStatus
from tests.agents.fake_model import FakeModel, Step, Use
from tests.agents.real.programs import CLAUDE, Claude, entries, needs
from tests.waiting import wait_until

pytestmark = needs(CLAUDE)
SESSION = "11111111-1111-4111-8111-111111111111"
RUN = f"claude-{SESSION}"


def bash(command: str) -> Use:
    return Use("Bash", {"command": command, "description": "do it"})


SCRIPT = {
    "tools": [
        Step("Let me look.", (bash("echo hello"), Use("Write", {"file_path": "made.txt", "content": "made"}))),
        Step(uses=(bash("exit 3"),), cache_read_tokens=50),
        Step("All done.", cache_create_tokens=11),
    ],
    "held": [Step(uses=(bash("echo alias ls=true >> ~/.bashrc"),)), Step("It was held.")],
    "agent": [
        Step(uses=(Use("Agent", {"description": "look", "prompt": "lane=below go", "subagent_type": "general-purpose"}),)),
        Step("The sub-agent is on it."),
    ],
    "below": [Step(uses=(bash("echo below"),), input_tokens=31), Step("Below is done.", output_tokens=13)],
    "long": [Step(uses=(bash("sleep 60"),)), Step("Never said.")],
    "slow": [Step("Thinking.", (bash("echo first"),)), Step("Too late.", seconds=60)],
    "next": [Step("It goes on.")],
}


@pytest.fixture
def claude(tmp_path: Path) -> Iterator[Claude]:
    with FakeModel(SCRIPT) as model:
        yield Claude(tmp_path, model).prepare()  # type: ignore[misc]


def test_a_session_with_tools_is_on_record_to_the_token(claude: Claude) -> None:
    claude.run("lane=tools go", "--session-id", SESSION)
    with claude.log() as log:
        run = log.runs.get(RUN)
        assert (run.goal, run.status, run.worktree) == ("lane=tools go", RunStatus.COMPLETED, str(claude.repository))
        told = entries(log, RUN)
        assert [each for each in told if each[0] in ("prompt", "said", "call")] == [
            ("prompt", "lane=tools go"),
            ("call", "echo hello"),
            ("call", f"Write {claude.repository / 'made.txt'}"),
            ("call", "exit 3"),
            ("said", "Let me look."),
            ("said", "All done."),
        ]
        results = [
            entry.payload for entry in log.journal.find(RUN, kind=EntryKind.TOOL, oldest_first=True) if entry.subtype == "result"
        ]
        outcomes = [(result["tool"], result["outcome"]) for result in results if isinstance(result, dict)]
        assert sorted(outcomes) == [("Bash", "failed"), ("Bash", "ok"), ("Write", "ok")]
        claude.assert_paid(log)
    assert (claude.repository / "made.txt").read_text() == "made"


def test_what_the_policy_denies_does_not_run(claude: Claude) -> None:
    claude.run("lane=held go", "--session-id", SESSION)
    assert not (claude.home / ".bashrc").exists()
    with claude.log() as log:
        result = log.journal.find(RUN, kind=EntryKind.TOOL)[0]
        assert isinstance(result.payload, dict)
        assert result.payload["outcome"] == "denied"
        claude.assert_paid(log)


def test_a_sub_agent_is_a_run_below_its_session(claude: Claude) -> None:
    claude.run("lane=agent go", "--session-id", SESSION)
    with claude.log() as log:
        (below,) = log.runs.find(parent_run_id=RUN)
        assert ("call", "echo below") in entries(log, below.id)
        assert below.summary == "Below is done."
        assert [charge.input_tokens for charge in log.ledger.find(below.id, limit=9)] == [100, 31]
        claude.assert_paid(log)


def test_a_session_goes_on_is_compacted_and_forked_and_everything_is_paid_once(claude: Claude) -> None:
    claude.run("lane=tools go", "--session-id", SESSION)
    claude.run("/compact", "--resume", SESSION)
    claude.run("lane=next go", "--resume", SESSION)
    claude.run("lane=next fork", "--resume", SESSION, "--fork-session")
    with claude.log() as log:
        told = entries(log, RUN)
        assert ("prompt", "lane=next go") in told
        assert [body for subtype, body in told if subtype == "session"] == [
            "session startup",
            "session resume",
            "session compact",
            "session resume",
        ]
        (fork,) = (run for run in log.runs.find() if run.id != RUN)
        assert [each for each in entries(log, fork.id) if each[0] in ("prompt", "said")] == [
            ("prompt", "lane=next fork"),
            ("said", "It goes on."),
        ]
        claude.assert_paid(log)


def test_a_session_that_is_told_to_end_closes_its_call(claude: Claude) -> None:
    with claude.start("lane=long go", "--session-id", SESSION) as program, claude.log() as log:
        wait_until(lambda: log.runs.find() and ("call", "sleep 60") in entries(log, RUN), 30)
        program.send_signal(signal.SIGTERM)
        program.communicate(timeout=30)
        wait_until(lambda: log.runs.get(RUN).status == RunStatus.COMPLETED, 30)
        assert entries(log, RUN)[-1][1] in ("the session ended before the call did", "turn ended") or "result" in dict(
            entries(log, RUN)
        )
        claude.assert_paid(log)


def test_a_session_that_is_killed_is_filled_in_when_it_goes_on(claude: Claude) -> None:
    with claude.start("lane=slow go", "--session-id", SESSION) as program:
        wait_until(lambda: len(claude.model.requests) == 2, 30)
        time.sleep(0.5)
        program.kill()
        program.communicate(timeout=30)
    claude.model.wait.set()
    claude.run("lane=next go", "--resume", SESSION)
    with claude.log() as log:
        told = entries(log, RUN)
        assert told.count(("said", "Thinking.")) == 1
        assert told.count(("call", "echo first")) == 1
        # The answer that the kill cut off was never seen by the program, so nobody can tell what it cost.
        claude.model.given = [given for given in claude.model.given if given.step.text != "Too late."]
        claude.assert_paid(log)
