"""Changes behind Decklog's back are found by verify, which names the place."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Protocol

import apsw
import pytest

from decklog import Decklog, Invalid, NotFound, Record
from decklog.journal.verify import Verification
from tests.conftest import ENGINES
from tests.db.tampering import PostgresVictim, SqliteVictim, database_for
from tests.stores.claiming import claimed

ENTRY_COLUMNS = [
    *("pos", "stream", "seq", "at", "hash", "kind", "subtype", "agent", "agent_id", "group_id", "task_id", "iteration", "phase"),
    *("confidence", "redacted", "key", "record_table", "record_id", "refs", "body_digest", "payload_digest", "body", "payload"),
]
NUMBERS = {"pos", "seq", "iteration", "redacted"}
FIRST, FULL, SPARE, LAST = 1, 2, 3, 12  # the second has every field, the third hardly any


def fill(target: str) -> None:
    """Write a small log with something of everything."""
    secret = "ghp_" + "Ab1" * 12
    with Decklog.open(target) as log:
        log.runs.start("a log to be tampered with", run_id="run_1")
        log.journal.append(
            "run_1",
            f"all fields, and {secret}",
            kind="reasoning",
            subtype="plan",
            agent="developer",
            agent_id="d1",
            group_id="A",
            task_id="task_x",
            iteration=4,
            payload={"a": 1},
            phase="approach",
            confidence="high",
            refs=["a.py"],
            key="k",
        )
        log.journal.append("run_1", "hardly any")
        log.journal.append("run_1", "long " * 20_000, kind="tool")
        log.runs.update(
            "run_1", summary="half way", metadata={"x": 1}, repo="r", branch="b", worktree="w", current_task_id="task_1"
        )
        log.runs.record_agent(
            "run_1", "developer", session="s", turns=1, rotations=1, last_prompt_path="p", last_response_path="q"
        )
        log.tasks.add("run_1", "first", task_id="task_1")
        log.tasks.add("run_1", "second", task_id="task_2", depends_on=["task_1"])
        claim = claimed(log, "run_1", worker="w")
        claim.finish("done", {"ok": True})
        log.runs.start("another", run_id="run_2")
        log.journal.append("run_2", "elsewhere")


class Victim(Protocol):
    def change(self, *statements: str) -> int: ...
    def verify(self, **how: Any) -> Verification: ...


TABLES = ("streams", "entries", "blobs", "runs", "agents", "tasks", "dependencies")


@pytest.fixture(scope="module")
def sqlite_original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("original") / "decklog.db"
    fill(str(path))
    return path


@pytest.fixture(scope="module")
def postgres_original(postgres_template: str) -> Iterator[PostgresVictim]:
    """One database whose tables are put back after each test; copying a whole database is much slower."""
    import psycopg

    url = database_for(postgres_template, "tampering")
    fill(url)
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("create schema kept")
        for table in TABLES:
            connection.execute(f"create table kept.{table} as table {table}".encode())
    with Decklog.open(url) as log, psycopg.connect(url, autocommit=True) as connection:
        yield PostgresVictim(url, log, connection)


@pytest.fixture(params=ENGINES)
def victim(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Victim]:
    if request.param == "sqlite":
        shutil.copy(request.getfixturevalue("sqlite_original"), tmp_path / "decklog.db")
        yield SqliteVictim(str(tmp_path / "decklog.db"))
        return
    original: PostgresVictim = request.getfixturevalue("postgres_original")
    yield original
    # Row by row: to truncate one of them means to truncate every table that refers to it.
    original.change(*(f"delete from {table}" for table in TABLES))
    original.change(*(f"insert into {table} select * from kept.{table}" for table in TABLES))


def other(column: str, is_number: bool) -> str:
    """Write an expression for another value, one byte away where there is one."""
    if is_number:
        return f"coalesce({column}, 0) + 1"
    return f"case when {column} is null or {column} = '' then 'x' else substr({column}, 1, length({column}) - 1) || '~' end"


def test_intact_log_is_verified(victim: Victim) -> None:
    result = victim.verify()
    assert result.ok, result.problems
    assert (result.streams, result.entries, result.records) == (2, LAST + 2, 6)


def every_column_of_every_entry() -> list[Any]:
    """Pair each column with each entry, and both with both engines: entries are walked by the same code on either."""
    entries = (FIRST, FULL, SPARE, LAST)
    pairs = [(number + place, column, seq) for number, column in enumerate(ENTRY_COLUMNS) for place, seq in enumerate(entries)]
    return [pytest.param(ENGINES[turn % 2], column, seq, id=f"{ENGINES[turn % 2]}-{column}-{seq}") for turn, column, seq in pairs]


@pytest.mark.parametrize(("victim", "column", "seq"), every_column_of_every_entry(), indirect=["victim"])
def test_any_changed_column_of_an_entry_is_found(victim: Victim, column: str, seq: int) -> None:
    new = "pos + 1000" if column == "pos" else other(column, column in NUMBERS)
    if column == "hash" and isinstance(victim, SqliteVictim):
        column, new = "hash_bytes", "unhex(substr(hash, 1, 62) || case substr(hash, 63) when '00' then '01' else '00' end)"
    assert victim.change(f"update entries set {column} = {new} where stream = 'run_1' and seq = {seq}") == 1
    result = victim.verify()
    assert not result.ok
    assert any(problem.stream == "run_1" and problem.seq in (seq, seq + 1, seq + 1000) for problem in result.problems), (
        result.problems
    )


AGENT = "role, session, turns, rotations, updated_at"
# Statements, each with the place of the first problem and a part of its message.
CHANGES = [
    *(
        (f"update entries set {column} = null where stream = 'run_1' and seq = {FULL}", {"stream": "run_1", "seq": FULL}, "")
        for column in ("subtype", "agent", "iteration", "phase", "refs", "key", "body", "payload")
    ),
    *(
        (f"delete from entries where stream = 'run_1' and seq = {seq}", {"stream": "run_1", "seq": seq}, "missing")
        for seq in (1, 2, 7)
    ),
    (
        f"insert into agents (run_id, {AGENT}) select run_id, 'ghost', session, 0, 0, updated_at from agents",
        {"table": "agents", "record_id": '["run_1","ghost"]'},
        "is in no entry",
    ),
    ("update streams set name = 'run_3' where name = 'run_2'", {"record_id": "run_3", "column": "name"}, "run_2"),
    ("update streams set created_at = '2025-01-01T00:00:00.000000Z'", {"record_id": "run_1", "column": "created_at"}, "begun"),
    ("update streams set in_order = 0", {"record_id": "run_1", "column": "in_order"}, "not to be in order"),
    (
        "insert into streams (no, name, created_at, in_order) values (77, 'ghost', '2026-01-01T00:00:00.000000Z', 1)",
        {"table": "streams", "record_id": "ghost"},
        "entry",
    ),
]


@pytest.mark.parametrize(("statement", "where", "message"), CHANGES)
def test_a_change_is_found_and_named(victim: Victim, statement: str, where: dict[str, object], message: str) -> None:
    assert victim.change(statement) >= 1
    first = victim.verify().first
    assert first is not None
    assert vars(first).items() >= where.items()
    assert message in first.what


def test_unreadable_post_images_are_a_finding_not_a_crash(victim: Victim) -> None:
    for image in ("'x'", "null", "'[]'", "'{}'"):
        victim.change(f"update entries set payload = {image} where record_table = 'runs'")
        result = victim.verify()
        assert any(problem.table == "runs" and problem.record_id == "run_1" for problem in result.problems)


def row_columns() -> list[Any]:
    """Pair each column with one of the engines: rows are held against their entries by the same code on either."""
    from decklog.stores.runs.runs import Agent, Run
    from decklog.stores.tasks.task import Dependency, Task

    kinds: list[type[Record]] = [Run, Agent, Task, Dependency]
    columns = [(kind, column) for kind in kinds for column in kind.columns()]
    return [
        pytest.param(ENGINES[number % 2], kind, column, id=f"{ENGINES[number % 2]}-{kind.table}.{column}")
        for number, (kind, column) in enumerate(columns)
    ]


@pytest.mark.parametrize(("victim", "kind", "column"), row_columns(), indirect=["victim"])
def test_any_changed_column_of_a_row_is_found(victim: Victim, kind: type[Record], column: str) -> None:
    keys = {
        "runs": ("id = 'run_1'", "run_1"),
        "agents": ("role = 'developer'", '["run_1","developer"]'),
        "tasks": ("id = 'task_1'", "task_1"),
        "dependencies": ("task_id = 'task_2'", '["task_2","task_1"]'),
    }
    condition, record_id = keys[kind.table]
    number = str(kind.__dataclass_fields__[column].type).startswith(("<class 'int'", "int"))
    assert victim.change(f"update {kind.table} set {column} = {other(column, number)} where {condition}") == 1
    first = victim.verify().first
    assert first is not None
    assert (first.table, first.record_id) == (kind.table, record_id)
    assert column in first.what or "gone" in first.what


@pytest.mark.parametrize("table", ["runs", "agents", "tasks", "dependencies"])
def test_a_deleted_row_is_found(victim: Victim, table: str) -> None:
    victim.change(f"delete from {table}")
    problems = victim.verify().problems
    assert {problem.table for problem in problems} == {table}
    assert all("gone" in problem.what for problem in problems)


def test_row_moved_to_another_key_is_found_as_both(victim: Victim) -> None:
    victim.change("update agents set role = 'ghost'")
    found = {(problem.record_id, problem.what.split()[-1]) for problem in victim.verify().problems}
    assert found == {('["run_1","developer"]', "gone"), ('["run_1","ghost"]', "entry")}


@pytest.mark.parametrize(("stream", "entries"), [("run_1", LAST), ("run_2", 2)])
def test_a_removed_stream_does_not_hide_its_entries(victim: Victim, stream: str, entries: int) -> None:
    victim.change(f"delete from streams where name = '{stream}'")
    result = victim.verify()
    assert [(problem.stream, problem.seq) for problem in result.problems] == [(stream, seq + 1) for seq in range(entries)]


def test_stream_wrongly_marked_as_in_order_is_found(target: str) -> None:
    with Decklog.open(target) as log:
        log.runs.start("x", run_id="run_1")
        log.journal.append("run_1", "long ago", at=log.clock.now().replace(year=2001))
        with log.transaction():
            log.db.count("update streams set in_order = 1", {})
        first = log.journal.verify().first
    assert first is not None
    assert first.seq == 2


def test_a_changed_blob_is_found(victim: Victim) -> None:
    changed = "'\\x00'" if isinstance(victim, PostgresVictim) else "x'00'"
    victim.change(f"update blobs set bytes = {changed}")
    first = victim.verify().first
    assert first is not None
    assert first.table == "blobs"


def cut_off(victim: Victim) -> None:
    """Delete the last entry of a run, and have the head of its stream agree."""
    victim.change("delete from entries where stream = 'run_2' and seq = 2")
    if isinstance(victim, PostgresVictim):
        victim.log.db.write(victim.log.db.derive_heads)


@pytest.mark.slow
def test_a_cut_off_tail_shows_against_the_anchor(victim: Victim, tmp_path: Path) -> None:
    anchor = str(tmp_path / "anchors")
    assert victim.verify(anchor=anchor).ok
    assert victim.verify(anchor=anchor).anchored == 2
    cut_off(victim)
    assert victim.verify().ok, "without the anchor nothing is missing"
    first = victim.verify(anchor=anchor).first
    assert first is not None
    assert (first.stream, first.seq) == ("run_2", 2)
    assert not victim.verify(anchor=anchor).ok, "a failed check must not move the anchor"


def test_a_rewritten_tail_shows_against_the_anchor(victim: Victim, tmp_path: Path) -> None:
    anchor = str(tmp_path / "anchors")
    victim.verify(anchor=anchor)
    cut_off(victim)
    with Decklog.open(victim.path if isinstance(victim, SqliteVictim) else victim.url) as log:
        log.journal.append("run_2", "a more convenient truth")
    assert victim.verify().ok
    first = victim.verify(anchor=anchor).first
    assert first is not None
    assert (first.stream, first.seq) == ("run_2", 2)


@pytest.mark.slow
def test_invalid_anchor_is_refused(victim: Victim, tmp_path: Path) -> None:
    for content in ("nonsense\n", "{}\n", '{"stream": "run_1"}\n', "[]\n", '{"stream": "run_1", "seq": "x", "hash": 1}\n'):
        (tmp_path / "anchors").write_text(content)
        with pytest.raises(Invalid, match="not an anchor"):
            victim.verify(anchor=str(tmp_path / "anchors"))
    for place in (tmp_path, tmp_path / "nowhere" / "anchors"):
        with pytest.raises(Invalid, match="anchors"):
            victim.verify(anchor=str(place))


def test_one_stream_can_be_verified_alone(victim: Victim) -> None:
    victim.change("update entries set agent = 'x' where stream = 'run_2' and seq = 2")
    assert victim.verify(stream="run_1").ok
    assert not victim.verify(stream="run_2").ok
    with pytest.raises(NotFound):
        victim.verify(stream="run_3")


def test_the_records_of_one_stream_are_verified_with_it(victim: Victim) -> None:
    assert victim.verify(stream="run_1").records > 0
    victim.change("update agents set turns = turns + 1 where run_id = 'run_1'")
    first = victim.verify(stream="run_1").first
    assert first is not None
    assert "differs from its newest entry in turns" in first.what
    assert victim.verify(stream="run_2").ok


def test_unreadable_stream_does_not_stop_the_check_of_others(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    with Decklog.open(path) as log:
        for number in (1, 2, 3, 4):
            log.runs.start("goal", run_id=f"run_{number}")
            log.journal.append_many([{"stream": f"run_{number}", "body": "word " * 50} for _ in range(60)])
    SqliteVictim(str(path)).change("update entries set agent = 'x' where stream in ('run_1', 'run_3') and seq = 7")
    connection = apsw.Connection(str(path))
    pages = [page for (page,) in connection.execute("select pageno from dbstat where name = 'entries' and pagetype = 'leaf'")]
    connection.close()
    content = bytearray(path.read_bytes())
    ours = [page for page in pages if content.count(b"run_2", (page - 1) * 4096, page * 4096) > 5]
    content[(ours[2] - 1) * 4096 : ours[2] * 4096] = b"\x00" * 4096
    path.write_bytes(content)
    with Decklog.open(path) as log:
        found = log.journal.verify()
    places = [(problem.stream, problem.seq) for problem in found.problems if problem.stream]
    assert places[:3] == [("run_1", 7), ("run_2", None), ("run_3", 7)]
    assert not any(stream == "run_4" for stream, _ in places)


def test_key_changed_in_the_table_only_is_found(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    with Decklog.open(path) as log:
        log.runs.start("goal", run_id="run_1")
        for number in range(5):
            log.tasks.add("run_1", "work", task_id=f"task-number-{number}")
    connection = apsw.Connection(str(path))
    pages = [page for (page,) in connection.execute("select pageno from dbstat where name = 'tasks'")]
    connection.close()
    content = bytearray(path.read_bytes())
    for page in pages:
        at = content.find(b"task-number-3", (page - 1) * 4096, page * 4096)
        if at >= 0:
            content[at + 12] = ord("7")
    path.write_bytes(content)
    with Decklog.open(path) as log:
        found = log.journal.verify()
    assert not found.ok
    assert any("tasks" in problem.what for problem in found.problems)
