"""A gaia-coder home is taken over whole, once."""

from pathlib import Path

import apsw
import pytest

from decklog import Decklog, Invalid
from decklog.importers.engine.report import Fate
from decklog.importers.gaia.export import GaiaExport
from decklog.importers.gaia.importer import GaiaImport
from decklog.importers.gaia.schema import DATABASES
from tests.conftest import on_both
from tests.importers.other_files import build_gaia


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "gaia"


@on_both
def test_everything_arrives_and_a_second_import_changes_nothing(log: Decklog, home: Path) -> None:
    counts = build_gaia(home)

    report = GaiaImport(log, str(home)).run()
    heads = log.journal.heads()
    again = GaiaImport(log, str(home)).run()

    assert {table: found["read"] for table, found in report.tables.items()} == counts
    kept = {table: found["kept"] for table, found in report.tables.items() if found["kept"]}
    assert kept == {"feedback": 1, "self_edits_log": 1, "learnings_log": 1}
    assert report.total(Fate.REFUSED) == 0
    assert any("link.json" in note for note in report.notes)
    assert again.total(Fate.ALREADY) == sum(counts.values())
    assert log.journal.heads() == heads
    assert log.journal.verify().ok


def test_what_the_home_says_is_what_the_log_says(log: Decklog, home: Path) -> None:
    build_gaia(home)

    GaiaImport(log, str(home)).run()

    task = log.tasks.get("gt-1")
    assert (task.title, task.state, task.priority, task.result) == ("Fix the parser", "done", 80, {"ok": True})
    assert log.tasks.get("gt-2").state == "paused"
    assert "running" in log.tasks.get("gt-2").reason
    calls = [entry for entry in log.journal.find("gaia-coder", oldest_first=True, limit=100) if entry.kind == "tool"]
    assert [(entry.subtype, entry.task_id, entry.payload["args"]) for entry in calls] == [
        ("file_edit", "gt-1", {"path": "a"}),
        ("search", None, {}),
    ]
    assert {charge.model: charge.cost_microdollars for charge in log.ledger.find()} == {"opus": 100_000, "haiku": 1}
    assert log.ci.get("build", "main", 7).duration_seconds == 3600
    assert log.memory.get("me-1").superseded_by == "me-2"
    assert [hit.id for hit in log.memory.recall("tests before code")] == ["me-2"]
    assert log.states.get_snapshot("gaia-coder", "gt-3").document["reason"] == "lunch"
    assert log.self_edits.find()[0].feedback_id == "fb-1"
    assert {learning.observation for learning in log.learnings.find()} == {"the linter runs twice", "a bare date"}
    assert log.feedback.get("fb-1").fix_class == "test"
    assert log.inbox.get("m-1").escalated_to == "fb-1"


def test_a_dry_run_does_nothing(log: Decklog, home: Path) -> None:
    build_gaia(home)

    report = GaiaImport(log, str(home), dry_run=True).run()

    assert report.total(Fate.NEW) > 10
    assert log.journal.heads() == []


def test_another_kind_of_folder_is_refused(log: Decklog, tmp_path: Path) -> None:
    with pytest.raises(Invalid, match="no home of gaia-coder"):
        GaiaImport(log, str(tmp_path)).run()


def _edit(home: Path, table: str, statement: str) -> None:
    db = apsw.Connection(str(home / DATABASES[table]))
    db.execute(statement)
    db.close()


def test_a_second_import_brings_what_moved_on_meanwhile(log: Decklog, home: Path, tmp_path: Path) -> None:
    build_gaia(home)
    GaiaImport(log, str(home)).run()
    _edit(home, "tasks", "update tasks set state = 'done', result_json = '{\"ok\": 2}' where id = 'gt-3'")
    _edit(home, "em_inbox", "update em_inbox set state = 'answered', answer = 'soon', answered_at = received_at where id = 'm-3'")
    _edit(home, "feedback", "update feedback set state = 'in-fix', notes_json = '[{\"to\": 2}]' where id = 'fb-1'")
    _edit(home, "memory", "update memory set recall_count = 9, last_recalled_at = '2026-03-01T00:00:00Z' where id = 'me-2'")
    _edit(home, "audit", "update audit set error = 'TimeoutError', duration_ms = 900 where id = 1")

    report = GaiaImport(log, str(home)).run()
    heads = log.journal.heads()
    third = GaiaImport(log, str(home)).run()

    assert (log.tasks.get("gt-3").state, log.tasks.get("gt-3").result) == ("done", {"ok": 2})
    assert (log.inbox.get("m-3").state, log.inbox.get("m-3").answer) == ("answered", "soon")
    assert (log.feedback.get("fb-1").state, log.feedback.get("fb-1").notes) == ("in-fix", [{"to": 2}])
    assert log.memory.get("me-2").recall_count == 9
    changed = {table: found["changed"] for table, found in report.tables.items() if found["changed"]}
    assert changed == {"tasks": 1, "em_inbox": 1, "feedback": 1, "memory": 1, "audit": 1}
    assert log.journal.heads() == heads
    assert third.total(Fate.CHANGED) == third.total(Fate.NEW) == 0
    GaiaExport(log, str(tmp_path / "back")).run()
    written = apsw.Connection(str(tmp_path / "back" / DATABASES["audit"]))
    assert written.execute("select error, duration_ms from audit where id = 1").get == ("TimeoutError", 900)
    written.close()
    assert log.journal.verify().ok
