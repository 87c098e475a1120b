"""Runs and a tasks.json of Task Master's, kept in step."""

import json
from pathlib import Path
from typing import Any

import pytest

from decklog import Decklog
from decklog.importing.sync import SyncReport
from decklog.plugins.importers.taskmaster.sync import TaskMasterSync
from tests.plugins.importers.claims import fresh, run_killed
from tests.plugins.importers.taskmaster.taskmaster_files import write


def _sync(log: Decklog, path: Path, **settings: Any) -> SyncReport:
    return TaskMasterSync(log, str(path), run_id="taskmaster", **settings).run()


def _task(number: int, **fields: Any) -> dict[str, Any]:
    usual = {"title": f"Task {number}", "description": "What to do", "status": "pending", "priority": "medium"}
    return {"id": number, **usual, "dependencies": [], **fields}


def _write(path: Path, *tasks: dict[str, Any]) -> Path:
    path.write_text(json.dumps({"master": {"tasks": tasks, "metadata": {"created": "2026-01-01T00:00:00Z"}}}))
    return path


def _there(path: Path) -> dict[int, dict[str, Any]]:
    return {task["id"]: task for task in json.loads(path.read_text())["master"]["tasks"]}


def _edit(path: Path, number: int, **fields: Any) -> None:
    found = _there(path)
    found[number].update(fields)
    _write(path, *found.values())


@pytest.fixture
def file(tmp_path: Path, log: Decklog) -> Path:
    """Give a file that is in step with the log."""
    parts = [_task(1, title="A part"), _task(2, title="Another", dependencies=[1])]
    path = _write(tmp_path / "tasks.json", _task(1), _task(2, dependencies=[1]), _task(3, subtasks=parts))
    _sync(log, path)
    return path


def test_each_side_gets_what_the_other_changed_and_then_nothing_more(log: Decklog, file: Path) -> None:
    _edit(file, 1, title="Renamed there")
    log.tasks.edit("taskmaster-1", reason="urgent", priority=90)
    log.tasks.edit("taskmaster-3.2", reason="clearer", objective="Said here")

    done, again = _sync(log, file), _sync(log, file)

    assert (done.taken, done.given, done.disputed) == (["master/1"], ["master/1", "master/3.2"], [])
    here, there = log.tasks.get("taskmaster-1"), _there(file)
    assert (here.title, here.priority) == ("Renamed there", 90)
    assert (there[1]["title"], there[1]["priority"]) == ("Renamed there", "critical")
    assert there[3]["subtasks"][1]["description"] == "Said here"
    assert there[3]["subtasks"][1]["dependencies"] == [1]
    assert (again.taken, again.given, again.disputed) == ([], [], [])


def test_what_both_changed_is_put_to_a_person_and_stays_on_both_sides(log: Decklog, file: Path) -> None:
    _edit(file, 2, title="Theirs")
    log.tasks.edit("taskmaster-2", reason="mine", title="Ours")

    done = _sync(log, file)
    _sync(log, file)

    assert [one["field"] for one in done.disputed] == ["title"]
    assert (log.tasks.get("taskmaster-2").title, _there(file)[2]["title"]) == ("Ours", "Theirs")
    [message] = log.inbox.find()
    assert message.task_id == "taskmaster-2"


def test_tasks_that_both_made_with_the_same_number_stay_two(log: Decklog, file: Path) -> None:
    mine = log.tasks.add("taskmaster", "Made here", depends_on=["taskmaster-1"])
    part = log.tasks.add("taskmaster", "A part made here", parent_id="taskmaster-3")
    _write(file, *_there(file).values(), _task(4, title="Made there"))

    _sync(log, file)
    again = _sync(log, file)

    there = _there(file)
    assert (there[4]["title"], there[5]["title"], there[5]["dependencies"]) == ("Made there", "Made here", [1])
    assert there[3]["subtasks"][2]["title"] == "A part made here"
    assert log.tasks.get("taskmaster-4").title == "Made there"
    assert len(log.tasks.find("taskmaster", limit=50)) == 8
    assert (again.taken, again.given, again.disputed) == ([], [], [])

    found = _there(file)
    found[5]["title"] = "Renamed there"
    found[3]["subtasks"][2]["title"] = "Renamed too"
    _write(file, *found.values(), _task(6, title="One more"))
    _sync(log, file)
    assert log.tasks.get(mine.id).title == "Renamed there"
    assert log.tasks.get(part.id).title == "Renamed too"
    assert log.tasks.get("taskmaster-6").title == "One more"


@pytest.mark.parametrize("step", ["take", "give", "_save_base", "replace_file"])
@pytest.mark.parametrize("after", [False, True])
def test_killed_at_any_step_it_comes_to_the_same_end(tmp_path: Path, step: str, after: bool) -> None:
    with fresh(tmp_path, "killed") as log:
        file = _write(tmp_path / "tasks.json", _task(1), _task(2), _task(3))
        _sync(log, file)
        _edit(file, 1, title="Theirs")
        log.tasks.edit("taskmaster-2", reason="mine", title="Ours")
        log.tasks.add("taskmaster", "Made here")
        sync = TaskMasterSync(log, str(file), run_id="taskmaster")
        run_killed(sync, step, after)
        _sync(log, file)

        titles = ["Made here", "Ours", "Task 3", "Theirs"]
        assert sorted(task.title for task in log.tasks.find("taskmaster")) == titles
        assert sorted(task["title"] for task in _there(file).values()) == titles
        assert log.journal.verify().ok


def test_a_document_with_every_defect_is_in_step_after_one_sync(log: Decklog, tmp_path: Path) -> None:
    path = write(tmp_path / "tasks.json")
    text = path.read_text()

    _sync(log, path)
    again = _sync(log, path)

    assert (again.taken, again.given, again.disputed) == ([], [], [])
    assert path.read_text() == text
