"""Hermes Kanban's boards are taken over whole, again and again."""

from pathlib import Path

import pytest

from decklog import Decklog
from decklog.importing.report import Outcome
from decklog.journal.entry import IMPORTED_ROW
from decklog.plugins.importers.hermes import STATES, HermesImport
from tests.conftest import on_both
from tests.plugins.importers import claims
from tests.plugins.importers.hermes.hermes_files import FULL, T0, build, build_home, counts


def _taker(path: Path) -> claims.Take:
    return lambda log, **settings: HermesImport(log, str(path), run_id="hermes", **settings).run()


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return build_home(tmp_path / "hermes")


@on_both
def test_every_row_arrives_once_and_a_second_import_changes_nothing(log: Decklog, home: Path) -> None:
    report = claims.check_whole(log, _taker(home), counts())

    assert report.unknown == ["tasks.from_the_future", "kanban_meta"]
    assert {table: found["kept"] for table, found in report.tables.items() if found["kept"]} == {
        "dependencies": 3,
        "comments": 1,
        "task_events": 1,
    }


def test_a_task_is_here_with_all_but_what_belongs_to_its_worker(log: Decklog, home: Path) -> None:
    _taker(home)(log)

    task = log.tasks.get("t_00000001")
    assert (task.title, task.objective, task.state, task.priority) == ("Parse commas", "Lists end in commas.", "paused", 80)
    assert (task.assigned_to, task.summary) == ("coder", "half done")
    shown = task.inputs["hermes"]
    assert (shown["session_id"], shown["skills"], shown["branch_name"]) == ("0199-session", ["python"], "commas")
    not_shown = {"id", "title", "body", "assignee", "status", "priority", "created_at", "result", "from_the_future"}
    not_shown |= {"claim_lock", "claim_expires", "worker_pid", "last_heartbeat_at", "current_run_id"}
    assert set(shown) == {name for name, value in FULL.items() if value is not None} - not_shown
    states = {word: log.tasks.get(f"t_a{number:07x}").state for number, word in enumerate([*STATES, "dreaming"])}
    assert (states["todo"], states["done"], states["archived"], states["dreaming"]) == ("pending", "done", "abandoned", "paused")
    assert log.tasks.get("t_b0000001").state == "done"


def test_what_happened_to_a_task_is_in_the_journal_at_its_time(log: Decklog, home: Path) -> None:
    _taker(home)(log)

    found = [entry for entry in log.journal.find("hermes", oldest_first=True, limit=200) if entry.task_id == "t_00000001"]
    told = {entry.subtype: entry for entry in found if entry.kind == "event" and not (entry.subtype or "").startswith("imported")}
    assert set(told) == {"attempt", "claimed", "note", "attachment"}
    first = next(entry for entry in found if entry.subtype == "attempt")
    assert (first.body, first.agent, first.payload["outcome"]) == ("boom", "coder", "crashed")
    assert first.payload["metadata"] == {"session": "0199"}
    assert first.at.timestamp() == T0 + 10
    assert [one.body for one in log.tasks.comments("t_00000001")] == ["Begin with the lexer"]


def test_a_child_waits_for_its_parents(log: Decklog, home: Path) -> None:
    _taker(home)(log)

    assert log.tasks.dependencies("t_00000001") == ["t_a0000001", "t_a0000007"]
    assert log.tasks.get("t_00000001").open_dependencies == 1
    kept = {entry.payload["id"]: entry.payload["why"] for entry in log.journal.find("hermes", subtype=IMPORTED_ROW, limit=99)}
    assert "in a circle" in kept["t_a0000001/t_00000001"]
    assert kept["t_a0000003/t_gone"] == "default/t_gone is not in the source"


def test_every_board_has_its_run_and_an_early_version_is_read(log: Decklog, home: Path) -> None:
    _taker(home)(log)

    assert {run.id: run.goal for run in log.runs.find()} == {
        "hermes": "A board of Hermes Kanban",
        "hermes-side": "A board of Hermes Kanban: side",
    }
    assert [task.title for task in log.tasks.find("hermes-side")] == ["Early"]


def test_an_import_after_changes_brings_just_them(log: Decklog, tmp_path: Path) -> None:
    path = build(tmp_path / "kanban.db", found=[FULL])
    _taker(path)(log)

    build(path, found=[{**FULL, "status": "done", "completed_at": T0 + 500}])
    report = _taker(path)(log)

    assert (report.total(Outcome.NEW), report.total(Outcome.CHANGED)) == (0, 1)
    assert log.tasks.get("t_00000001").state == "done"
