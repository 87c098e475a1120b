"""PgBouncer between Decklog and PostgreSQL: in transaction mode each transaction may run in another server session."""

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from decklog import Decklog
from decklog.core.errors import Invalid, OutcomeUnknown
from decklog.db.postgres.connections import split_pooler
from tests.pgbouncer import MISSING, PROGRAM, PgBouncer
from tests.stores.claiming import claimed

needs_pgbouncer = pytest.mark.skipif(PROGRAM is None, reason=MISSING)
_ROOT = Path(__file__).parents[2]
# One of each kind: verbs, batches, locks, blocks, jobs in the background, and several processes at once.
_STORE_TESTS = (
    *("tests/journal/test_journal.py", "tests/journal/test_batches.py", "tests/stores/runs/test_runs.py"),
    *(
        "tests/stores/tasks/test_tasks.py",
        "tests/stores/tasks/test_concurrency.py",
        "tests/stores/tasks/test_claims_and_budgets.py",
    ),
    *("tests/stores/test_contention.py", "tests/stores/approvals/test_approvals.py", "tests/db/test_submit.py"),
)
_LEFT = """
select (select count(*) from pg_prepared_statements where name <> ''),
       (select count(*) from pg_listening_channels()),
       (select count(*) from pg_class where relpersistence = 't'),
       (select count(*) from pg_locks where locktype = 'advisory' and pid = pg_backend_pid()),
       (select array_agg(name::text order by name) from pg_settings where source = 'session')
"""


@pytest.fixture
def pooled(postgres_server: str, request: pytest.FixtureRequest) -> Iterator[PgBouncer]:
    with PgBouncer(postgres_server, getattr(request, "param", "transaction"), size=1) as pooled:
        yield pooled


@needs_pgbouncer
@pytest.mark.slow
@pytest.mark.parametrize("mode", ["transaction", "session"])
def test_store_tests_pass_through_pgbouncer(mode: str) -> None:
    command = [sys.executable, "-m", "pytest", "-n", "0", "-q", "-p", "no:cacheprovider", "-k", "postgres", *_STORE_TESTS]
    done = subprocess.run(
        command, cwd=_ROOT, env={**os.environ, "DECKLOG_TEST_POOLER": mode}, capture_output=True, text=True, check=False
    )
    causes = dict.fromkeys(line for line in done.stdout.splitlines() if line.startswith("E  "))
    assert done.returncode == 0, "\n".join([*list(causes)[:40], done.stdout[-1000:], done.stderr[-2000:]])
    assert "passed" in done.stdout or "100%" in done.stdout


@needs_pgbouncer
def test_nothing_of_a_log_is_left_in_a_shared_session(postgres_url: str, pooled: PgBouncer) -> None:
    url = pooled.address_of(postgres_url)
    with psycopg.connect(url, autocommit=True) as stranger:
        stranger.execute("select 1")
        before = stranger.execute(_LEFT).fetchone()
        with Decklog.open(url, durability="relaxed") as log:
            log.runs.start("x", run_id="run_1")
            for number in range(3):
                log.journal.append("run_1", f"entry {number}")
                log.journal.find("run_1")
            log.journal.append_many([{"stream": "run_1", "body": f"of many {number}"} for number in range(100)])
            log.db.wait_for_change(0.1, "run_1")
        assert stranger.execute(_LEFT).fetchone() == before


@needs_pgbouncer
def test_settings_hold_inside_a_transaction_of_a_shared_session(postgres_url: str, pooled: PgBouncer) -> None:
    names = ("synchronous_commit", "lock_timeout", "jit")
    sql = "select " + ", ".join(f"current_setting('{name}')" for name in names)
    with Decklog.open(pooled.address_of(postgres_url), durability="relaxed", busy_seconds=7) as log:
        assert log.db.write(lambda: log.db.one(sql, {})) == ("off", "7s", "off")
        assert log.db.read(lambda: log.db.one(sql, {})) == ("off", "7s", "off")


@needs_pgbouncer
def test_a_pooler_is_detected_and_its_mode_can_be_given(postgres_url: str, pooled: PgBouncer) -> None:
    url = pooled.address_of(postgres_url)
    expected = {postgres_url: False, url: True, f"{url}&pooler=transaction": True, f"{url}&pooler=session": False}
    for target, shares in expected.items():
        with Decklog.open(target) as log:
            assert log.db.connections.shares_sessions is shares
            assert log.db.target == target


def test_the_parameter_for_the_pooler_does_not_reach_the_driver() -> None:
    assert split_pooler("postgresql://h/d") == ("postgresql://h/d", None)
    assert split_pooler("postgresql://h/d?pooler=session") == ("postgresql://h/d", "session")
    assert split_pooler("postgresql://h/d?a=b&pooler=transaction&c=d") == ("postgresql://h/d?a=b&c=d", "transaction")
    with pytest.raises(Invalid, match="pooler=statement"):
        split_pooler("postgresql://h/d?pooler=statement")


@needs_pgbouncer
@pytest.mark.slow
def test_a_pooler_that_restarts_loses_no_write_and_repeats_none(postgres_url: str, pooled: PgBouncer) -> None:
    written: list[str] = []
    unknown: list[str] = []
    is_over = threading.Event()

    def write() -> None:
        number = 0
        while not is_over.is_set():
            number += 1
            try:
                log.journal.append("run_1", f"entry {number}")
                written.append(f"entry {number}")
            except OutcomeUnknown:
                unknown.append(f"entry {number}")

    with Decklog.open(pooled.address_of(postgres_url)) as log:
        log.runs.start("x", run_id="run_1")
        writer = threading.Thread(target=write)
        writer.start()
        for _ in range(3):
            known = len(written)
            while len(written) < known + 5:
                time.sleep(0.01)
            pooled.stop()
            time.sleep(0.3)
            pooled.start()
        known = len(written)
        while len(written) < known + 5:
            time.sleep(0.01)
        is_over.set()
        writer.join()
        found = log.db.read(lambda: log.db.rows("select body from entries where kind = 'interaction'", {})[1])
        bodies = [body for (body,) in found]
    assert len(bodies) == len(set(bodies))
    assert set(written) <= set(bodies) <= {*written, *unknown}


@needs_pgbouncer
@pytest.mark.slow
def test_a_waiting_worker_finds_work_behind_a_pooler(postgres_url: str, pooled: PgBouncer) -> None:
    with Decklog.open(pooled.address_of(postgres_url)) as log, Decklog.open(postgres_url) as other:
        log.runs.start("x", run_id="run_1")
        adding = threading.Timer(1, lambda: other.tasks.add("run_1", "late"))
        adding.start()
        before = time.monotonic()
        claimed(log, "run_1", worker="ada", wait_seconds=60)
        assert time.monotonic() - before < 30
        adding.join()


@needs_pgbouncer
def test_many_more_clients_than_server_sessions_write(postgres_url: str, pooled: PgBouncer) -> None:
    with Decklog.open(pooled.address_of(postgres_url)) as log:
        log.runs.start("x", run_id="run_1")
        threads = [threading.Thread(target=log.journal.append, args=("run_1", f"entry {number}")) for number in range(12)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(log.journal.find("run_1", kind="interaction")) == 12


@needs_pgbouncer
def test_a_failed_rollback_does_not_replace_the_error_of_the_block(postgres_url: str, pooled: PgBouncer) -> None:
    with Decklog.open(pooled.address_of(postgres_url)) as log, psycopg.connect(postgres_url, autocommit=True) as direct:
        log.runs.start("x", run_id="run_1")
        with pytest.raises(ZeroDivisionError), log.transaction():
            log.journal.append("run_1", "not kept")
            direct.execute(
                "select pg_terminate_backend(pid) from pg_stat_activity"
                " where datname = current_database() and pid <> pg_backend_pid() and state = 'idle in transaction'"
            )
            raise ZeroDivisionError
        log.journal.append("run_1", "kept")
        bodies = [entry.body for entry in log.journal.find("run_1")]
        assert "kept" in bodies
        assert "not kept" not in bodies
