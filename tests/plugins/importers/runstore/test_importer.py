"""A RunStore database is taken over whole, once."""

from pathlib import Path

import apsw
import pytest

from decklog import Decklog
from decklog.importing.report import Outcome
from decklog.plugins.importers.runstore.export import RunStoreExport
from decklog.plugins.importers.runstore.importer import RunStoreImport
from tests.conftest import on_both
from tests.plugins.importers import claims
from tests.plugins.importers.other_files import T1, build_runstore


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "runs.db"


@on_both
def test_everything_arrives_and_a_second_import_changes_nothing(log: Decklog, file: Path) -> None:
    counts = build_runstore(file)

    report = claims.check_whole(log, lambda log: RunStoreImport(log, str(file)).run(), counts)

    assert {table: found["kept"] for table, found in report.tables.items() if found["kept"]} == {"task_attempts": 1, "events": 1}


@on_both
def test_what_the_file_says_is_what_the_log_says(log: Decklog, file: Path) -> None:
    build_runstore(file)

    RunStoreImport(log, str(file)).run()

    run = log.runs.get("r-1")
    assert (run.goal, run.repo, run.cycles, run.replans, run.current_task_id) == ("Ship it", "/srv/app", 3, 1, "t-2")
    assert log.runs.get("r-2").ended_at is not None
    assert log.runs.get("r-3").status == "active"
    assert [(agent.role, agent.turns) for agent in log.runs.agents("r-1")] == [("checker", 0), ("strategy", 4)]
    done = log.tasks.get("t-1")
    assert (done.state, done.summary, done.acceptance, done.attempts) == ("done", "did it", ["works"], 2)
    assert log.tasks.get("t-3").blocker == "no-network"
    said = [entry.body for entry in log.journal.find("r-1", oldest_first=True, limit=100) if entry.agent in ("system", "checker")]
    assert said == ["Run created.", "second at the same time"]
    assert log.artifacts.get("f-1").metadata == {"lines": 3}
    assert log.states.get_checkpoint("c-1").payload == {"step": 2}
    approval = log.approvals.get("p-1")
    assert (approval.verdict, approval.state, approval.rationale) == ("approve", "granted", "looks right")


def test_attempts_are_the_history_of_their_task(log: Decklog, file: Path) -> None:
    build_runstore(file)

    RunStoreImport(log, str(file)).run()

    attempts = log.tasks.attempts("t-1")
    assert [(one.number, one.outcome, one.summary, one.result) for one in attempts] == [
        (1, "failed", "tests fail", {"exit": 1}),
        (2, "done", "fixed", {"exit": 0}),
    ]
    assert attempts[0].blocker == "E1"


def test_a_task_in_progress_waits_until_someone_resumes_it(log: Decklog, file: Path) -> None:
    build_runstore(file)

    RunStoreImport(log, str(file)).run()

    task = log.tasks.get("t-2")
    assert task.state == "paused"
    assert "in progress" in task.reason
    assert log.tasks.claim("r-1", worker="w").task.id == "t-4"


def test_a_plans_tasks_keep_the_order_of_their_rows_though_all_have_one_time(log: Decklog, file: Path, tmp_path: Path) -> None:
    build_runstore(file)
    names = [f"{(number * 7919) % 100_003:05x}" for number in range(20)]
    db = apsw.Connection(str(file))
    db.execute("delete from tasks")
    for name in names:
        row = (name, "r-1", name, "do", "[]", "[]", "[]", "pending", 0, None, None, T1, T1)
        db.execute(f"insert into tasks values ({', '.join('?' for _ in row)})", row)
    db.close()

    RunStoreImport(log, str(file)).run()
    RunStoreImport(log, str(file)).run()
    RunStoreExport(log, str(tmp_path / "out.db")).run()
    written = apsw.Connection(str(tmp_path / "out.db"))
    found = list(written.execute("select id, created_at, updated_at from tasks order by created_at"))
    written.close()
    claimed = [log.tasks.claim("r-1", worker="w").task.id for _ in names]

    assert claimed == names
    assert found == [(name, T1, T1) for name in names]


def test_a_later_attempt_is_added_to_the_history(log: Decklog, file: Path) -> None:
    build_runstore(file)
    RunStoreImport(log, str(file)).run()
    db = apsw.Connection(str(file))
    db.execute(
        "insert into task_attempts values ('a-9', 'r-1', 't-3', 2, 'completed', 'online', null, '{}', '2026-02-02T08:00:00Z')"
    )
    db.execute("update tasks set status = 'completed', updated_at = '2026-02-02T08:00:00Z' where id = 't-3'")
    db.close()

    report = RunStoreImport(log, str(file)).run()

    assert (report.total(Outcome.NEW), report.total(Outcome.CHANGED)) == (1, 1)
    assert [one.outcome for one in log.tasks.attempts("t-3")] == ["blocked", "done"]
    assert log.tasks.get("t-3").state == "done"
