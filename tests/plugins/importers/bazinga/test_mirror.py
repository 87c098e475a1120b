"""The file that bazinga's readers open follows the log, whatever happens in between."""

import json
import os
import subprocess
import sys
import threading
from datetime import timedelta
from pathlib import Path

import apsw
import pytest

from decklog import Decklog
from decklog.plugins.bazinga_project import log_path_for
from decklog.plugins.importers.bazinga.importer import TABLES
from decklog.plugins.importers.bazinga.take_over import TakeOver
from decklog.plugins.legacy.bazinga import BazingaDB
from decklog.plugins.legacy.bazinga.base import DatabaseInitError
from decklog.transfer.prune import Prune
from tests.plugins.importers.bazinga.bazinga_files import build
from tests.plugins.importers.bazinga.recorded_calls import MORE
from tests.plugins.legacy.bazinga.conftest import WORLD
from tests.plugins.legacy.bazinga.shell import Shell

LATER = (
    ("update-task-group", "A", "s", "--status", "completed", "--revision_count", "2"),
    ("save-state", "s", "pm", '{"phase": 2}'),
    ("update-plan-progress", "s", "Lexer", "completed", "100"),
    ("save-success-criteria", "s", '[{"criterion": "Tests pass", "status": "met"}, {"criterion": "It is fast"}]'),
    ("mark-context-consumed", "1", "developer", "2"),
    ("save-consumption", "s", "A", "developer", "1", "1"),
    ("save-error-pattern", "p", "TypeError", "line 12: 'x' in /a/b/c.py", "Cast it with care", "--lang", "python"),
    ("update-strategy-helpfulness", "st-1", "4"),
    ("create-session", "t", "simple", "Another"),
    ("log-interaction", "t", "developer", "in between"),
    ("log-interaction", "s", "developer", "and after"),
    ("update-session-status", "s", "failed"),
)


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    for folder in (".claude", "bazinga/artifacts/s"):
        (tmp_path / folder).mkdir(parents=True)
    return Shell(tmp_path)


def rows(path: str, *tables: str) -> dict[str, list[tuple[object, ...]]]:
    db = apsw.Connection(path, flags=apsw.SQLITE_OPEN_READONLY)
    try:
        names = {table: ", ".join(TABLES[table]) for table in tables or list(TABLES)[:-2]}
        return {table: db.execute(f"select {columns} from {table} order by 1, 2").fetchall() for table, columns in names.items()}
    finally:
        db.close()


def contents(path: str) -> list[object]:
    return [content for (content,) in _column(path, "select content from orchestration_logs order by id")]


def _column(path: str, sql: str) -> list[tuple[object, ...]]:
    db = apsw.Connection(path, flags=apsw.SQLITE_OPEN_READONLY)
    try:
        return db.execute(sql).fetchall()
    finally:
        db.close()


@pytest.mark.slow
def test_a_file_that_followed_call_by_call_is_the_one_that_is_made_of_the_whole_log(shell: Shell) -> None:
    for words in (*WORLD, *LATER):
        shell.ok(*words)
    followed = rows(shell.db)
    for ending in ("", "-wal", "-shm"):
        Path(shell.db + ending).unlink(missing_ok=True)

    shell.ok("list-sessions")

    made = rows(shell.db)
    assert [table for table in made if _said(table, made[table]) != _said(table, followed[table])] == []
    assert [table for table in made if not made[table]] == []


def _said(table: str, found: list[tuple[object, ...]]) -> list[list[object]]:
    """Read JSON as what it says; where a row is known by other columns, its id may be another one in a file that is made anew."""
    told = [[json.loads(value) if isinstance(value, str) and value[:1] in "[{" else value for value in row] for row in found]
    return sorted((row[1:] for row in told), key=str) if table in ("state_snapshots", "success_criteria") else told


def test_a_project_that_was_taken_over_is_followed_too(tmp_path: Path) -> None:
    file = tmp_path / "bazinga/bazinga.db"
    file.parent.mkdir()
    build(file, 19, more=MORE)
    before = rows(str(file), "sessions", "orchestration_logs", "token_usage")
    TakeOver(str(tmp_path)).run()
    shell = Shell(tmp_path)
    shell.ok("log-interaction", "bazinga_2", "pm", "going on")
    shell.ok("update-session-status", "bazinga_2", "completed")
    shell.ok("mark-context-consumed", "1", "qa_expert", "3")

    after = rows(str(file), *before)
    assert after["token_usage"] == before["token_usage"]
    assert after["orchestration_logs"][-1][6] == "going on"
    assert [row[0] for row in after["orchestration_logs"][:-1]] == [row[0] for row in before["orchestration_logs"]]
    assert [row[:2] for row in after["sessions"]] == [row[:2] for row in before["sessions"]]
    assert {row[0]: row[5] for row in after["sessions"]}["bazinga_2"] == "completed"
    assert [row[4] for row in rows(str(file))["context_package_consumers"] if row[2] == "qa_expert"] == [3]


def test_what_others_wrote_to_the_log_is_there_after_the_next_call(shell: Shell) -> None:
    shell.ok("create-session", "s", "simple", "Read")
    with Decklog.open(shell.log) as log:
        log.journal.append("s", "written past bazinga", agent="pm")
    assert contents(shell.db) == []

    shell.ok("get-session", "s")

    assert contents(shell.db) == ["written past bazinga"]


KILLED = """
import os, signal, sys
from decklog.plugins.legacy.bazinga import BazingaDB
from decklog.plugins.importers.bazinga import mirror
def die(*_):
    os.kill(os.getpid(), signal.SIGKILL)
with BazingaDB(sys.argv[1]) as database:
    if sys.argv[2] == "before":
        mirror.Mirror.follow = die
    else:
        mirror.set_marks = die
    database.log_interaction("s", "pm", "the last words")
"""


@pytest.mark.slow
@pytest.mark.parametrize("moment", ["before", "within"])
def test_a_call_that_is_killed_between_the_log_and_the_file_leaves_nothing_to_repair(shell: Shell, moment: str) -> None:
    shell.ok("create-session", "s", "simple", "Read")
    killed = subprocess.run([sys.executable, "-c", KILLED, shell.db, moment], timeout=120)
    assert killed.returncode == -9
    assert contents(shell.db) == []

    shell.ok("log-interaction", "s", "pm", "the next ones")

    assert contents(shell.db) == ["the last words", "the next ones"]


def test_calls_at_the_same_time_put_every_entry_into_the_file_once(shell: Shell) -> None:
    shell.ok("create-session", "s", "simple", "Read")

    def write(worker: int) -> None:
        with BazingaDB(shell.db) as database:
            for number in range(10):
                answer = database.log_interaction("s", "pm", f"{worker}:{number}")
                assert answer["success"], answer

    workers = [threading.Thread(target=write, args=(worker,)) for worker in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()

    assert sorted(map(str, contents(shell.db))) == sorted(f"{worker}:{number}" for worker in range(4) for number in range(10))


def test_a_damaged_file_is_made_anew(shell: Shell) -> None:
    shell.ok("create-session", "s", "simple", "Read")
    shell.ok("log-interaction", "s", "pm", "kept in the log")
    for ending in ("-wal", "-shm"):
        Path(shell.db + ending).unlink(missing_ok=True)
    Path(shell.db).write_bytes(b"no database at all, and longer than a page" * 200)

    shell.ok("get-session", "s")

    assert contents(shell.db) == ["kept in the log"]


def test_nobody_else_writes_to_the_file(shell: Shell) -> None:
    shell.ok("create-session", "s", "simple", "Read")
    db = apsw.Connection(shell.db)
    try:
        for sql in (
            "insert into strategies values (1, 1, 1, 1, 1, 1, 1, 1, 1)",
            "update sessions set mode = null",
            "delete from sessions",
        ):
            with pytest.raises(apsw.ConstraintError, match="Write with bazinga-db"):
                db.execute(sql)
    finally:
        db.close()


def test_a_file_of_bazinga_itself_beside_a_log_is_left_alone(shell: Shell) -> None:
    shell.ok("create-session", "s", "simple", "Read")
    for ending in ("", "-wal", "-shm"):
        Path(shell.db + ending).unlink(missing_ok=True)
    build(Path(shell.db), 19)
    before = Path(shell.db).read_bytes()

    with pytest.raises(DatabaseInitError, match="left as it is"):
        BazingaDB(shell.db)

    assert Path(shell.db).read_bytes() == before


def test_texts_that_were_dropped_from_the_log_are_dropped_from_the_file(shell: Shell) -> None:
    shell.ok("create-session", "s", "simple", "Read")
    shell.ok("log-interaction", "s", "pm", "of no more use")
    with Decklog.open(shell.log) as log:
        Prune(log, timedelta(0)).run(apply=True)

    shell.ok("get-session", "s")

    assert b"of no more use" not in b"".join(path.read_bytes() for path in Path(shell.db).parent.glob("bazinga.db*"))


def test_a_log_that_was_put_back_to_an_earlier_state_is_followed_from_there(shell: Shell) -> None:
    shell.ok("create-session", "s", "simple", "Read")
    earlier = Path(shell.log).read_bytes()
    shell.ok("log-interaction", "s", "pm", "never happened")
    for ending in ("-wal", "-shm"):
        Path(shell.log + ending).unlink(missing_ok=True)
    Path(shell.log).write_bytes(earlier)

    shell.ok("log-interaction", "s", "pm", "happened instead")

    assert contents(shell.db) == ["happened instead"]


def test_a_take_over_that_ended_between_the_log_and_the_file_is_finished_by_the_next(tmp_path: Path) -> None:
    file = tmp_path / "bazinga/bazinga.db"
    file.parent.mkdir()
    build(file, 19)
    taken = TakeOver(str(tmp_path)).run()
    os.unlink(file)
    os.link(taken["kept"], file)

    assert TakeOver(str(tmp_path)).run()["already"] is True

    assert "first" in contents(str(file))
    assert os.path.exists(log_path_for(str(file)))


def test_a_file_that_can_not_be_written_does_not_keep_agents_from_their_work(shell: Shell) -> None:
    shell.ok("create-session", "s", "simple", "Read")
    for ending in ("", "-wal", "-shm"):
        Path(shell.db + ending).unlink(missing_ok=True)
    Path(shell.db).mkdir()

    answer = shell.call("log-interaction", "s", "pm", "written all the same")

    assert (answer.code, answer.json["success"], answer.json["log_id"]) == (0, True, None)
    assert "is behind the log" in answer.err
    Path(shell.db).rmdir()
    shell.ok("get-session", "s")
    assert contents(shell.db) == ["written all the same"]
