"""A gaia-coder home is taken over whole, once."""

from pathlib import Path

import pytest

from decklog import Decklog, Invalid
from decklog.core.clock import from_text
from decklog.importing.report import Outcome
from decklog.plugins.importers.gaia.export import GaiaExport
from decklog.plugins.importers.gaia.importer import DATABASES, TABLES, GaiaImport
from tests.conftest import on_both
from tests.plugins.importers import claims
from tests.plugins.importers.comparing import execute
from tests.plugins.importers.other_files import build_gaia


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "gaia"


@pytest.mark.slow
@on_both
def test_everything_arrives_and_a_second_import_changes_nothing(log: Decklog, home: Path) -> None:
    counts = build_gaia(home)

    report = claims.check_whole(log, lambda log: GaiaImport(log, str(home)).run(), counts)

    kept = {table: found["kept"] for table, found in report.tables.items() if found["kept"]}
    assert kept == {"feedback": 1, "self_edits_log": 1, "learnings_log": 1}
    assert any("link.json" in note for note in report.notes)


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


def test_another_kind_of_folder_is_refused(log: Decklog, tmp_path: Path) -> None:
    with pytest.raises(Invalid, match="no home of gaia-coder"):
        GaiaImport(log, str(tmp_path)).run()


T9 = "2026-03-09T09:09:09Z"
# Another value for every column but the keys, of one row of each table.
CHANGES: dict[str, dict[str, object]] = {
    "feedback": {
        "received_at": T9,
        "from_handle": "other",
        "channel": "tui",
        "severity": "low",
        "body": "else",
        "context_url": "u9",
        "fix_class": "doc",
        "state": "verified",
        "fix_pr_url": "pr9",
        "regression_test_path": "t9",
        "root_cause": "r9",
        "success_criterion": "c9",
        "notes_json": '[{"n": 9}]',
    },
    "em_inbox": {
        "received_at": T9,
        "from_handle": "other",
        "channel": "email",
        "severity": "info",
        "body": "else",
        "state": "answered",
        "answer": "a9",
        "escalated_to": None,
        "ack_sent_at": T9,
        "answered_at": T9,
        "closed_at": None,
    },
    "tasks": {
        "priority": 9,
        "state": "blocked",
        "created_at": "2026-01-09T09:09:09Z",
        "last_heartbeat_at": T9,
        "stage": "s9",
        "current_state_name": "n9",
        "inputs_json": '{"prompt": "p9"}',
        "result_json": '{"ok": 9}',
        "trace_file": "t9",
        "cost_usd": 9.5,
        "loop_version": 9,
    },
    "audit": {
        "occurred_at": T9,
        "task_id": "gt-3",
        "stage": "s9",
        "state_name": "n9",
        "tool_name": "t9",
        "args_json": '{"a": 9}',
        "result_json": '{"r": 9}',
        "duration_ms": 9,
        "error": "e9",
        "loop_version": 9,
    },
    "spend": {
        "occurred_at": T9,
        "task_id": "gt-3",
        "call_site": "c9",
        "model": "m9",
        "input_tokens": 9,
        "cache_read_tokens": 8,
        "cache_create_tokens": 7,
        "output_tokens": 6,
        "usd": 9.25,
    },
    "ci_history": {"started_at": T9, "completed_at": T9, "duration_s": 9, "conclusion": "failure"},
    "memory": {
        "topic": "adr_decisions",
        "created_at": T9,
        "source_kind": "s9",
        "source_id": "i9",
        "confidence": 9,
        "payload_json": '{"decision": "nine"}',
        "embedding_key": "k9",
        "last_recalled_at": T9,
        "recall_count": 9,
        "superseded_by": None,
    },
}
ROWS = {"feedback": "fb-1", "em_inbox": "m-1", "tasks": "gt-3", "audit": 1, "memory": "me-1"}


def test_second_import_brings_that_a_message_was_closed(log: Decklog, home: Path) -> None:
    build_gaia(home)
    GaiaImport(log, str(home)).run()
    execute(home / DATABASES["em_inbox"], f"update em_inbox set state = 'closed', closed_at = '{T9}' where id = 'm-3'")

    GaiaImport(log, str(home)).run()

    message = log.inbox.get("m-3")
    assert (message.state, message.closed_at) == ("closed", from_text(T9))


def _row(home: Path, table: str, row_id: object) -> dict[str, object]:
    [row] = execute(home / DATABASES[table], f"select * from {table} where rowid = {row_id}")
    return dict(zip(TABLES[table], row, strict=True))


def _rowid(home: Path, table: str) -> int:
    condition = f"where id = '{ROWS[table]}'" if table in ROWS else ""
    [(found,)] = execute(home / DATABASES[table], f"select min(rowid) from {table} {condition}")
    return int(found)


@pytest.mark.slow
@pytest.mark.parametrize("table", CHANGES)
def test_second_import_brings_every_changed_field(log: Decklog, home: Path, tmp_path: Path, table: str) -> None:
    build_gaia(home)
    log.budgets.set("all", limit_microdollars=1_000_000_000)
    GaiaImport(log, str(home)).run()
    log.overview.money()
    row_id = _rowid(home, table)
    assert {*CHANGES[table]} | {"id", "workflow_name", "branch", "run_id"} >= {*TABLES[table]}
    sets = ", ".join(f"{name} = :{name}" for name in CHANGES[table])
    execute(
        home / DATABASES[table], f"update {table} set {sets} where rowid = :row_id", bound={**CHANGES[table], "row_id": row_id}
    )

    report = GaiaImport(log, str(home)).run()
    third = GaiaImport(log, str(home)).run()

    assert {name: found["changed"] for name, found in report.tables.items() if found["changed"]} == {table: 1}
    assert (
        report.total(Outcome.NEW) == report.total(Outcome.KEPT) == third.total(Outcome.CHANGED) == third.total(Outcome.NEW) == 0
    )
    GaiaExport(log, str(tmp_path / "back")).run()
    key = "id" if "id" in TABLES[table] else "run_id"
    wanted = _row(home, table, row_id)
    [place] = execute(tmp_path / "back" / DATABASES[table], f"select rowid from {table} where {key} = '{wanted[key]}'")
    assert _row(tmp_path / "back", table, place[0]) == wanted
    assert log.journal.verify().ok


def test_snapshot_of_an_older_version_is_imported(log: Decklog, home: Path) -> None:
    build_gaia(home)
    (home / "paused-tasks" / "gt-1.json").write_text('{"cwd": "/srv"}')

    GaiaImport(log, str(home)).run()

    document = log.states.get_snapshot("gaia-coder", "gt-1").document
    assert (document["cwd"], document["task_id"], document["reason"]) == ("/srv", "gt-1", "paused")
