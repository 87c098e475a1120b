"""Rows are taken many at a time, and a row that can't be taken harms none of its neighbours."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from decklog import Decklog
from decklog.importing import writer
from decklog.importing.report import Outcome
from decklog.journal.entry import IMPORTED_COLUMNS, IMPORTED_ROW
from decklog.plugins.importers.bazinga.importer import BazingaImport
from tests.conftest import on_both
from tests.plugins.importers.bazinga.bazinga_files import ROWS, build

MANY = 2300
_KILLED = """
import os, signal, sys
from decklog import Decklog
from decklog.plugins.importers.bazinga.importer import BazingaImport

def progress(table, done, whole):
    if table == "orchestration_logs" and done >= 1000:
        os.kill(os.getpid(), signal.SIGKILL)

with Decklog.open(sys.argv[2]) as log:
    BazingaImport(log, sys.argv[1], progress=progress).run()
"""


def _logs(count: int) -> list[dict[str, object]]:
    return [
        {"session_id": f"bazinga_{number % 2 + 1}", "agent_type": "pm", "content": f"line {number}"} for number in range(count)
    ]


def _bodies(log: Decklog, stream: str) -> list[str]:
    return [entry.body or "" for entry in log.journal.tail(stream, follow=False) if (entry.body or "").startswith("line ")]


@pytest.mark.slow
@on_both
def test_many_rows_arrive_in_order_and_once(log: Decklog, tmp_path: Path) -> None:
    build(tmp_path / "in.db", 19, more={"orchestration_logs": _logs(MANY)})

    report = BazingaImport(log, str(tmp_path / "in.db")).run()
    again = BazingaImport(log, str(tmp_path / "in.db")).run()

    assert report.tables["orchestration_logs"][Outcome.NEW] == MANY + len(ROWS["orchestration_logs"])
    assert _bodies(log, "bazinga_1") == [f"line {number}" for number in range(0, MANY, 2)]
    assert again.tables["orchestration_logs"][Outcome.ALREADY] == MANY + len(ROWS["orchestration_logs"])
    assert log.journal.verify().ok


@pytest.mark.slow
@on_both
def test_rows_that_cannot_be_taken_are_kept_among_many_that_can(log: Decklog, tmp_path: Path) -> None:
    rows = _logs(MANY)
    for number in (0, 777, 1500, 1501):
        rows[number]["session_id"] = "gone"
    groups = [{"id": f"G{number}", "session_id": "bazinga_2", "name": "n"} for number in range(50, 90)]
    groups[7]["session_id"] = groups[31]["session_id"] = "gone"
    build(tmp_path / "in.db", 19, more={"orchestration_logs": rows, "task_groups": groups})

    report = BazingaImport(log, str(tmp_path / "in.db")).run()

    assert report.tables["orchestration_logs"][Outcome.KEPT] == 4
    assert report.tables["task_groups"][Outcome.KEPT] == 2
    assert len([note for note in report.notes if "session gone is not in the file" in note]) == 6
    kept = log.journal.find("@desk", subtype=IMPORTED_ROW, oldest_first=True, limit=100)
    assert [entry.payload["row"]["content"] for entry in kept if entry.payload["table"] == "orchestration_logs"] == [
        "line 0",
        "line 777",
        "line 1500",
        "line 1501",
    ]
    assert len(log.groups.find("bazinga_2", limit=100)) == 38 + sum(
        row["session_id"] == "bazinga_2" for row in ROWS["task_groups"]
    )
    assert log.journal.verify().ok


def test_a_row_that_is_too_long_for_a_record_is_refused_alone(tmp_path: Path) -> None:
    rows = _logs(1200)
    rows[600]["content"] = "line " + "x" * 300_000
    build(tmp_path / "in.db", 19, more={"orchestration_logs": rows})

    with Decklog.open(tmp_path / "log.db", durability="relaxed", limit_bytes=100_000) as log:
        report = BazingaImport(log, str(tmp_path / "in.db")).run()

        assert report.tables["orchestration_logs"][Outcome.REFUSED] == 1
        assert next(note for note in report.notes if "was refused" in note).startswith("orchestration_logs ")
        assert len(_bodies(log, "bazinga_1")) + len(_bodies(log, "bazinga_2")) == 1199


@on_both
def test_what_a_row_left_over_is_named_by_the_entry_it_became(log: Decklog, tmp_path: Path) -> None:
    rows = [{**row, "event_payload": "{broken"} for row in _logs(30)]
    build(tmp_path / "in.db", 19, more={"orchestration_logs": rows})

    BazingaImport(log, str(tmp_path / "in.db")).run()

    beside = [
        entry for entry in log.journal.find(subtype=IMPORTED_COLUMNS, limit=100) if "event_payload" in entry.payload["columns"]
    ]
    assert len(beside) == 30
    entries = {entry.id: entry for stream in ("bazinga_1", "bazinga_2") for entry in log.journal.tail(stream, follow=False)}
    assert all(entries[entry.payload["made"]].key.endswith(f":{entry.payload['id']}") for entry in beside)


@on_both
@pytest.mark.parametrize("characters", [1, 20_000])
def test_large_rows_make_small_batches(log: Decklog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, characters: int) -> None:
    monkeypatch.setattr(writer, "_MOST_CHARACTERS", 100_000)
    rows = [{**row, "content": "y" * characters} for row in _logs(30)]
    build(tmp_path / "in.db", 19, more={"orchestration_logs": rows})
    seen: list[int] = []

    def progress(table: str, done: int, _: int) -> None:
        if table == "orchestration_logs":
            seen.append(done)

    BazingaImport(log, str(tmp_path / "in.db"), progress=progress).run()

    assert len(seen) == (1 if characters == 1 else 6)


@pytest.mark.slow
def test_an_import_that_was_killed_goes_on_where_it_was(tmp_path: Path) -> None:
    build(tmp_path / "in.db", 19, more={"orchestration_logs": _logs(MANY)})
    target = tmp_path / "log.db"

    killed = subprocess.run([sys.executable, "-c", _KILLED, str(tmp_path / "in.db"), str(target)], check=False)
    with Decklog.open(target) as log:
        report = BazingaImport(log, str(tmp_path / "in.db")).run()

        assert killed.returncode == -signal.SIGKILL
        assert report.tables["orchestration_logs"][Outcome.ALREADY] == 1000
        assert _bodies(log, "bazinga_2") == [f"line {number}" for number in range(1, MANY, 2)]
        assert log.journal.verify().ok
