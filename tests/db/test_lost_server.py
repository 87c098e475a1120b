"""PostgreSQL that goes away: safe work is retried, other work raises an error, and nothing hangs."""

import logging
import os
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from decklog import Decklog
from decklog.core.errors import Busy, OutcomeUnknown, SchemaTooNew, Unreachable
from decklog.db.postgres import session
from decklog.journal.verify import Verifier
from tests.db.processes import alone, read_line, start
from tests.stores.claiming import claimed


@pytest.fixture
def log(postgres_url: str) -> Iterator[Decklog]:
    with Decklog.open(postgres_url, busy_seconds=2) as log:
        log.runs.start("x", run_id="run_1")
        yield log


def bodies(log: Decklog) -> list[str | None]:
    """List what was appended to the run, newest first."""
    return [entry.body for entry in log.journal.find("run_1", kind="interaction")]


def end_connections(url: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        others = "pid <> pg_backend_pid() and datname = current_database()"
        connection.execute(f"select pg_terminate_backend(pid) from pg_stat_activity where {others}".encode())
    time.sleep(0.1)


@pytest.mark.slow
def test_connections_lost_while_idle_fail_no_call(log: Decklog, postgres_url: str) -> None:
    ready = threading.Barrier(8)

    def use() -> None:
        log.db.read(lambda: (log.db.one("select 1", {}), ready.wait(10)))

    threads = [threading.Thread(target=use) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    end_connections(postgres_url)
    assert log.journal.append("run_1", "after").body == "after"
    assert log.runs.get("run_1").id == "run_1"
    with log.transaction():
        log.journal.append("run_1", "inside")


def test_write_is_retried_after_a_lost_connection(log: Decklog, postgres_url: str) -> None:
    tries = []

    def job() -> str | None:
        tries.append(1)
        entry = log.journal.append("run_1", f"try {len(tries)}")
        if len(tries) == 1:
            end_connections(postgres_url)
        log.runs.count_cycle("run_1")
        return entry.body

    # Each pooled connection that is gone costs one more try.
    assert log.db.write(job) == f"try {len(tries)}" != "try 1"
    assert bodies(log) == [f"try {len(tries)}"]


def test_read_is_retried_after_a_lost_connection(log: Decklog, postgres_url: str) -> None:
    tries = []

    def job() -> object:
        tries.append(log.db.one("select 1", {}))
        if len(tries) == 1:
            end_connections(postgres_url)
        return log.db.one("select 2", {})

    assert log.db.read(job) == (2,)


def test_long_read_is_retried_after_two_lost_connections(log: Decklog, postgres_url: str) -> None:
    connections = log.db.connections
    with connections.pool().connection():
        log.runs.get("run_1")  # on a second connection
    connections.busy_seconds = 0.1
    tries = []

    def job() -> object:
        tries.append(log.db.one("select 1", {}))
        if len(tries) == 1:
            time.sleep(0.2)
            end_connections(postgres_url)
        return log.db.one("select 2", {})

    assert log.db.read(job) == (2,)
    assert len(tries) == 2


@pytest.mark.slow
def test_verification_counts_everything_once_after_a_lost_connection(log: Decklog, postgres_url: str) -> None:
    tries = []

    def audit(_: object) -> Iterator[dict[str, str]]:
        tries.append(1)
        if len(tries) == 1:
            end_connections(postgres_url)
            log.db.one("select 1", {})
        yield {"what": "something is wrong"}

    found = Verifier(log.db, log.record_classes(), {"an audit": audit}).run(None, None)
    assert (len(tries), len(found.problems), found.streams) == (2, 1, 1)


def test_block_with_a_lost_connection_is_rolled_back_and_retryable(log: Decklog, postgres_url: str) -> None:
    with pytest.raises(Unreachable) as lost, log.transaction():
        log.journal.append("run_1", "gone")
        end_connections(postgres_url)
        log.journal.append("run_1", "gone too")
    assert lost.value.retryable
    assert bodies(log) == []


def test_statements_sent_with_the_commit_are_lost_with_the_connection(log: Decklog, postgres_url: str) -> None:
    with pytest.raises(Unreachable) as lost, log.transaction():
        log.tasks.add("run_1", "gone")
        end_connections(postgres_url)
    assert lost.value.retryable
    assert log.tasks.find("run_1") == []
    assert log.journal.append("run_1", "after").seq == 2


END_AT_COMMIT = """
create function end_session() returns trigger language plpgsql as $$
begin
  perform pg_terminate_backend(pg_backend_pid());
  return null;
end
$$;
create constraint trigger end_session after insert on entries deferrable initially deferred
  for each row execute function end_session();
"""


def test_a_connection_lost_at_the_commit_leaves_the_outcome_unknown(log: Decklog, postgres_url: str) -> None:
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute(END_AT_COMMIT)
        with pytest.raises(OutcomeUnknown) as unknown, log.transaction():
            log.journal.append("run_1", "who knows")
            log.runs.get("run_1")
        connection.execute("drop trigger end_session on entries")
    assert not unknown.value.retryable
    assert "key" in str(unknown.value.hint)
    assert log.journal.append("run_1", "after").seq == 2


def test_connection_lost_before_the_commit_has_a_known_outcome(log: Decklog, postgres_url: str) -> None:
    with pytest.raises(Unreachable) as lost, log.transaction():
        log.journal.append("run_1", "gone")
        log.runs.get("run_1")
        end_connections(postgres_url)
        time.sleep(0.1)
    assert lost.value.retryable
    assert log.journal.append("run_1", "after").seq == 2


@pytest.mark.parametrize("is_read", [True, False], ids=["while nothing was asked", "with the commit"])
def test_session_ended_by_the_server_has_a_known_outcome(
    log: Decklog, postgres_url: str, monkeypatch: pytest.MonkeyPatch, is_read: bool
) -> None:
    # As if the process had been frozen between the check of the connection and the commit.
    monkeypatch.setattr(session, "_QUIET_SECONDS", 60)
    with pytest.raises(Unreachable, match="terminating connection") as lost, log.transaction():
        log.journal.append("run_1", "gone")
        connection = log.db.connection()
        log.db.connections.keep_alive.remove(connection)
        log.journal.append("run_1", "gone too")
        end_connections(postgres_url)
        if is_read:
            connection.pgconn.consume_input()
            connection.pgconn.is_busy()
    assert lost.value.retryable
    assert log.journal.append("run_1", "after").seq == 2


@pytest.mark.slow
def test_a_lease_is_kept_though_connections_are_lost(log: Decklog, postgres_url: str) -> None:
    log.tasks.add("run_1", "t")
    claim = claimed(log, "run_1", worker="ada", lease_seconds=2)
    with claim:
        for _ in range(4):
            time.sleep(0.8)
            end_connections(postgres_url)
            assert claim.lost is None
        assert log.tasks.claim("run_1", worker="bo") is None
    assert log.tasks.get(claim.task.id).state == "done"


@pytest.mark.slow
def test_the_pool_keeps_quiet(postgres_url: str, capfd: pytest.CaptureFixture[str]) -> None:
    lines = "import logging, sys, time; from decklog import Decklog; import psycopg; log = Decklog.open(sys.argv[1]);"
    lines += "pool = log.db.connections.pool(); logging.getLogger('psycopg.pool').warning('lost'); log.close()"
    import sys

    done = subprocess.run([sys.executable, "-c", lines, postgres_url], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("", "")
    assert logging.getLogger("psycopg.pool").propagate


@pytest.mark.slow
def test_full_server_is_unreachable_with_a_hint(postgres_url: str) -> None:
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        name = connection.info.dbname
        connection.execute(f"alter database {name} connection limit 1".encode())
        connection.execute(b"create role guest login")
        try:
            guest = postgres_url.replace("://postgres", "://guest", 1)
            with pytest.raises(Unreachable, match="too many connections") as refused:
                Decklog.open(guest, busy_seconds=1)
            assert "max_connections" in str(refused.value.hint)
        finally:
            connection.execute(f"alter database {name} connection limit -1".encode())
            connection.execute("drop role guest")


@pytest.mark.slow
def test_opening_waits_for_a_free_connection(postgres_url: str) -> None:
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        name = connection.info.dbname
        connection.execute(b"create role guest login")
        connection.execute(b"grant select on all tables in schema public to guest")
        connection.execute(f"alter database {name} connection limit 1".encode())
        try:
            widening = f"alter database {name} connection limit -1".encode()
            later = threading.Timer(1.5, lambda: connection.execute(widening))
            later.start()
            with Decklog.open(postgres_url.replace("://postgres", "://guest", 1), busy_seconds=30) as log:
                assert log.runs.find() == []
            later.join()
        finally:
            connection.execute(b"drop owned by guest")
            connection.execute(b"drop role guest")


def always_busy() -> None:
    raise Busy("another transaction is in the way")


@pytest.mark.slow
def test_busy_write_is_retried_until_its_time_is_over(log: Decklog) -> None:
    tries = []

    def job() -> str | None:
        tries.append(1)
        if len(tries) < 12:
            raise Busy("another transaction is in the way")
        return log.journal.append("run_1", "at last").body

    assert log.db.write(job) == "at last"
    before = time.monotonic()
    with pytest.raises(Busy):
        log.db.write(always_busy)
    assert time.monotonic() - before < 10


def test_open_client_does_not_write_after_a_migration(log: Decklog, postgres_url: str) -> None:
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute("insert into schema_steps values (9999, 'later', 'x', 'x', 'x')")
    for act in (lambda: log.journal.append("run_1", "old"), lambda: log.transaction().__enter__()):
        with pytest.raises(SchemaTooNew, match="9999"):
            act()
    assert log.runs.get("run_1").id == "run_1"


def backend_of(log: Decklog) -> int:
    row: Any = log.db.one("select pg_backend_pid()", {})
    return int(row[0])


@pytest.mark.slow
def test_silent_server_times_out(postgres_url: str) -> None:
    with Decklog.open(postgres_url, busy_seconds=1) as log:
        log.runs.start("x", run_id="run_1")
        before = time.monotonic()
        pid = 0
        try:
            with pytest.raises((Unreachable, OutcomeUnknown)), log.transaction():
                pid = backend_of(log)
                os.kill(pid, signal.SIGSTOP)
                log.journal.append("run_1", "into the void")
        finally:
            os.kill(pid, signal.SIGCONT)
        assert time.monotonic() - before < 20


@pytest.mark.slow
def test_frozen_client_blocks_its_run_for_less_than_two_seconds(postgres_url: str) -> None:
    with Decklog.open(postgres_url) as log:
        log.runs.start("x", run_id="run_1")
    holder = start("hold_lock", postgres_url)
    pid = read_line(holder)
    try:
        os.kill(pid, signal.SIGSTOP)
        with Decklog.open(postgres_url) as log:
            before = time.monotonic()
            assert log.journal.append("run_1", "free").seq >= 2
            assert time.monotonic() - before < 2
    finally:
        os.kill(pid, signal.SIGCONT)
        holder.kill()
        holder.communicate()


@pytest.mark.slow
def test_frozen_client_gets_a_retryable_error(postgres_url: str) -> None:
    with Decklog.open(postgres_url) as log:
        log.runs.start("x", run_id="run_1")
        holder = start("hold_lock_and_report_error", postgres_url)
        pid = read_line(holder)
        os.kill(pid, signal.SIGSTOP)
        log.journal.append("run_1", "free")
        os.kill(pid, signal.SIGCONT)
        assert read_line(holder) == ["busy", True]
        holder.communicate()
        assert bodies(log) == ["free"]


@pytest.mark.slow
def test_frozen_verb_is_retried(postgres_url: str) -> None:
    with Decklog.open(postgres_url) as log:
        log.runs.start("x", run_id="run_1")
        writer = start("freeze_in_a_verb", postgres_url)
        pid = read_line(writer)
        while state_of(pid) != "T":
            time.sleep(0.01)
        before = time.monotonic()
        log.journal.append("run_1", "free")
        assert time.monotonic() - before < 1
        os.kill(pid, signal.SIGCONT)
        assert read_line(writer) == 2  # tries
        writer.communicate()
        assert bodies(log) == ["try 2", "free"]


def state_of(pid: int) -> str:
    with open(f"/proc/{pid}/stat") as file:
        return file.read().rpartition(")")[2].split()[0]


@pytest.mark.slow
def test_a_block_of_slow_code_keeps_its_transaction(log: Decklog) -> None:
    with log.transaction():
        log.journal.append("run_1", "before")
        time.sleep(2)
        log.journal.append("run_1", "after")
    assert bodies(log) == ["after", "before"]


@pytest.mark.slow
def test_keep_alive_thread_ends_without_open_transactions(log: Decklog) -> None:
    log.journal.append("run_1", "x")
    deadline = time.monotonic() + 10
    while any(thread.name == "decklog keep-alive" for thread in threading.enumerate()):
        assert time.monotonic() < deadline
        time.sleep(0.1)


@pytest.mark.slow
def test_sessions_write_once_the_database_is_writable_again(postgres_url: str) -> None:
    with Decklog.open(postgres_url) as log:
        log.runs.start("x", run_id="run_1")
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        setting = f"alter database {connection.info.dbname} {{}} default_transaction_read_only {{}}".format
        connection.execute(setting("set", "= on").encode())
        writer = start("write_twice", postgres_url)
        try:
            assert [read_line(writer) for _ in range(2)] == ["read_only", "read_only"]
        finally:
            connection.execute(setting("reset", "").encode())
    out, _ = writer.communicate("\n", timeout=30)
    assert out.split() == ['"written"', '"written"']


def test_a_worker_whose_clock_is_an_hour_ahead_takes_no_live_lease(log: Decklog, postgres_url: str) -> None:
    log.tasks.add("run_1", "t")
    claimed(log, "run_1", worker="ada", lease_seconds=600)
    assert alone("claim_with_a_clock_ahead", postgres_url, 1.0, 0.0) is None
    log.tasks.add("run_1", "u", task_id="task_u")
    assert alone("claim_with_a_clock_ahead", postgres_url, 1.0, 0.0) == "task_u"
