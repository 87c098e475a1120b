"""What tasks are called there and here: ids of any kind, copies, numbers that are siblings', and documents beside each other."""

import json
from pathlib import Path
from typing import Any

import pytest

from decklog import Decklog, Invalid
from decklog.importing.report import Outcome, Report
from decklog.importing.sync import SyncReport
from decklog.plugins.importers.taskmaster.importer import TaskMasterImport
from decklog.plugins.importers.taskmaster.sync import TaskMasterExport, TaskMasterSync
from tests.conftest import on_both


def _task(name: object, **fields: Any) -> dict[str, Any]:
    return {"id": name, "title": f"Task {name}", "description": "To do", "status": "pending", "dependencies": [], **fields}


def _write(path: Path, *tasks: dict[str, Any], **tags: Any) -> Path:
    path.write_text(json.dumps({"master": {"tasks": list(tasks), "metadata": {}}, **tags}))
    return path


def _import(log: Decklog, path: Path, run_id: str = "taskmaster") -> Report:
    return TaskMasterImport(log, str(path), run_id=run_id).run()


def _sync(log: Decklog, path: Path, run_id: str = "taskmaster") -> SyncReport:
    return TaskMasterSync(log, str(path), run_id=run_id).run()


def _did(done: SyncReport) -> tuple[Any, ...]:
    return done.taken, done.given, done.disputed


def _back(log: Decklog, tmp_path: Path, run_id: str = "taskmaster") -> Any:
    TaskMasterExport(log, str(tmp_path / "back.json"), run_id=run_id, replace=True).run()
    return json.loads((tmp_path / "back.json").read_text())


ODD: dict[str, list[dict[str, Any]]] = {
    "points": [_task(1), _task("1.5", dependencies=[1]), _task("a.b", dependencies=["1.5"])],
    "texts": [_task(" 7 "), _task("05"), _task(5), _task("x-1"), _task(-1), _task("9" * 5000)],
    "copies": [_task(1, metadata={"decklog": "mine"}), _task(2, metadata={"decklog": "mine"})],
    "a copy of a number": [_task(1, metadata={"decklog": "mine"}), _task(3, metadata={"decklog": "taskmaster-1"})],
    "dependencies": [_task(1, dependencies=5), _task(2, dependencies="12"), _task(3, dependencies=[None, True, {"a": 1}, "1 "])],
    "parts": [_task(1, subtasks=[_task("1.1"), _task("2", dependencies=["1.1"]), "none", None]), _task(2, subtasks={"a": 1})],
    "nothing": [_task(1, title=None, description=None, status=None, priority=None, dependencies=None, subtasks=None)],
    "no description": [{"id": 1, "title": "One"}, {"id": 2, "title": "Two", "metadata": "a text"}],
}


@pytest.mark.parametrize("name", ODD)
@on_both
def test_odd_tasks_are_taken_once_and_come_back(log: Decklog, tmp_path: Path, name: str) -> None:
    path = _write(tmp_path / "tasks.json", *ODD[name])

    taken = _import(log, path)
    again = _import(log, path)

    assert taken.tables["tasks"][Outcome.NEW] == taken.tables["tasks"]["read"]
    assert (again.total(Outcome.NEW), again.total(Outcome.CHANGED)) == (0, 0)
    _back(log, tmp_path)
    back = _import(log, tmp_path / "back.json")
    assert (back.total(Outcome.NEW), back.total(Outcome.CHANGED)) == (0, 0)


@pytest.mark.parametrize("name", ODD)
@pytest.mark.parametrize("is_imported", [True, False])
def test_odd_tasks_are_in_step(log: Decklog, tmp_path: Path, name: str, is_imported: bool) -> None:
    path = _write(tmp_path / "tasks.json", *ODD[name])
    if is_imported:
        _import(log, path)
    before = path.read_bytes()

    _sync(log, path)

    assert _did(_sync(log, path)) == ([], [], [])
    assert path.read_bytes() == before
    for task in log.tasks.find("taskmaster"):
        log.tasks.edit(task.id, reason="clearer", priority=90)
    assert len(_sync(log, path).given) == len(log.tasks.find("taskmaster"))
    assert _did(_sync(log, path)) == ([], [], [])


def test_a_subtask_may_spell_its_sibling_in_full(log: Decklog, tmp_path: Path) -> None:
    _import(log, _write(tmp_path / "tasks.json", *ODD["parts"]))

    assert log.tasks.dependencies("taskmaster-1.2") == ["taskmaster-1.1"]


def test_a_task_with_a_point_in_its_id_is_no_part(log: Decklog, tmp_path: Path) -> None:
    _import(log, _write(tmp_path / "tasks.json", *ODD["points"]))

    assert log.tasks.dependencies("taskmaster-1.5") == ["taskmaster-1"]
    assert log.tasks.subtasks("taskmaster-1")["subtasks"] == []


def test_a_task_made_here_whose_name_ends_like_a_number_is_known_when_it_comes_back(log: Decklog, tmp_path: Path) -> None:
    _import(log, _write(tmp_path / "tasks.json", _task(1)))
    log.tasks.add("taskmaster", "Made here", task_id="fix-5")

    tasks = _back(log, tmp_path)["master"]["tasks"]

    assert [(task["id"], task.get("metadata")) for task in tasks] == [(1, None), (2, {"decklog": "fix-5"})]
    assert _import(log, tmp_path / "back.json").total(Outcome.NEW) == 0


def test_a_tag_that_was_copied_has_tasks_of_its_own(log: Decklog, tmp_path: Path) -> None:
    path = _write(tmp_path / "tasks.json", _task(1))
    _sync(log, path)
    log.tasks.add("taskmaster", "Made here", task_id="fix-5")
    _sync(log, path)
    tags = json.loads(path.read_text())
    path.write_text(json.dumps({**tags, "feature": tags["master"]}))

    assert _sync(log, path).taken == ["feature/1", "feature/2"]

    assert [task.id for task in log.tasks.find("taskmaster-feature")] == ["taskmaster-feature-1", "taskmaster-feature-2"]
    assert _did(_sync(log, path)) == ([], [], [])


def test_a_number_that_a_sibling_has_names_no_other_task(log: Decklog, tmp_path: Path) -> None:
    path = _write(tmp_path / "tasks.json", _task(1), _task(2), _task(5, subtasks=[_task(1), _task(2)]))
    _sync(log, path)
    log.tasks.depend("taskmaster-5.1", "taskmaster-2")

    report = TaskMasterExport(log, str(tmp_path / "back.json"), run_id="taskmaster").run()
    _sync(log, path)

    for written in (path, tmp_path / "back.json"):
        [_, _, whole] = json.loads(written.read_text())["master"]["tasks"]
        assert whole["subtasks"][0]["dependencies"] == []
    assert report["left_out"]["dependencies of a subtask on a task with the number of a sibling"] == 1
    assert log.tasks.dependencies("taskmaster-5.1") == ["taskmaster-2"]


@on_both
def test_documents_whose_runs_begin_alike_stay_apart(log: Decklog, tmp_path: Path) -> None:
    mine = _write(tmp_path / "mine.json", _task(1, title="Mine", unknown="mine"), **{"": {"tasks": [_task(1, title="No name")]}})
    other = _write(tmp_path / "other.json", _task(1, title="Other", unknown="other", dependencies=[9]))
    _import(log, mine)
    _import(log, other, "taskmaster-b")

    back = _back(log, tmp_path)

    assert {tag: [task["title"] for task in held["tasks"]] for tag, held in back.items()} == {"master": ["Mine"], "": ["No name"]}
    [task] = back["master"]["tasks"]
    assert (task["unknown"], task["dependencies"]) == ("mine", [])
    assert _did(_sync(log, mine)) == _did(_sync(log, other, "taskmaster-b")) == ([], [], [])


def test_who_renames_a_task_without_a_description_renames_all_of_it(log: Decklog, tmp_path: Path) -> None:
    path = _write(tmp_path / "tasks.json", *ODD["no description"])
    _sync(log, path)
    log.tasks.edit("taskmaster-1", reason="clearer", title="Renamed")
    _sync(log, path)

    [task, _] = json.loads(path.read_text())["master"]["tasks"]
    assert (task["title"], task["description"]) == ("Renamed", "Renamed")
    assert _import(log, path).total(Outcome.CHANGED) == 0


@pytest.mark.parametrize(
    "odd",
    [
        '"complexity": NaN, "metadata": {"share": NaN}',
        '"complexity": 1e999',
        '"effort": "half \\ud800"',
    ],
)
def test_what_no_record_can_hold_is_in_step_too(log: Decklog, tmp_path: Path, odd: str) -> None:
    path = tmp_path / "tasks.json"
    path.write_text(f'{{"master": {{"tasks": [{{"id": 1, "title": "One", {odd}}}, {{"id": 2, "title": "Two"}}]}}}}')
    was = json.loads(path.read_text())["master"]["tasks"][0]

    _sync(log, path)
    log.tasks.edit("taskmaster-2", reason="clearer", title="Renamed")

    assert _did(_sync(log, path)) == ([], ["master/2"], [])
    assert _did(_sync(log, path)) == ([], [], [])
    assert repr(json.loads(path.read_text())["master"]["tasks"][0]) == repr(was)


def test_two_tasks_of_one_number_do_not_take_turns(log: Decklog, tmp_path: Path) -> None:
    path = _write(tmp_path / "tasks.json", _task(1, title="First"), _task(1, title="Second"), _task(2))
    _sync(log, path)
    log.tasks.edit("taskmaster-1", reason="clearer", title="Renamed")
    _write(path, _task(1, title="First"), _task(1, title="Second"), _task(2, title="Moved on"))

    assert _did(_sync(log, path)) == (["master/2"], ["master/1"], [])

    assert _did(_sync(log, path)) == ([], [], [])
    assert [task["title"] for task in json.loads(path.read_text())["master"]["tasks"]] == ["Renamed", "Second", "Moved on"]


def test_half_a_document_is_told_with_what_to_do(log: Decklog, tmp_path: Path) -> None:
    path = _write(tmp_path / "tasks.json", _task(1))
    path.write_text(path.read_text()[:-9])

    with pytest.raises(Invalid, match="not written to its end") as told:
        _sync(log, path)
    assert told.value.hint == f"Mend it, or take what is whole: decklog import taskmaster {path}"


def test_a_link_to_its_whole_that_could_not_be_made_does_not_come_back_as_a_dependency(log: Decklog, tmp_path: Path) -> None:
    path = _write(tmp_path / "tasks.json", _task(1, subtasks=[_task(2, dependencies=[1])]))
    _sync(log, path)

    [task] = _back(log, tmp_path)["master"]["tasks"]

    assert task["subtasks"][0]["dependencies"] == [1]
    assert _did(_sync(log, path)) == ([], [], [])


def test_a_part_of_a_part_settles_between_two_logs(tmp_path: Path) -> None:
    path = _write(tmp_path / "tasks.json", _task(1, subtasks=[_task(1)]))
    with Decklog.open(tmp_path / "one.db") as one, Decklog.open(tmp_path / "two.db") as two:
        for log in (one, two):
            _sync(log, path)
        two.tasks.add("taskmaster", "Part of a part", parent_id="taskmaster-1.1")
        for log in (two, one, two, one):
            _sync(log, path)

        assert [_did(_sync(log, path)) for log in (one, two)] == [([], [], [])] * 2
    [task] = json.loads(path.read_text())["master"]["tasks"]
    assert [part["dependencies"] for part in task["subtasks"]] == [[], []]
