"""Waiting for what others write, on PostgreSQL: one connection for a log, told only of what it waits for."""

import threading
import time
from collections.abc import Iterator

import psycopg
import pytest

from decklog import Decklog
from tests.waiting import wait_until


@pytest.fixture
def log(postgres_url: str) -> Iterator[Decklog]:
    with Decklog.open(postgres_url) as log:
        log.runs.start("x", run_id="run_1")
        log.runs.start("y", run_id="run_2")
        yield log


OF_LISTENERS = """
  from pg_stat_activity
 where datname = current_database() and pid <> pg_backend_pid() and (query ilike 'listen%' or query ilike '%max(pos)%')
"""


def asked(url: str, sql: str) -> int:
    with psycopg.connect(url, autocommit=True) as connection:
        row = connection.execute(sql.encode()).fetchone()
    assert row is not None
    return int(row[0])


def listening(url: str) -> int:
    return asked(
        url, "select count(*) from pg_stat_activity where datname = current_database() and query ilike '%listen%decklog%'"
    )


def test_a_log_listens_on_one_connection_however_many_threads_have_waited(log: Decklog, postgres_url: str) -> None:
    before = asked(postgres_url, "select count(*) from pg_stat_activity where datname = current_database()")
    for _ in range(20):
        thread = threading.Thread(target=lambda: log.db.wait_for_change(0.01, "run_1"))
        thread.start()
        thread.join()
    assert asked(postgres_url, "select count(*) from pg_stat_activity where datname = current_database()") <= before + 2


def test_nobody_is_told_of_what_nobody_waits_for(log: Decklog, postgres_url: str) -> None:
    with psycopg.connect(postgres_url, autocommit=True) as stranger:
        stranger.execute("listen decklog")
        log.journal.append("run_1", "unheard")
        log.journal.append_many([{"stream": "run_1", "body": "unheard"}])
        log.db.wait_for_change(0.01, "run_2")
        log.journal.append("run_1", "unheard too")
        log.journal.append("run_2", "heard")
        log.journal.append_many([{"stream": "run_2", "body": "heard"}])
        told = [notification.payload for notification in stranger.notifies(timeout=2, stop_after=2)]
    assert told == ["run_2", "run_2"]


@pytest.mark.parametrize("stream", ["run_1", None])
def test_a_wait_ends_when_its_stream_moves(log: Decklog, stream: str | None) -> None:
    log.db.wait_for_change(0, stream)
    writer = threading.Timer(0.1, lambda: log.journal.append("run_1", "now"))
    writer.start()
    before = time.monotonic()
    log.db.wait_for_change(90, stream)
    assert time.monotonic() - before < 60
    writer.join()


def test_a_wait_is_not_ended_by_another_stream(log: Decklog) -> None:
    for _ in range(3):
        log.db.wait_for_change(0, "run_2")
    time.sleep(0.3)  # the thread that listens has begun, and everybody was told to look once
    log.db.wait_for_change(0, "run_2")
    log.journal.append("run_1", "elsewhere")
    before = time.monotonic()
    log.db.wait_for_change(1, "run_2")
    assert time.monotonic() - before > 0.9


def test_what_was_under_way_when_the_wait_began_is_found(log: Decklog, postgres_url: str) -> None:
    with Decklog.open(postgres_url) as other:
        block = other.transaction()
        block.__enter__()
        other.journal.append("run_1", "begun before")
        log.db.wait_for_change(0, "run_1")
        threading.Timer(0.2, lambda: None).start()
        block.__exit__(None, None, None)
        before = time.monotonic()
        log.db.wait_for_change(90, "run_1")
        assert time.monotonic() - before < 60


def test_listening_goes_on_after_the_connection_was_lost(log: Decklog, postgres_url: str) -> None:
    log.db.wait_for_change(0, "run_1")
    for _ in range(100):
        if listening(postgres_url):
            break
        time.sleep(0.02)
    asked(postgres_url, f"select count(pg_terminate_backend(pid)) {OF_LISTENERS}")
    with Decklog.open(postgres_url) as other:
        other.journal.append("run_1", "while nobody heard")
        before = time.monotonic()
        log.db.wait_for_change(90, "run_1")
        assert time.monotonic() - before < 60


def test_who_hears_of_very_many_commits_looks_by_itself_and_is_told_again_when_it_is_quiet(
    log: Decklog, postgres_url: str
) -> None:
    woken = threading.Event()
    stop = log.db.watch(None, woken.set)
    with psycopg.connect(postgres_url, autocommit=True) as stranger:

        def told_to() -> int:
            row = stranger.execute("select count(*) from listeners where stream = '*' and until > now()").fetchone()
            assert row is not None
            return int(row[0])

        def is_left_alone_when_much_is_written() -> bool:
            stranger.execute("select pg_notify('decklog', 'run_' || n) from generate_series(1, 100) n")
            log.journal.append("run_1", "one of many")
            return told_to() == 0

        wait_until(lambda: told_to() == 1)
        wait_until(is_left_alone_when_much_is_written)
        # Nobody tells of this one, and it is found.
        woken.clear()
        log.journal.append("run_1", "the last")
        assert woken.wait(30)
        wait_until(lambda: told_to() == 1)
    stop()
