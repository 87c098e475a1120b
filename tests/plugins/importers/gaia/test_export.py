"""A gaia-coder home can be written back, its file stores byte for byte, and a log of Decklog's own can be read there."""

import json
import resource
import stat
from pathlib import Path

import apsw
import pytest

from decklog import Decklog, ManualClock
from decklog.cli.call import Invocation
from decklog.cli.commands.exchange.exporting import export_gaia
from decklog.core.errors import DiskFull
from decklog.plugins.importers.gaia.export import GaiaExport
from decklog.plugins.importers.gaia.importer import DATABASES, TABLES, GaiaImport
from decklog.plugins.importers.runstore.importer import RunStoreImport
from tests.conftest import on_both
from tests.plugins.importers.comparing import execute, records_of, rows_of, said_in, schema_of, settings_of
from tests.plugins.importers.gaia.gaia_home import LEARNINGS, build_full_home, record_everything
from tests.plugins.importers.other_files import GAIA_ROWS, SELF_EDIT, build_runstore


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return build_full_home(tmp_path / "gaia")


@pytest.fixture
def written(tmp_path: Path) -> Path:
    return tmp_path / "out"


def _rows(home: Path) -> dict[str, list[dict[str, object]]]:
    return {table: rows_of(home / name, [table])[table] for table, name in DATABASES.items()}


def _files(home: Path) -> dict[str, bytes]:
    found = [path for path in home.rglob("*") if path.is_file() and path.suffix != ".db"]
    return {str(path.relative_to(home)): path.read_bytes() for path in found}


@pytest.mark.slow
@on_both
def test_a_home_that_was_imported_is_written_back_row_by_row(log: Decklog, home: Path, written: Path) -> None:
    GaiaImport(log, str(home)).run()

    result = GaiaExport(log, str(written)).run()

    before, after = _rows(home), _rows(written)
    for table in TABLES:
        assert after[table] == before[table], table
    assert {table: result["tables"][table] for table in TABLES} == {table: len(rows) for table, rows in before.items()}
    assert (result["refused"], result["left_out"]) == ([], {})


def test_the_three_file_stores_come_back_byte_for_byte(log: Decklog, home: Path, written: Path) -> None:
    GaiaImport(log, str(home)).run()

    result = GaiaExport(log, str(written)).run()

    assert _files(written) == _files(home)
    assert {name: result["tables"][name] for name in ("paused_tasks", "self_edits_log", "learnings_log")} == {
        "paused_tasks": 2,
        "self_edits_log": 4,
        "learnings_log": 6,
    }


def test_lines_keep_their_numbers_where_blank_ones_were_between(log: Decklog, home: Path, written: Path) -> None:
    lines = LEARNINGS.splitlines(keepends=True)
    (home / "learnings.log").write_text("\n\n".join(lines))
    GaiaImport(log, str(home)).run()

    GaiaExport(log, str(written)).run()

    assert (written / "learnings.log").read_bytes() == (home / "learnings.log").read_bytes()


def test_a_line_in_an_unusual_spelling_comes_back_as_it_was(log: Decklog, home: Path, written: Path) -> None:
    line = json.dumps({**SELF_EDIT, "ts": "2026-02-01T10:00:00+02:00"}, indent=None) + "\n"
    (home / "self-edits.log").write_text(line)
    GaiaImport(log, str(home)).run()

    result = GaiaExport(log, str(written)).run()

    assert (written / "self-edits.log").read_text() == line
    assert result["left_out"] == {}


def test_times_are_spelled_as_its_programs_spell_them(log: Decklog, written: Path, home: Path) -> None:
    db = apsw.Connection(str(home / "ci_history.db"))
    spelled = ("2026-02-01T08:00:00Z", "2026-02-01T09:00:00.123456+00:00")
    db.execute("insert into ci_history values ('nightly', 'main', 1, ?, ?, 3600, 'success')", spelled)
    db.close()
    GaiaImport(log, str(home)).run()

    GaiaExport(log, str(written)).run()

    assert execute(
        written / "ci_history.db", "select started_at, completed_at from ci_history where workflow_name = 'nightly'"
    ) == [spelled]


@pytest.mark.slow
def test_what_was_written_is_imported_as_the_same_records(log: Decklog, home: Path, written: Path, tmp_path: Path) -> None:
    GaiaImport(log, str(home)).run()
    GaiaExport(log, str(written)).run()

    with Decklog.open(tmp_path / "again.db", clock=ManualClock(), durability="relaxed") as again:
        GaiaImport(again, str(written)).run()
        heads = again.journal.heads()
        GaiaImport(again, str(written)).run()

        assert again.journal.heads() == heads
        assert records_of(again) == records_of(log)
        assert said_in(again) == said_in(log)


def test_what_happened_here_since_is_what_is_written(log: Decklog, clock: ManualClock, home: Path, written: Path) -> None:
    GaiaImport(log, str(home)).run()
    clock.advance(days=100)
    log.tasks.resume("gt-2")
    log.ledger.charge("opus", cost_microdollars=750_000, run_id="gaia-coder", task_id="gt-1")
    log.journal.append("gaia-coder", kind="tool", subtype="bash", payload={"args": {"command": "ls"}, "duration_ms": 3})
    log.inbox.answer("m-3", "hello", by="agent")
    (noted,) = [one for one in log.learnings.find() if one.observation == "the linter runs twice"]
    log.learnings.dismiss(noted.id, by="em")

    GaiaExport(log, str(written)).run()

    rows = _rows(written)
    tasks = {row["id"]: row for row in rows["tasks"]}
    assert (tasks["gt-2"]["state"], tasks["gt-2"]["last_heartbeat_at"]) == ("pending", clock.now().timestamp())
    assert tasks["gt-1"]["cost_usd"] == 2.0, "what it had cost there and what was charged here"
    call = next(row for row in rows["audit"] if row["tool_name"] == "bash" and row["duration_ms"] == 3)
    assert (call["id"], call["args_json"], call["loop_version"]) == (10, {"command": "ls"}, 0)
    assert {row["id"]: row["answer"] for row in rows["em_inbox"]}["m-3"] == "hello"
    first = (written / "learnings.log").read_text().splitlines()[0]
    assert first == '2026-02-01T08:00:00Z [task=gt-1] Observed: "the linter runs twice" → dismissed'


def test_a_log_of_our_own_can_be_read_there(log: Decklog, clock: ManualClock, written: Path) -> None:
    record_everything(log, clock)

    result = GaiaExport(log, str(written)).run()

    rows = _rows(written)
    assert result["refused"] == []
    tasks = {row["id"]: row for row in rows["tasks"]}
    states = {"parked": "waiting"} | {name: name for name in tasks if name != "parked"}
    assert {name: row["state"] for name, row in tasks.items()} == states
    assert tasks["done"]["inputs_json"] == {"title": "Done", "objective": "do it", "n": 1}
    assert tasks["done"]["result_json"] == {"summary": "did it", "exit": 0}
    assert (tasks["done"]["cost_usd"], tasks["done"]["loop_version"]) == (1.25, 0)
    calls = {row["tool_name"]: row for row in rows["audit"]}
    assert (calls["glob"]["args_json"], calls["glob"]["result_json"]) == ({"pattern": "*"}, {"output": "3 files"})
    assert (calls["write_file"]["duration_ms"], calls["write_file"]["error"]) == (2000, None)
    assert {row["model"]: (row["usd"], row["call_site"]) for row in rows["spend"]} == {
        "opus": (1.25, "unknown"),
        "no-such-model": (0.0, "checker"),
    }
    assert [(row["state"], row["answer"]) for row in rows["em_inbox"]] == [("answered", "because")]
    assert {row["payload_json"].get("body") for row in rows["memory"]} == {None, "tests before any code"}
    paused = json.loads((written / "paused-tasks" / "paused.json").read_text())
    assert paused == {"task_id": "paused", "paused_at": paused["paused_at"], "reason": "lunch", "cwd": "/srv"}
    assert (written / "learnings.log").read_text().endswith('Observed: "he said "hi"" → skill:checks\n')
    assert list(json.loads((written / "self-edits.log").read_text())) == list(SELF_EDIT)


def test_what_has_no_place_is_reported(log: Decklog, clock: ManualClock, written: Path) -> None:
    record_everything(log, clock)

    left_out = GaiaExport(log, str(written)).run()["left_out"]

    expected = {
        "runs": 1,
        "topics": 1,
        "tasks.tags": 7,
        "tasks.blocker": 1,
        "tasks.attempts": 6,
        "lessons of topic own_topic": 1,
        "charges of unknown price": 1,
        "messages of senders not authorised": 1,
        "entries of kind interaction": 1,
        "learnings.state": None,
    }
    assert {name: left_out.get(name) for name in expected} == expected


def test_what_another_systems_import_kept_is_reported(log: Decklog, tmp_path: Path, written: Path) -> None:
    build_runstore(tmp_path / "runs.db")
    RunStoreImport(log, str(tmp_path / "runs.db")).run()

    left_out = GaiaExport(log, str(written)).run()["left_out"]

    # Three attempts, a task and a run have columns beside them, and two rows could be held by no record.
    assert left_out["what the import from runstore kept"] == 7


@pytest.mark.slow
def test_a_log_of_our_own_comes_back(log: Decklog, clock: ManualClock, written: Path, tmp_path: Path) -> None:
    record_everything(log, clock)
    GaiaExport(log, str(written)).run()

    with Decklog.open(tmp_path / "again.db", clock=clock, durability="relaxed") as again:
        report = GaiaImport(again, str(written)).run()
        heads = again.journal.heads()
        GaiaImport(again, str(written)).run()
        GaiaExport(again, str(tmp_path / "second")).run()

        assert report.as_dict()["totals"]["kept"] == report.as_dict()["totals"]["refused"] == 0
        assert again.journal.heads() == heads
        assert again.tasks.get("done").title == log.tasks.get("done").title
        assert {lesson.body for lesson in again.memory.find()} <= {lesson.body for lesson in log.memory.find()}
    assert _rows(tmp_path / "second") == _rows(written)
    assert _files(tmp_path / "second") == _files(written)


def test_an_empty_log_gives_a_home_in_which_nothing_was_ever_written(log: Decklog, written: Path) -> None:
    result = GaiaExport(log, str(written)).run()

    assert sorted(path.name for path in written.iterdir()) == sorted([*DATABASES.values(), "paused-tasks"])
    assert result == {"path": str(written), "tables": {}, "refused": [], "left_out": {}}


def test_the_databases_are_what_its_programs_make(log: Decklog, written: Path) -> None:
    GaiaExport(log, str(written)).run()

    for table, name in DATABASES.items():
        assert settings_of(written / name) == ("wal", 0, "ok")
        assert tuple(schema_of(written / name, table)) == TABLES[table]
    assert schema_of(written / "tasks.db", "tasks")["priority"] == ("INTEGER", True, "50", False)
    assert schema_of(written / "tasks.db", "tasks")["cost_usd"] == ("REAL", True, "0.0", False)
    assert schema_of(written / "feedback.db", "feedback")["notes_json"] == ("TEXT", True, "'[]'", False)
    assert [name for name, column in schema_of(written / "ci_history.db", "ci_history").items() if column[3]] == [
        "workflow_name",
        "branch",
        "run_id",
    ]


@pytest.mark.parametrize(
    ("table", "indexes"),
    [
        ("em_inbox", ["idx_em_inbox_received", "idx_em_inbox_state"]),
        ("tasks", ["idx_tasks_priority", "idx_tasks_state"]),
        ("feedback", ["idx_feedback_fix_class", "idx_feedback_state"]),
        ("spend", ["idx_spend_occurred", "idx_spend_task"]),
        ("audit", ["idx_audit_occurred", "idx_audit_task", "idx_audit_tool"]),
        ("ci_history", []),
        ("memory", ["idx_memory_recalled", "idx_memory_topic"]),
    ],
)
def test_every_index_is_there_and_every_check_holds(tmp_path: Path, table: str, indexes: list[str]) -> None:
    with Decklog.open(tmp_path / "log.db", durability="relaxed") as log:
        GaiaExport(log, str(tmp_path / "out")).run()

    db = apsw.Connection(str(tmp_path / "out" / DATABASES[table]))
    found = [name for (name,) in db.execute("select name from sqlite_schema where type = 'index' and sql is not null")]
    assert sorted(found) == indexes
    for column in ("state", "channel", "severity", "topic", "fix_class"):
        if f"CHECK ({column} IN" in db.execute("select sql from sqlite_schema where name = ?", (table,)).get:
            with pytest.raises(apsw.ConstraintError):
                _insert(db, table, {column: "something else"})
    _insert(db, table, {})
    db.close()


def _insert(db: apsw.Connection, table: str, other: dict[str, object]) -> None:
    row = {**dict(zip(TABLES[table], GAIA_ROWS[table][0], strict=True)), **other}
    db.execute(f"insert into {table} ({', '.join(row)}) values ({', '.join('?' for _ in row)})", tuple(row.values()))


def test_only_the_owner_can_read_it(log: Decklog, home: Path, written: Path) -> None:
    GaiaImport(log, str(home)).run()

    GaiaExport(log, str(written)).run()

    for path in [written, *written.rglob("*")]:
        assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600), path


def test_an_empty_folder_is_filled(log: Decklog, written: Path) -> None:
    written.mkdir()

    GaiaExport(log, f"{written}/").run()

    assert (written / "tasks.db").exists()


@pytest.mark.parametrize("store", ["feedback", "memory", "learnings_log"])
def test_an_export_that_fails_leaves_nothing_behind(log: Decklog, home: Path, written: Path, store: str) -> None:
    GaiaImport(log, str(home)).run()
    before = {path.name for path in written.parent.iterdir()}

    def interrupted(table: str, _done: int, _whole: int) -> None:
        if table == store:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        GaiaExport(log, str(written), interrupted).run()

    assert {path.name for path in written.parent.iterdir()} == before


def test_a_full_disk_is_named_and_leaves_nothing_behind(log: Decklog, run_id: str, written: Path) -> None:
    document = {"task_id": "t", "paused_at": "2026-01-01T00:00:00Z", "reason": "lunch", "output": "x" * 200_000}
    log.states.save_snapshot(run_id, "t", document)
    before = {path.name for path in written.parent.iterdir()}
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)

    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, limits[1]))
    try:
        with pytest.raises(DiskFull, match="no room"):
            GaiaExport(log, str(written)).run()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)

    assert {path.name for path in written.parent.iterdir()} == before


def test_no_record_leads_out_of_the_folder(log: Decklog, run_id: str, written: Path) -> None:
    outside = {"task_id": "../../outside", "document": "x"}
    kept = {"system": "gaia", "table": "paused_tasks", "id": "a", "row": outside}
    log.journal.append(run_id, kind="event", subtype="imported.row", payload=kept)
    log.tasks.add(run_id, "Out", task_id="../out")
    log.tasks.pause("../out", reason="lunch", snapshot={"cwd": "/"})

    result = GaiaExport(log, str(written)).run()

    assert len(result["refused"]) == 2
    assert list((written / "paused-tasks").iterdir()) == []
    assert not list(written.parent.glob("out*.json"))


def test_the_command_says_what_was_written_and_what_was_not(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with Decklog.open(tmp_path / "log.db", clock=ManualClock(), durability="relaxed") as log:
        record_everything(log, log.clock)

    export_gaia.main([str(tmp_path / "out")], obj=Invocation(["--db", str(tmp_path / "log.db")]), standalone_mode=False)
    shown = capsys.readouterr()
    export_gaia.main(
        [str(tmp_path / "more")], obj=Invocation(["--db", str(tmp_path / "log.db"), "--json"]), standalone_mode=False
    )
    data = json.loads(capsys.readouterr().out)

    assert "learnings_log   1\n" in shown.out
    assert "has no place for " in shown.err
    assert "tasks.tags (7), " in shown.err
    assert f"Written: {tmp_path / 'out'}\n" in shown.err
    assert (data["data"]["tables"]["tasks"], data["data"]["left_out"]["runs"]) == (7, 1)
    assert "runs (1)" in data["warnings"][0]
