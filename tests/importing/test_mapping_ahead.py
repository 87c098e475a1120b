"""Rows that were mapped and prepared in a process of their own give the log that they give without."""

import json
import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apsw
import pytest

from decklog import Decklog
from decklog.importing import reading_ahead
from decklog.importing.report import Fate
from decklog.plugins.importers.bazinga.importer import BazingaImport
from decklog.plugins.importers.beads.importer import BeadsImport
from decklog.plugins.importers.gaia.importer import GaiaImport
from decklog.plugins.importers.github.importer import GithubImport
from decklog.plugins.importers.hermes.importer import HermesImport
from decklog.plugins.importers.langgraph.importer import LangGraphImport
from decklog.plugins.importers.runstore.importer import RunStoreImport
from decklog.plugins.importers.taskmaster.importer import TaskMasterImport
from decklog.plugins.importers.vibekanban.importer import VibeKanbanImport
from tests.plugins.importers import claims
from tests.plugins.importers.bazinga.bazinga_files import build
from tests.plugins.importers.beads import beads_files
from tests.plugins.importers.comparing import records_of, said_in
from tests.plugins.importers.github import github_files
from tests.plugins.importers.hermes import hermes_files
from tests.plugins.importers.langgraph import langgraph_files
from tests.plugins.importers.other_files import build_gaia, build_runstore
from tests.plugins.importers.taskmaster import taskmaster_files
from tests.plugins.importers.vibekanban import vibekanban_files

SECRET = "ghp_" + "Zk3" * 12
ROWS = [
    {"session_id": "bazinga_1", "agent_type": "pm", "content": f"line {number}", "log_type": "event", "event_payload": '{"a": 1}'}
    for number in range(700)
]
ODD = [
    {"session_id": "bazinga_1", "agent_type": "pm", "content": f"Use {SECRET}"},
    {"session_id": "gone", "agent_type": "pm", "content": "of a session that is not in the file"},
    {"session_id": "bazinga_2", "agent_type": "pm", "content": "x" * 40_000, "event_payload": "{broken", "log_type": "odd"},
]
HIDDEN = [("t1", "", "1f0-2", "task-2", "", 0, "messages", "msgpack", langgraph_files.packed([f"Use {SECRET}"]))]
SOURCES = {
    "bazinga": (BazingaImport, lambda path: build(path, 19, more={"orchestration_logs": [*ROWS, *ODD]})),
    "runstore": (RunStoreImport, build_runstore),
    "gaia": (GaiaImport, build_gaia),
    "langgraph": (LangGraphImport, lambda path: langgraph_files.build(path, writes=[*langgraph_files.WRITES, *HIDDEN])),
}


def _issues(path: Path) -> None:
    told = beads_files.issue("bd-secret", title="Rotate it", description=f"Use {SECRET}", labels=["a", "a", " "])
    beads_files.write(path, [*beads_files.lines(), json.dumps(told)])


TRACKERS = {
    "beads": (BeadsImport, _issues),
    "github": (GithubImport, github_files.write),
    "hermes": (HermesImport, hermes_files.build_home),
    "taskmaster": (TaskMasterImport, taskmaster_files.write),
    "vibekanban": (VibeKanbanImport, vibekanban_files.build),
}


def _read_here(monkeypatch: pytest.MonkeyPatch, share: float) -> list[str]:
    """Have what is read ahead read here, but sent as to another process; give the tables that were."""
    tables: list[str] = []

    def read(reading: Any, asked: Any, _size: int) -> Iterator[Any]:
        tables.extend(asked.tables)
        parts = reading(pickle.loads(pickle.dumps(asked)), reading_ahead.Balance(share))
        yield from (pickle.loads(pickle.dumps(part)) for part in parts)

    monkeypatch.setattr(reading_ahead, "read", read)
    monkeypatch.setattr(reading_ahead, "WORTH_A_PROCESS", 0)
    return tables


@pytest.mark.parametrize("name", SOURCES)
@pytest.mark.parametrize("share", [0.5, 1.0])
def test_the_log_is_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, share: float) -> None:
    kind, made = SOURCES[name]
    made(tmp_path / "in.db")

    def take(log: Decklog) -> None:
        kind(log, str(tmp_path / "in.db")).run()

    def take_ahead(log: Decklog) -> None:
        with monkeypatch.context() as patched:
            tables = _read_here(patched, share)
            take(log)
        assert tables

    with claims.fresh(tmp_path, "one") as one, claims.fresh(tmp_path, "other") as other:
        take(one)
        take_ahead(other)
        assert said_in(one) == said_in(other)
        records, others = records_of(one), records_of(other)
        # Their ids are made anew by every import.
        assert len(records.pop("outputs", ())) == len(others.pop("outputs", ()))
        assert records == others
        assert other.journal.verify().ok


@pytest.mark.parametrize("name", TRACKERS)
@pytest.mark.parametrize("share", [0.0, 1.0])
def test_a_trackers_log_is_the_same_and_a_second_import_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, share: float
) -> None:
    kind, made = TRACKERS[name]
    made(tmp_path / "in")

    def take(log: Decklog) -> Any:
        return kind(log, str(tmp_path / "in"), run_id="taken").run()

    with claims.fresh(tmp_path, "one") as one, claims.fresh(tmp_path, "other") as other:
        report = take(one)
        tables = _read_here(monkeypatch, share)
        assert take(other).as_dict() == report.as_dict()
        assert tables
        assert claims.told_by(one) == claims.told_by(other)
        assert one.journal.heads() == other.journal.heads() or name == "beads"  # a memory's id is made anew
        again = take(other)
        assert again.total(Fate.ALREADY) == sum(report.total(fate) for fate in Fate)
        assert other.journal.verify().ok


def test_an_item_that_came_meanwhile_is_compared_field_by_field(
    log: Decklog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = beads_files.write(tmp_path / "issues.jsonl")
    BeadsImport(log, str(path), run_id="taken").run()
    _read_here(monkeypatch, 1.0)
    monkeypatch.setattr(BeadsImport, "has_tasks_here", lambda _: False)

    again = BeadsImport(log, str(path), run_id="taken").run()

    assert again.total(Fate.NEW) == again.total(Fate.CHANGED) == 0
    assert log.journal.verify().ok


def test_a_second_import_changes_nothing_and_what_differs_is_kept(
    log: Decklog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    build(tmp_path / "in.db", 19, more={"orchestration_logs": [*ROWS, *ODD]})
    _read_here(monkeypatch, 1.0)

    def take(**settings: Any) -> Any:
        return BazingaImport(log, str(tmp_path / "in.db"), **settings).run()

    first, heads = take(), log.journal.heads()
    again = take()

    assert again.total(Fate.ALREADY) == sum(first.total(fate) for fate in Fate)
    assert log.journal.heads() == heads
    assert log.journal.verify().ok
    db = apsw.Connection(str(tmp_path / "in.db"))
    db.execute("update orchestration_logs set content = 'changed' where content = 'line 1'")
    db.close()
    assert take().total(Fate.CHANGED) == 1


def test_a_dry_run_changes_nothing(log: Decklog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    build(tmp_path / "in.db", 19, more={"orchestration_logs": ROWS})
    _read_here(monkeypatch, 1.0)

    report = BazingaImport(log, str(tmp_path / "in.db"), dry_run=True).run()

    assert report.tables["orchestration_logs"][Fate.NEW] >= len(ROWS)
    assert log.journal.heads() == []


@pytest.mark.skipif(len(__import__("os").sched_getaffinity(0)) < 2, reason="a process of its own needs a core of its own")
def test_a_large_table_is_read_by_a_process_of_its_own(log: Decklog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    build(tmp_path / "in.db", 19, more={"orchestration_logs": ROWS})
    claims.read_elsewhere(monkeypatch, "orchestration_logs")

    report = BazingaImport(log, str(tmp_path / "in.db")).run()

    assert report.tables["orchestration_logs"][Fate.NEW] >= len(ROWS)
    assert log.journal.verify().ok
