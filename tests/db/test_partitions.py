"""Entries in partitions by ranges of streams, on PostgreSQL."""

import psycopg
import pytest

from decklog import Conflict, Decklog
from tests.db import flat_logs
from tests.db.processes import together


def ranges(log: Decklog) -> list[tuple[int, int]]:
    return log.db.read(lambda: log.db.rows("select first_no, end_no from entry_ranges order by first_no", {})[1])


def table_of(log: Decklog, stream: str) -> set[str]:
    sql = "select distinct tableoid::regclass::text from entries where stream = :stream"
    return {name for (name,) in log.db.read(lambda: log.db.rows(sql, {"stream": stream})[1])}


def small_ranges(url: str, size: int = 4) -> None:
    """Have the ranges of a new log hold few streams."""
    with psycopg.connect(url) as connection:
        [(first,)] = connection.execute("select first_no from entry_ranges where first_no > 0").fetchall()
        for table in ("entries", "entry_text"):
            connection.execute(f"alter table {table} detach partition {table}_{first}".encode())
            connection.execute(f"drop table {table}_{first}".encode())
        connection.execute("delete from entry_ranges where first_no > 0")
        connection.execute("select add_entry_range(%s::bigint, %s::bigint)", (first, first + size))


@pytest.fixture
def small(postgres_url: str) -> str:
    small_ranges(postgres_url)
    return postgres_url


def test_a_new_log_is_partitioned_and_reserved_streams_are_in_the_first_partition(postgres_url: str) -> None:
    with Decklog.open(postgres_url) as log:
        log.runs.start("goal", run_id="run_1")
        log.inbox.post("ana", "Why so slow?", run_id="run_1")
        log.memory.remember("task_outcomes", "It went well", run_id="run_1")
        assert table_of(log, "@desk") == table_of(log, "@memory") == {"entries_0"}
        assert table_of(log, "run_1") == {f"entries_{ranges(log)[1][0]}"}
        assert log.journal.verify().ok


def test_new_partitions_are_made_before_they_are_needed(small: str) -> None:
    with Decklog.open(small) as log:
        for number in range(10):
            log.runs.start("goal", run_id=f"run_{number}")
            newest = log.db.read(lambda: log.db.one("select max(no) from streams", {}))
            assert newest is not None
            assert newest[0] + 1 < ranges(log)[-1][1]
        starts = ranges(log)
        assert [end - first for first, end in starts[1:]] == [4] * (len(starts) - 1)
        assert [end for _, end in starts[:-1]] == [first for first, _ in starts[1:]]
        assert len({name for number in range(10) for name in table_of(log, f"run_{number}")}) >= 3
        assert log.journal.verify().problems == []


@pytest.mark.slow
def test_processes_that_start_runs_at_once_make_each_partition_once(small: str) -> None:
    together("start_runs", 4, small, 12)
    with Decklog.open(small) as log:
        starts = ranges(log)
        assert [end for _, end in starts[:-1]] == [first for first, _ in starts[1:]]
        assert log.journal.verify().problems == []


def test_words_are_in_the_partition_of_their_range(small: str) -> None:
    with Decklog.open(small) as log:
        for number in range(10):
            log.runs.start("goal", run_id=f"run_{number}")
            log.journal.append(f"run_{number}", "a remark")
        log.journal.index()
        sql = "select entry_pos / 4294967296, tableoid::regclass::text from entry_text"
        tables = log.db.read(lambda: log.db.rows(sql, {})[1])
        starts = [first for first, _ in ranges(log)]
        for number, name in tables:
            assert name == f"entry_text_{max(first for first in starts if first <= number)}"
        assert len({name for _, name in tables}) >= 3
        assert len(log.journal.search("remark")) == 10
        assert [entry.stream for entry in log.journal.search("remark", stream="run_0")] == ["run_0"]
        assert log.journal.verify().problems == []


def test_a_key_counts_once_in_every_partition(small: str) -> None:
    with Decklog.open(small) as log:
        for number in range(10):
            log.runs.start("goal", run_id=f"run_{number}")
            first = log.journal.append(f"run_{number}", "text", key="k")
            assert log.journal.append(f"run_{number}", "text", key="k").seq == first.seq
        entry = log.db.read(lambda: log.db.rows("select * from entries where stream = 'run_9' and key = 'k'", {}))
        names, [row] = entry
        again = {**dict(zip(names, row, strict=True)), "pos": row[0] + 9, "seq": row[names.index("seq")] + 9}
        with pytest.raises(Conflict):
            log.db.write(lambda: log.db.insert("entries", tuple(again), [tuple(again.values())]))


@pytest.mark.slow
@pytest.mark.parametrize("statement", ["delete from {}", "truncate {}", "update {} set body = 'x'"])
def test_entries_of_a_partition_are_never_changed_or_deleted(small: str, statement: str) -> None:
    with Decklog.open(small) as log:
        for number in range(6):
            log.runs.start("goal", run_id=f"run_{number}")
        tables = {"entries", *table_of(log, "run_0"), *table_of(log, "run_5")}
        assert len(tables) == 3
        for table in tables:
            with psycopg.connect(small) as connection, pytest.raises(psycopg.errors.RaiseException):
                connection.execute(statement.format(table).encode())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "named"),
    [
        ("drop trigger entries_never_go_at_once on {leaf}", "trigger entries_never_go_at_once"),
        ("drop index {leaf}_by_key", "index {leaf}_by_key"),
        ("alter table {leaf} drop constraint entries_sound", "constraint entries_sound"),
        ("alter table entries detach partition {leaf}", "partition {leaf}"),
        ("drop index entry_text_by_word", "index entry_text_by_word"),
        ("alter table entry_text detach partition entry_text_{first}", "partition entry_text_{first}"),
        ("alter table entry_text_{first} add constraint more check (entry_pos > 0)", "constraint more of entry_text_{first}"),
        ("update entry_ranges set end_no = end_no + 1 where first_no = {first}", "partition {leaf}"),
    ],
)
def test_verify_finds_a_partition_that_was_changed(small: str, change: str, named: str) -> None:
    with Decklog.open(small) as log:
        for number in range(6):
            log.runs.start("goal", run_id=f"run_{number}")
        [leaf] = table_of(log, "run_5")
        first = leaf.removeprefix("entries_")
        with psycopg.connect(small) as connection:
            if "drop constraint" in change:
                connection.execute("alter table entries drop constraint entries_sound")
                named = "constraint entries_sound of entries"
            else:
                connection.execute(change.format(leaf=leaf, first=first).encode())
        assert any(named.format(leaf=leaf, first=first) in problem.what for problem in log.journal.verify().problems)


# Migrating a log whose entries are in one table


def entries_of(url: str) -> list[tuple[object, ...]]:
    with psycopg.connect(url) as connection:
        return connection.execute("select stream, seq, hash from entries order by stream, seq").fetchall()


@pytest.mark.slow
def test_a_flat_log_becomes_the_first_partition_and_new_runs_go_to_the_next(empty_postgres_url: str) -> None:
    flat_logs.fill(empty_postgres_url)
    with Decklog.open(empty_postgres_url) as log:
        log.journal.index()
    flat_logs.flatten(empty_postgres_url)
    before = entries_of(empty_postgres_url)
    with Decklog.open(empty_postgres_url, migrate=True) as log:
        assert entries_of(empty_postgres_url) == before
        assert len(log.journal.search("entry 3", stream="old_1")) == 1
        assert log.journal.verify().problems == []
        log.runs.start("goal", run_id="new")
        log.memory.remember("task_outcomes", "It went well", run_id="new")
        log.journal.append("old_0", "still active")
        assert table_of(log, "old_0") == table_of(log, "@memory") == {"entries_0"}
        assert table_of(log, "new") == {f"entries_{ranges(log)[1][0]}"}
        assert log.journal.append("old_1", "entry 3", key="k3").already
        assert log.journal.verify().problems == []


@pytest.mark.slow
def test_a_flat_log_takes_entries_while_its_partition_is_prepared(empty_postgres_url: str) -> None:
    flat_logs.fill(empty_postgres_url)
    flat_logs.flatten(empty_postgres_url)
    with psycopg.connect(empty_postgres_url, autocommit=True) as connection:
        # The first of the two steps that are taken while others write.
        connection.execute("alter table entries add constraint entries_before_5000 check (pos < 5000 * 4294967296) not valid")
        with psycopg.connect(empty_postgres_url) as writer:
            writer.execute("update streams set in_order = 1 where name = 'old_0'")
            writer.execute("insert into entries select * from entries where false")
            connection.execute("set lock_timeout = '2s'")
            connection.execute("alter table entries validate constraint entries_before_5000")
    with Decklog.open(empty_postgres_url, migrate=True) as log:
        assert ranges(log)[0] == (0, 5000)
        assert log.journal.verify().problems == []
