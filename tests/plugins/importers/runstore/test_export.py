"""A RunStore database can be written back, and a log of Decklog's own can be read there."""

import json
import stat
from pathlib import Path

import apsw
import pytest

from decklog import Decklog, ManualClock
from decklog.plugins.importers.runstore.export import RunStoreExport
from decklog.plugins.importers.runstore.importer import TABLES, RunStoreImport
from tests.conftest import on_both
from tests.plugins.importers.comparing import execute, records_of, rows_of, said_in, schema_of, settings_of
from tests.plugins.importers.other_files import T0, T1, T2, build_runstore

# What a caller, a crash or another version may have left: own words, broken JSON, times that are none, ids that no run can have.
ODD: dict[str, list[tuple[object, ...]]] = {
    "runs": [("odd run", "Odd", "/srv/odd", "verifying", "", 0, 0, None, "long ago", "later")],
    "agents": [("odd run", "strategy", "s-9", 2, 0, None, None, "never")],
    "tasks": [
        ("o-1", "odd run", "Own word", "do", "[{}]", "none", '["src"]', "shipped", 4, None, None, T0, T1),
        ("o-2", "odd run", "No times", "do", "[]", "[]", "[]", "abandoned", 0, "gone", "why", "?", "??"),
    ],
    "task_attempts": [
        ("oa-9", "odd run", "o-1", 9, "exploded", "bang", None, "not json", T1),
        ("oa-1", "odd run", "o-1", 1, "done", "ok", "left over", "null", T2),
    ],
    "events": [(70, "odd run", T1, "system", "odd", "broken", "{"), (71, "odd run", T2, "system", "odd", "bare", '"text"')],
    "artifacts": [("of-1", "odd run", None, "log", "odd.log", "once", "[]")],
    "checkpoints": [("oc-1", "odd run", "verifying", "[1, {}]", T1), ("oc-2", "odd run", "verifying", "{}", T2)],
    "approvals": [("op-1", "odd run", "checker", "maybe later", "hm", "0", T2)],
}


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "in.db"
    build_runstore(path)
    db = apsw.Connection(str(path))
    for table, rows in ODD.items():
        db.executemany(f"insert into {table} values ({', '.join('?' for _ in rows[0])})", rows)
    db.close()
    return path


@pytest.fixture
def written(tmp_path: Path) -> Path:
    return tmp_path / "out.db"


@on_both
def test_a_file_that_was_imported_is_written_back_row_by_row(log: Decklog, source: Path, written: Path) -> None:
    RunStoreImport(log, str(source)).run()

    result = RunStoreExport(log, str(written)).run()

    before, after = rows_of(source, TABLES), rows_of(written, TABLES)
    for table in TABLES:
        assert after[table] == before[table], table
    assert result["tables"] == {table: len(rows) for table, rows in before.items()}
    assert (result["refused"], result["left_out"]) == ([], {})


def test_times_are_spelled_as_its_program_spells_them(log: Decklog, source: Path, written: Path) -> None:
    RunStoreImport(log, str(source)).run()

    RunStoreExport(log, str(written)).run()

    assert execute(written, "select created_at, updated_at from runs where id = 'r-1'") == [(T0, T2)]


def test_what_was_written_is_imported_as_the_same_records(log: Decklog, source: Path, written: Path, tmp_path: Path) -> None:
    RunStoreImport(log, str(source)).run()
    RunStoreExport(log, str(written)).run()

    with Decklog.open(tmp_path / "again.db", clock=ManualClock(), durability="relaxed") as again:
        RunStoreImport(again, str(written)).run()
        heads = again.journal.heads()
        RunStoreImport(again, str(written)).run()

        assert again.journal.heads() == heads
        assert records_of(again) == records_of(log)
        assert said_in(again) == said_in(log)


def test_what_happened_here_since_is_what_is_written(log: Decklog, source: Path, written: Path) -> None:
    RunStoreImport(log, str(source)).run()
    log.journal.append("r-1", "new here", kind="event", subtype="note", agent="checker")
    log.runs.update("r-3", status="paused")
    log.tasks.resume("t-2")
    claim = log.tasks.claim("r-1", worker="w")
    log.tasks.finish(claim.task.id, fence=claim.fence, summary="cached", result={"hits": 3})

    RunStoreExport(log, str(written)).run()

    rows = rows_of(written, TABLES)
    assert {row["id"]: row["status"] for row in rows["runs"]}["r-3"] == "paused"
    assert {row["id"]: row["status"] for row in rows["tasks"]}["t-2"] == "completed"
    (attempt,) = [row for row in rows["task_attempts"] if row["task_id"] == "t-2"]
    assert (attempt["status"], attempt["summary"], attempt["result_json"]) == ("completed", "cached", {"hits": 3})
    (event,) = [row for row in rows["events"] if row["message"] == "new here"]
    assert event["id"] == 72, "it comes after all that had a number"


def test_two_files_that_used_the_same_numbers_both_go_along(log: Decklog, source: Path, written: Path, tmp_path: Path) -> None:
    RunStoreImport(log, str(source)).run()
    other = apsw.Connection(str(tmp_path / "other.db"))
    for table, columns in TABLES.items():
        other.execute(f"create table {table} ({', '.join(columns)})")
    other.execute(f"insert into runs values ('r-9', 'Other', '/', 'planning', null, 0, 0, null, '{T0}', '{T0}')")
    other.execute(f"insert into events values (1, 'r-9', '{T0}', 'system', 'note', 'also the first', '{{}}')")
    other.close()
    RunStoreImport(log, str(tmp_path / "other.db")).run()

    result = RunStoreExport(log, str(written)).run()

    assert result["refused"] == []
    events = rows_of(written, ["events"])["events"]
    assert [row["id"] for row in events if row["message"] == "also the first"] == [72]


def _own(log: Decklog, clock: ManualClock) -> None:
    """Write what Decklog's own verbs write, with every state that a task can be in."""
    log.runs.start("Make it faster", run_id="run_1", repo="/srv/app", branch="main", mode="parallel")
    log.groups.add("run_1", "G1", name="Parser")
    log.runs.record_agent("run_1", "implementation", session="s", turns=3)
    for name in ("done", "failed", "blocked", "parked", "paused", "abandoned", "running", "pending"):
        log.tasks.add("run_1", name.title(), task_id=name, objective="do it", acceptance=["works"], priority=60)
        clock.advance(milliseconds=1.5)
    for name in ("done", "failed", "blocked", "parked", "paused", "abandoned", "running"):
        fence = log.tasks.claim("run_1", worker="w").fence
        clock.advance(seconds=1)
        _end(log, name, fence)
    log.journal.append("run_1", "thinking", kind="reasoning", agent="strategy", phase="approach", task_id="done")
    log.journal.append("run_1", kind="tool", subtype="bash", payload={"args": ["ls"]})
    log.artifacts.add("run_1", "report", "out/report.md", content="fine", role="checker")
    log.states.checkpoint("run_1", name="halfway", payload={"step": 2})
    log.approvals.ask("run_1", "Ship it?", by="strategy", about="v1", asked_of="ana", approval_id="open")
    log.approvals.ask("run_1", "Ship it now?", by="strategy", about="v2", asked_of="ana", approval_id="given")
    log.approvals.decide("given", "granted", by="ana", rationale="looks right")
    log.journal.append("@desk", "of no run", kind="event")


def _end(log: Decklog, name: str, fence: int) -> None:
    match name:
        case "done":
            log.tasks.finish(name, fence=fence, summary="did it", result={"exit": 0})
        case "failed":
            log.tasks.fail(name, fence=fence, summary="tests fail", retry_after_seconds=3600)
        case "blocked":
            log.tasks.block(name, fence=fence, blocker="no-network", summary="offline")
        case "parked":
            log.tasks.park(name, fence=fence, reason="waits for CI")
        case "paused":
            log.tasks.pause(name, reason="lunch")
        case "abandoned":
            log.tasks.abandon(name, reason="not needed")


def test_a_log_of_our_own_has_only_lawful_words_there(log: Decklog, clock: ManualClock, written: Path) -> None:
    _own(log, clock)

    RunStoreExport(log, str(written)).run()

    rows = rows_of(written, TABLES)
    lawful = {"pending", "in_progress", "completed", "blocked", "abandoned"}
    statuses = {row["id"]: row["status"] for row in rows["tasks"]}
    assert set(statuses.values()) <= lawful
    assert (statuses["running"], statuses["paused"], statuses["parked"]) == ("in_progress", "in_progress", "blocked")
    assert {row["task_id"]: row["status"] for row in rows["task_attempts"]} == {
        "done": "completed",
        "failed": "failed",
        "blocked": "blocked",
        "parked": "parked",
        "paused": "paused",
        "abandoned": "abandoned",
    }
    assert [(row["source"], row["verdict"], row["rationale"]) for row in rows["approvals"]] == [("ana", "granted", "looks right")]
    assert [(row["status"], row["payload_json"]) for row in rows["checkpoints"]] == [("halfway", {"step": 2})]
    assert {row["kind"] for row in rows["events"]} == {"reasoning", "bash"}


def test_every_value_is_there_that_its_program_parses(log: Decklog, clock: ManualClock, written: Path) -> None:
    _own(log, clock)

    RunStoreExport(log, str(written)).run()

    db = apsw.Connection(str(written))
    for table, columns in TABLES.items():
        for name in (name for name in columns if name.endswith("_json")):
            assert [json.loads(text) for (text,) in db.execute(f"select {name} from {table}")], (table, name)
    db.close()


def test_what_has_no_place_is_reported(log: Decklog, clock: ManualClock, written: Path) -> None:
    _own(log, clock)

    left_out = RunStoreExport(log, str(written)).run()["left_out"]

    expected = {
        "runs.branch": 1,
        "runs.mode": 1,
        "groups": 1,
        "tasks.priority": 8,
        "entries.phase": 1,
        "approvals without a verdict": 1,
        "entries of no run": 1,
        "artifacts.digest": 1,
    }
    assert {name: left_out.get(name) for name in expected} == expected


def test_a_log_of_our_own_comes_back(log: Decklog, clock: ManualClock, written: Path, tmp_path: Path) -> None:
    _own(log, clock)
    RunStoreExport(log, str(written)).run()

    with Decklog.open(tmp_path / "again.db", clock=clock, durability="relaxed") as again:
        RunStoreImport(again, str(written)).run()
        heads = again.journal.heads()
        RunStoreImport(again, str(written)).run()
        RunStoreExport(again, str(tmp_path / "second.db")).run()

        assert again.journal.heads() == heads
        assert again.tasks.get("done").created_at == log.tasks.get("done").created_at
        assert again.tasks.attempts("done")[0].result == {"exit": 0}
        assert again.tasks.get("paused").state == "paused"
    assert rows_of(written, TABLES) == rows_of(tmp_path / "second.db", TABLES)


def test_the_file_is_what_its_program_makes(log: Decklog, written: Path) -> None:
    RunStoreExport(log, str(written)).run()

    assert settings_of(written) == ("wal", 0, "ok")
    assert {table: tuple(schema_of(written, table)) for table in TABLES} == TABLES
    assert schema_of(written, "runs")["cycle_count"] == ("INTEGER", True, "0", False)
    assert schema_of(written, "tasks")["blocker_signature"] == ("TEXT", False, None, False)
    assert [name for name, column in schema_of(written, "agents").items() if column[3]] == ["run_id", "role"]
    assert stat.S_IMODE(written.stat().st_mode) == 0o600


def test_an_entry_that_only_looks_like_an_imports_does_no_harm(log: Decklog, run_id: str, written: Path) -> None:
    forged = {"system": "runstore", "table": 'x"; drop table runs; --', "id": 1, "row": {"id": 1}}
    for payload in (forged, {"system": "runstore"}, {}):
        log.journal.append(run_id, kind="event", subtype="imported.row", payload=payload)
        log.journal.append(run_id, kind="event", subtype="imported.columns", payload=payload)
        log.journal.append(run_id, kind="event", subtype="imported", payload={**payload, "table": "task_attempts"})

    result = RunStoreExport(log, str(written)).run()

    assert result["tables"] == {"runs": 1}
