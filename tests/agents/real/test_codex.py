"""Codex itself, with a model that answers by script: what the log says is what the model saw."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from decklog import EntryKind, RunStatus
from tests.agents.fake_model import FakeModel, Step, Use
from tests.agents.real.programs import CODEX, Codex, entries, needs
from tests.waiting import wait_until

pytestmark = needs(CODEX)


def shell(command: str) -> Use:
    return Use("exec_command", {"cmd": command})


PATCH = "*** Begin Patch\n*** Add File: made.txt\n+made\n*** End Patch\n"
SCRIPT = {
    "tools": [
        Step("Let me look.", (shell("echo hello"),)),
        Step(uses=(shell("exit 3"),), cache_read_tokens=50),
        Step(uses=(Use("apply_patch", {"input": PATCH}),)),
        Step("All done.", output_tokens=31),
    ],
    "held": [Step(uses=(shell("echo alias ls=true >> ~/.bashrc"),)), Step("It was held.")],
    "slow": [Step("Thinking.", (shell("echo first"),)), Step("Too late.", seconds=60)],
    "next": [Step("It goes on.")],
}


@pytest.fixture
def codex(tmp_path: Path) -> Iterator[Codex]:
    with FakeModel(SCRIPT) as model:
        yield Codex(tmp_path, model).prepare()  # type: ignore[misc]


def thread_of(printed: list[dict[str, object]]) -> str:
    return str(printed[0]["thread_id"])


def test_a_session_with_tools_is_on_record_to_the_token(codex: Codex) -> None:
    thread = thread_of(codex.run("lane=tools go"))
    with codex.log() as log:
        run = log.runs.get(f"codex-{thread}")
        assert (run.goal, run.status) == ("lane=tools go", RunStatus.COMPLETED)
        told = entries(log, run.id)
        assert [each for each in told if each[0] == "call"][:2] == [("call", "echo hello"), ("call", "exit 3")]
        assert [each for each in told if each[0] == "said"] == [("said", "Let me look."), ("said", "All done.")]
        results = [entry.payload for entry in log.journal.find(run.id, kind=EntryKind.TOOL, oldest_first=True, limit=50)]
        outcomes = [(one["tool"], one["outcome"]) for one in results if isinstance(one, dict) and "outcome" in one]
        assert outcomes == [("Bash", "ok"), ("Bash", "failed"), ("apply_patch", "ok")]
        codex.assert_paid(log)
    assert (codex.repository / "made.txt").read_text() == "made\n"


def test_what_the_policy_denies_does_not_run(codex: Codex) -> None:
    thread = thread_of(codex.run("lane=held go"))
    assert not (codex.home / ".bashrc").exists()
    with codex.log() as log:
        result = log.journal.find(f"codex-{thread}", kind=EntryKind.TOOL)[0]
        assert isinstance(result.payload, dict)
        assert result.payload["outcome"] == "denied"
        codex.assert_paid(log)


def test_a_session_goes_on_and_is_forked_and_everything_is_paid_once(codex: Codex) -> None:
    thread = thread_of(codex.run("lane=tools go"))
    codex.run("resume", thread, "lane=next go")
    fork = thread_of(codex.run("fork", thread, "lane=next fork"))
    with codex.log() as log:
        assert ("prompt", "lane=next go") in entries(log, f"codex-{thread}")
        own = [each for each in entries(log, f"codex-{fork}") if each[0] in ("prompt", "said")]
        assert own == [("prompt", "lane=next fork"), ("said", "It goes on.")]
        codex.assert_paid(log)


def test_a_session_that_is_killed_is_filled_in_when_it_goes_on(codex: Codex) -> None:
    with codex.start("lane=slow go") as program:
        wait_until(lambda: len(codex.model.requests) == 2, 30)
        program.kill()
        program.communicate(timeout=30)
    codex.model.wait.set()
    with codex.log() as log:
        (run,) = log.runs.find()
        codex.run("resume", run.id.removeprefix("codex-"), "lane=next go")
        told = entries(log, run.id)
        assert told.count(("said", "Thinking.")) == told.count(("call", "echo first")) == 1
        # The answer that the kill cut off was never seen by the program, so nobody can tell what it cost.
        codex.model.given = [given for given in codex.model.given if given.step.text != "Too late."]
        codex.assert_paid(log)
