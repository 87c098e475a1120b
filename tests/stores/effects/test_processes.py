import pytest

from decklog import Decklog, Invalid, NotFound
from decklog.stores.effects.processes import Process


def started(log: Decklog, run_id: str, name: str = "proc_1") -> Process:
    return log.processes.started(
        run_id, name, command={"shell": "sleep 9"}, cwd=".", root="/r", folder="/f", sandbox="none", keeper="{}", pid=7
    )


def test_a_process_is_recorded_once(log: Decklog, run_id: str) -> None:
    first = started(log, run_id)
    assert (first.state, first.is_running, first.already) == ("running", True, False)
    assert started(log, run_id).already


def test_the_first_end_of_a_process_stays(log: Decklog, run_id: str) -> None:
    started(log, run_id)
    ended = log.processes.ended("proc_1", "exited", exit_code=3, signals_sent=["SIGINT"])  # type: ignore[arg-type]
    assert (ended.state, ended.exit_code, ended.signals_sent) == ("exited", 3, ["SIGINT"])
    assert ended.ended_at is not None
    again = log.processes.ended("proc_1", "lost")  # type: ignore[arg-type]
    assert (again.already, again.state, again.exit_code) == (True, "exited", 3)


def test_a_process_ends_as_something_and_must_exist(log: Decklog, run_id: str) -> None:
    started(log, run_id)
    with pytest.raises(Invalid):
        log.processes.ended("proc_1", "running")  # type: ignore[arg-type]
    with pytest.raises(NotFound):
        log.processes.ended("proc_2", "lost")  # type: ignore[arg-type]
    with pytest.raises(NotFound):
        log.processes.get("proc_2")


def test_processes_are_listed_newest_first_and_by_state(log: Decklog, run_id: str) -> None:
    started(log, run_id, "proc_1")
    started(log, run_id, "proc_2")
    log.processes.ended("proc_1", "lost")  # type: ignore[arg-type]
    assert [one.id for one in log.processes.find(run_id)] == ["proc_2", "proc_1"]
    assert [one.id for one in log.processes.find(run_id, state="running")] == ["proc_2"]  # type: ignore[arg-type]
    assert log.processes.find("run_other") == []
