"""A gaia-coder home is taken over whole, once."""

from pathlib import Path

import pytest

from decklog import Decklog, Invalid
from decklog.importers.engine.report import Fate
from decklog.importers.gaia.importer import GaiaImport
from tests.importers.other_files import build_gaia


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "gaia"


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
