"""What was imported can be written back, and nothing is lost on the way."""

import json
from pathlib import Path

import pytest

from decklog import Decklog, ManualClock
from decklog.importing.source import SqliteSource
from decklog.plugins.importers.bazinga.export import BazingaExport
from decklog.plugins.importers.bazinga.importer import BazingaImport
from tests.conftest import on_both
from tests.plugins.importers.bazinga.bazinga_files import ROWS, build
from tests.plugins.importers.comparing import execute


def _all(path: Path) -> dict[str, list[dict[str, object]]]:
    with SqliteSource(str(path)) as source:
        return {table: [_plain(row) for row in source.rows(table)] for table in ROWS}


def _plain(row: dict[str, object]) -> dict[str, object]:
    """Give a row without what says nothing: nulls, and how JSON is spelled."""
    return {name: _parsed(value) for name, value in row.items() if value is not None}


def _parsed(value: object) -> object:
    if isinstance(value, str) and value.startswith(("[", "{")):
        return json.loads(value)
    return value


def _by_key(rows: list[dict[str, object]]) -> list[dict[str, object]]:
    return sorted(rows, key=lambda row: json.dumps(row, sort_keys=True))


@pytest.mark.slow
@on_both
def test_a_file_that_was_imported_is_written_back_row_by_row(log: Decklog, tmp_path: Path) -> None:
    original, written = tmp_path / "in.db", tmp_path / "out.db"
    build(original, 19)
    BazingaImport(log, str(original)).run()

    result = BazingaExport(log, str(written)).run()

    assert result["refused"] == []
    before, after = _all(original), _all(written)
    for row in before["development_plans"]:
        for phase in row["phases"]:
            phase.setdefault("status", "pending")
    for rows in before["sessions"], after["sessions"]:
        for row in rows:
            row["end_time"] = str(row.get("end_time", "")).replace("T", " ")
            row.setdefault("original_requirements", "")
    for table in ROWS:
        assert _by_key(after[table]) == _by_key(before[table]), table


@pytest.mark.slow
@pytest.mark.parametrize("version", [1, 4, 9, 16, 19])
def test_import_export_import_loses_nothing(tmp_path: Path, version: int) -> None:
    build(tmp_path / "in.db", version)
    with Decklog.open(tmp_path / "one.db", durability="relaxed") as one:
        BazingaImport(one, str(tmp_path / "in.db")).run()
        first = BazingaExport(one, str(tmp_path / "first.db")).run()
    with Decklog.open(tmp_path / "two.db", durability="relaxed") as two:
        BazingaImport(two, str(tmp_path / "first.db")).run()
        second = BazingaExport(two, str(tmp_path / "second.db")).run()

    assert first["tables"] == second["tables"]
    assert _all(tmp_path / "first.db") == _all(tmp_path / "second.db")


def test_what_was_never_imported_is_written_too(log: Decklog, run_id: str, tmp_path: Path) -> None:
    log.journal.append(run_id, "hello", agent="dev")
    log.groups.add(run_id, "G1", name="Parser")

    result = BazingaExport(log, str(tmp_path / "out.db")).run()

    assert result["tables"] == {"sessions": 1, "task_groups": 1, "orchestration_logs": 1}


def test_times_are_spelled_so_that_they_sort_as_texts(log: Decklog, clock: ManualClock, tmp_path: Path) -> None:
    log.runs.start("Make it faster", run_id="r")
    for number in range(4):
        log.journal.append("r", f"said {number}", agent="developer")
        clock.advance(seconds=0.5)

    BazingaExport(log, str(tmp_path / "out.db")).run()

    found = execute(tmp_path / "out.db", "select content, timestamp from orchestration_logs order by timestamp")
    assert [content for content, _ in found] == [f"said {number}" for number in range(4)]
    assert not [time for _, time in found if "T" in time]


def test_values_come_back_as_they_were_spelled(log: Decklog, tmp_path: Path) -> None:
    original, written = tmp_path / "in.db", tmp_path / "out.db"
    build(original, 19)
    execute(
        original,
        "update sessions set metadata = '{}'",
        "update state_snapshots set state_data = 'no JSON at all' where state_type = 'pm'",
        "update skill_outputs set output_data = 'nor this'",
        "update task_groups set context_references = '[1,2]', speckit_task_ids = '[7, \"T008\"]'",
    )
    asked = {
        "sessions": "metadata",
        "state_snapshots": "state_data",
        "skill_outputs": "output_data",
        "task_groups": "context_references",
    }
    BazingaImport(log, str(original)).run()

    BazingaExport(log, str(written)).run()

    before, after = _all(original), _all(written)
    for table, column in asked.items():
        texts = [[row.get(column) for row in rows[table]] for rows in (before, after)]
        assert sorted(texts[1], key=str) == sorted(texts[0], key=str), table
    assert next(row["speckit_task_ids"] for row in after["task_groups"] if "speckit_task_ids" in row) == [7, "T008"]


def test_older_versions_and_words_that_are_not_known_there_are_counted(log: Decklog, tmp_path: Path) -> None:
    build(tmp_path / "in.db", 17)
    BazingaImport(log, str(tmp_path / "in.db")).run()
    log.runs.start("Something else", run_id="waits")
    log.runs.update("waits", status="paused")

    left_out = BazingaExport(log, str(tmp_path / "out.db")).run()["left_out"]

    versions = sum(state.version - 1 for state in log.states.find("bazinga_1", limit=100))
    assert versions > 0
    assert left_out["older versions of state_snapshots"] == versions
    assert left_out["that sessions are paused: they are active there"] == 1


def test_what_was_written_since_takes_no_number_of_what_was_imported(log: Decklog, clock: ManualClock, tmp_path: Path) -> None:
    original, written = tmp_path / "in.db", tmp_path / "out.db"
    build(original, 19)
    BazingaImport(log, str(original)).run()
    for session in ("bazinga_2", "bazinga_1"):
        clock.advance(seconds=1)
        log.journal.append(session, f"new in {session}", agent="pm")

    result = BazingaExport(log, str(written)).run()

    assert result["refused"] == []
    before, after = (_all(path)["orchestration_logs"] for path in (original, written))
    assert [row["id"] for row in after] == list(range(1, len(before) + 3))
    assert [row["content"] for row in after[-2:]] == ["new in bazinga_2", "new in bazinga_1"]
