"""Vibe Kanban's projects are taken over whole, before the program is gone."""

from pathlib import Path

import pytest

from decklog import Decklog
from decklog.importing.report import Outcome
from decklog.journal.entry import IMPORTED_ROW
from decklog.plugins.importers.vibekanban import VibeKanbanImport
from tests.conftest import on_both
from tests.plugins.importers import claims
from tests.plugins.importers.vibekanban.vibekanban_files import EARLIER, ROWS, build, counts, task, text


def _taker(path: Path) -> claims.Take:
    return lambda log, **settings: VibeKanbanImport(log, str(path), run_id="vibe-kanban", **settings).run()


RUN = f"vibe-kanban-{text(1)[:8]}"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return build(tmp_path / "db.v2.sqlite")


@pytest.mark.slow
@on_both
def test_every_row_arrives_once_and_a_second_import_changes_nothing(log: Decklog, file: Path) -> None:
    report = claims.check_whole(log, _taker(file), counts())

    assert report.unknown == ["tasks.from_the_future"]
    assert {table: found["kept"] for table, found in report.tables.items() if found["kept"]} == {
        "dependencies": 1,
        "workspaces": 1,
    }


def test_every_project_is_a_run_with_its_tasks(log: Decklog, file: Path) -> None:
    _taker(file)(log)

    assert {run.goal for run in log.runs.find()} == {"Parser", "Other"}
    found = log.tasks.get(text(11))
    assert (found.run_id, found.title, found.objective) == (RUN, "Task todo", "Lists end in commas.")
    states = [log.tasks.get(text(number)).state for number in range(11, 17)]
    assert states == ["pending", "paused", "paused", "done", "abandoned", "paused"]
    # An agent made it while it worked on the other.
    assert log.tasks.dependencies(text(11), kind="discovered-from") == [text(12)]


def test_what_agents_did_is_in_the_journal_with_their_own_sessions(log: Decklog, file: Path) -> None:
    _taker(file)(log)

    found = [entry for entry in log.journal.find(RUN, oldest_first=True, limit=200) if entry.task_id == text(12)]
    told = {entry.subtype: entry for entry in found if entry.kind == "event"}
    assert set(told) == {"attempt", "session", "process", "turn", "commits", "log", "merge", "pull request"}
    assert (told["turn"].body, told["turn"].payload["agent_session_id"]) == ("Fixed", "0199-session")
    assert told["session"].agent == "CLAUDE_CODE"
    processes = [entry.payload for entry in found if entry.subtype == "process"]
    assert processes[0]["executor_action"] == {"typ": {"type": "CodingAgentInitialRequest"}}
    assert [entry.body for entry in found if entry.subtype == "log"] == ['{"Stdout":"one"}\n', '{"Stdout":"two"}\n']


def test_what_leads_nowhere_is_kept(log: Decklog, file: Path) -> None:
    _taker(file)(log)

    kept = {entry.payload["why"] for entry in log.journal.find(subtype=IMPORTED_ROW, limit=99)}
    assert kept == {"the attempt that it came of is not in the source", "the item that it belongs to is not in the source"}


def test_a_database_from_before_there_were_workspaces_is_read(log: Decklog, tmp_path: Path) -> None:
    claims.check_whole(log, _taker(build(tmp_path / "db.sqlite", EARLIER)), counts(EARLIER))

    assert {
        entry.subtype for entry in log.journal.find(RUN, limit=99) if entry.task_id == text(11) and entry.kind == "event"
    } == {*("attempt", "process", "turn")}


def test_an_import_after_changes_brings_just_them(log: Decklog, tmp_path: Path) -> None:
    path = build(tmp_path / "db.v2.sqlite")
    _taker(path)(log)

    changed = [
        {**row, "status": "done", "updated_at": "2026-02-01 00:00:00"} if row["title"] == "Task todo" else row
        for row in ROWS["tasks"]
    ]
    build(path, {**ROWS, "tasks": [*changed, task(18, "todo", title="New")]})
    report = _taker(path)(log)

    assert (report.total(Outcome.NEW), report.total(Outcome.CHANGED)) == (1, 1)
    assert log.tasks.get(text(11)).state == "done"
