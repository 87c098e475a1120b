"""Task Master's tags are taken over whole, again and again, from files as people have them."""

import json
from pathlib import Path

import pytest

from decklog import Decklog, Invalid
from decklog.importing.report import Outcome
from decklog.journal.entry import IMPORTED_ROW
from decklog.plugins.importers.taskmaster.importer import TaskMasterImport
from tests.conftest import on_both
from tests.plugins.importers import claims
from tests.plugins.importers.taskmaster.taskmaster_files import T1, conflicted, counts, document, task, write


def _taker(path: Path) -> claims.Take:
    return lambda log, **settings: TaskMasterImport(log, str(path), run_id="taskmaster", **settings).run()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return write(tmp_path / "tasks.json")


@on_both
def test_every_row_arrives_once_and_a_second_import_changes_nothing(log: Decklog, file: Path) -> None:
    claims.check_whole(log, _taker(file), counts())


def test_every_field_of_a_task_is_in_the_log(log: Decklog, file: Path) -> None:
    _taker(file)(log)

    found = log.tasks.get("taskmaster-1")
    assert (found.title, found.objective, found.state, found.priority) == ("Parse commas", "Lists end in commas.", "paused", 90)
    assert (found.tags, found.acceptance, found.assigned_to) == (["parser"], ["All tests pass", "No warning"], "ana")
    assert found.verification == ["Run the parser's tests"]
    assert found.inputs["taskmaster"]["details"] == "Begin with the lexer."
    assert set(found.inputs["taskmaster"]) == {
        *("details", "complexity", "recommendedSubtasks", "expansionPrompt", "previousStatus", "effort", "metadata")
    }
    assert log.tasks.get("taskmaster-3").acceptance == ["One text"]
    states = [log.tasks.get(f"taskmaster-{10 + number}").state for number in range(9)]
    assert states == ["pending", "paused", "done", "paused", "paused", "abandoned", "blocked", "done", "paused"]


def test_a_tag_is_a_run_and_its_ids_are_its_own(log: Decklog, file: Path) -> None:
    _taker(file)(log)

    runs = {run.id: run.goal for run in log.runs.find(limit=10)}
    other = next(run_id for run_id, goal in runs.items() if goal.endswith("feature: lists"))
    assert set(runs) == {"taskmaster", "taskmaster-empty", other}
    assert log.tasks.get(f"{other}-1").title == "The same id"
    assert [found.id for found in log.tasks.find("taskmaster", limit=6)] == [
        *("taskmaster-1", "taskmaster-2", "taskmaster-2.1", "taskmaster-2.2", "taskmaster-2.3", "taskmaster-3")
    ]


def test_dependencies_are_read_in_their_three_spellings(log: Decklog, file: Path) -> None:
    _taker(file)(log)

    assert log.tasks.dependencies("taskmaster-2") == ["taskmaster-1", "taskmaster-3"]
    assert log.tasks.dependencies("taskmaster-2.2") == ["taskmaster-2.1", "taskmaster-2.3"]
    # A number that no sibling has is a task's.
    assert log.tasks.dependencies("taskmaster-2.3") == ["taskmaster-11", "taskmaster-2.1"]
    assert log.tasks.dependencies("taskmaster-2.2", kind="parent") == ["taskmaster-2"]
    assert log.tasks.get("taskmaster-2.2").open_dependencies == 1
    kept = {entry.payload["id"]: entry.payload["why"] for entry in log.journal.find("taskmaster", subtype=IMPORTED_ROW, limit=99)}
    assert kept["master/5/99"] == "master/99 is not in the source"
    assert kept["master/5/5"] == "it links master/5 with itself"
    assert kept["master/7/6"] == "master/6 and master/7 would wait for each other in a circle"


def test_a_file_in_the_older_form_is_the_main_tag(log: Decklog, tmp_path: Path) -> None:
    claims.check_whole(log, _taker(write(tmp_path / "tasks.json", {"tasks": [task(1)]})), {"tasks": 1})


def test_a_file_that_lost_its_other_tags_takes_none_away(log: Decklog, file: Path) -> None:
    _taker(file)(log)
    before = log.journal.heads()

    write(file, {"tasks": document()["master"]["tasks"]})
    report = _taker(file)(log)

    assert log.journal.heads() == before
    assert report.total(Outcome.ALREADY) == sum(found["read"] for found in report.tables.values())


def test_a_change_comes_over_and_what_was_changed_here_stays(log: Decklog, tmp_path: Path) -> None:
    path = write(tmp_path / "tasks.json", {"master": {"tasks": [task(1), task(2), task(3)]}})
    _taker(path)(log)
    log.tasks.edit("taskmaster-2", title="Changed here", reason="better")

    write(path, {"master": {"tasks": [task(1, title="Changed there"), task(2), task(3, status="done")]}})
    report = _taker(path)(log)

    assert (report.total(Outcome.CHANGED), report.total(Outcome.ALREADY)) == (2, 1)
    assert [found.title for found in log.tasks.find("taskmaster")] == ["Changed there", "Changed here", "Task 3"]


def test_both_sides_of_a_conflict_are_read_and_the_newer_is_taken(log: Decklog, tmp_path: Path) -> None:
    report = _taker(write(tmp_path / "tasks.json", conflicted()))(log)

    assert log.tasks.get("taskmaster-1").title == "Theirs"
    assert (report.tables["tasks"]["read"], report.tables["tasks"][Outcome.NEW]) == (4, 2)


def test_broken_side_of_a_conflict_is_kept(log: Decklog, tmp_path: Path) -> None:
    whole = json.dumps({"master": {"tasks": [task(1)]}})
    torn = json.dumps({"master": {"tasks": [task(1), task(2), task(3, title="cut")]}})
    text = f"<<<<<<< ours\n{whole}\n=======\n{torn[: torn.index('cut')]}\n>>>>>>> theirs\n"

    report = _taker(write(tmp_path / "tasks.json", text))(log)

    assert log.tasks.get("taskmaster-2").title == task(2)["title"]
    assert report.tables["lines"][Outcome.KEPT] == 1
    assert any("git conflict markers" in note for note in report.notes)


def test_of_half_a_file_whole_tasks_are_taken_and_the_rest_is_kept(log: Decklog, tmp_path: Path) -> None:
    text = json.dumps({"master": {"tasks": [task(1), task(2)]}, "side": {"tasks": [task(1), task(2, title="cut")]}})
    path = write(tmp_path / "tasks.json", text[: text.index("cut")])

    report = claims.check_whole(log, _taker(path), {"tasks": 3, "lines": 1})

    assert report.tables["lines"][Outcome.KEPT] == 1


def test_what_is_no_document_of_its_kind_is_refused(log: Decklog, tmp_path: Path) -> None:
    for text in ("[]", "{}", "no JSON"):
        with pytest.raises(Invalid):
            _taker(write(tmp_path / "tasks.json", text))(log)


def test_a_newer_task_is_taken_by_its_own_time(log: Decklog, tmp_path: Path) -> None:
    path = write(tmp_path / "tasks.json", {"master": {"tasks": [task(1, title="New", updatedAt=T1)]}})
    _taker(path)(log)

    write(path, {"master": {"tasks": [task(1, title="Old", updatedAt="2025-01-01T00:00:00Z")]}})
    _taker(path)(log)

    assert log.tasks.get("taskmaster-1").title == "New"
