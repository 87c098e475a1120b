"""The demonstration does what it says, with real processes and a real kill."""

import os
import shutil
from pathlib import Path

import pytest

from decklog import Decklog
from decklog.cli.call import Invocation
from decklog.cli.main import menu
from decklog.conductor.demonstration import Demonstration
from tests.cli.conftest import Program


@pytest.mark.slow
def test_another_worker_takes_over_from_the_one_that_was_killed_as_often_as_it_is_shown(decklog: Program, target: str) -> None:
    said = decklog("demo", "--db", target, "--json")
    assert said.code == 0
    assert said.data["verified"] is True
    with Decklog.open(target) as log:
        attempts = log.tasks.attempts(said.data["task_id"])
        assert [attempt.outcome for attempt in attempts] == ["expired", "done"]
        assert [attempt.worker for attempt in attempts] == [said.data["killed"], said.data["taken_over_by"]]
        assert {task.state for task in log.tasks.find(said.data["run_id"])} == {"done"}
        assert log.runs.get(said.data["run_id"]).status == "completed"

        if log.db.engine == "sqlite":
            is_told_again_in_the_same_log(decklog, target)


def is_told_again_in_the_same_log(decklog: Program, target: str) -> None:
    said = decklog("demo", "--db", target)
    assert said.code == 0
    assert "is killed with SIGKILL" in said.out
    assert "hash chain whole" in said.out


@pytest.mark.slow
def test_a_large_log_is_made_and_its_place_said(decklog: Program) -> None:
    said = decklog("demo", "--big", "--size", "500", "--until", "2026-11-15T14:02:52Z", "--db", "big.db", "--json")
    assert (said.code, said.data["runs"]) == (0, 10)
    assert decklog("demo", "--big", "--db", "big.db").code == 5
    assert decklog("demo", "--size", "500", "--db", "big.db").code == 2


@pytest.mark.skipif("DECKLOG_TEST_FULL" not in os.environ, reason="six processes and as many agents: DECKLOG_TEST_FULL=1")
def test_the_conductor_is_shown_with_a_kill_in_its_midst(decklog: Program, tmp_path: Path) -> None:
    said = decklog("demo", "--conductor", "--db", "mine.db", "--json", cwd=tmp_path)
    assert (said.code, said.data["verified"], said.data["target"]) == (0, True, str(tmp_path / "mine.db")), said
    with Decklog.open(said.data["target"]) as log:
        assert log.runs.get(said.data["run_id"]).status == "completed"
    assert "The total of an order" in said.err
    shutil.rmtree(os.path.dirname(said.data["repository"]))


def test_the_demonstration_of_the_conductor_keeps_to_the_log_that_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[str] = []

    def played(self: Demonstration) -> str:
        seen.append(self.target)
        with Decklog.open(self.target, migrate=True) as log:
            return log.runs.start("Open the shop").id

    monkeypatch.setattr(Demonstration, "play", played)
    monkeypatch.chdir(tmp_path)
    call = Invocation(["demo", "--conductor", "--db", "mine.db", "--json"])
    menu.main(call.words, obj=call, standalone_mode=False)
    assert seen == [str(tmp_path / "mine.db")]
