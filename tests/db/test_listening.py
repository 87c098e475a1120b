"""Waiting for what others write, on PostgreSQL: one connection for a log, which hears only what it waits for."""

import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest

from decklog import Decklog
from decklog.db.postgres.listener import channel_of
from decklog.stores.tasks import leases
from decklog.stores.tasks.claimable import check_outlook
from tests.stores.claiming import claimed
from tests.waiting import wait_until


@pytest.fixture
def log(postgres_url: str) -> Iterator[Decklog]:
    with Decklog.open(postgres_url) as log:
        log.runs.start("x", run_id="run_1")
        log.runs.start("y", run_id="run_2")
        yield log


OF_LISTENERS = """
  from pg_stat_activity
 where datname = current_database() and pid <> pg_backend_pid() and query ilike '%listeners%'
"""


def query(url: str, sql: str) -> int:
    with psycopg.connect(url, autocommit=True) as connection:
        row = connection.execute(sql.encode()).fetchone()
    assert row is not None
    return int(row[0])


def listening(url: str) -> int:
    return query(url, f"select count(*) {OF_LISTENERS}")


def test_all_waiting_threads_share_one_listening_connection(log: Decklog, postgres_url: str) -> None:
    before = query(postgres_url, "select count(*) from pg_stat_activity where datname = current_database()")
    for _ in range(20):
        thread = threading.Thread(target=lambda: log.db.wait_for_change(0.01, "run_1"))
        thread.start()
        thread.join()
    assert query(postgres_url, "select count(*) from pg_stat_activity where datname = current_database()") <= before + 2


def test_notifications_are_sent_only_for_streams_with_waiters(log: Decklog, postgres_url: str) -> None:
    with psycopg.connect(postgres_url, autocommit=True) as stranger:
        for name in ("*", "run_1", "run_2"):
            stranger.execute(f'listen "{channel_of(name)}"'.encode())
        log.journal.append("run_1", "unheard")
        log.journal.append_many([{"stream": "run_1", "body": "unheard"}])
        log.db.wait_for_change(0.01, "run_2")
        log.journal.append("run_1", "unheard too")
        log.journal.append("run_2", "heard")
        log.journal.append_many([{"stream": "run_2", "body": "heard"}])
        payloads = [notification.payload for notification in stranger.notifies(timeout=2, stop_after=2)]
    assert payloads == ["run_2", "run_2"]


def test_each_stream_and_all_streams_have_a_channel(log: Decklog, postgres_url: str) -> None:
    with psycopg.connect(postgres_url, autocommit=True) as stranger:
        for name in ("*", "run_1"):
            stranger.execute(f'listen "{channel_of(name)}"'.encode())
        log.db.wait_for_change(0.01, "run_1")
        log.db.wait_for_change(0.01)
        log.journal.append("run_1", "heard")
        notified = {(one.channel, one.payload) for one in stranger.notifies(timeout=5, stop_after=2)}
    assert notified == {(channel_of("run_1"), "run_1"), (channel_of("*"), "*")}


@pytest.mark.parametrize("stream", ["run_1", None])
def test_a_wait_ends_when_its_stream_moves(log: Decklog, stream: str | None) -> None:
    log.db.wait_for_change(0, stream)
    writer = threading.Timer(0.1, lambda: log.journal.append("run_1", "now"))
    writer.start()
    before = time.monotonic()
    log.db.wait_for_change(90, stream)
    assert time.monotonic() - before < 60
    writer.join()


@pytest.mark.slow
def test_a_wait_is_not_ended_by_another_stream(log: Decklog) -> None:
    for _ in range(3):
        log.db.wait_for_change(0, "run_2")
    time.sleep(0.3)  # the thread that listens has begun, and everybody was told to look once
    log.db.wait_for_change(0, "run_2")
    log.journal.append("run_1", "elsewhere")
    before = time.monotonic()
    log.db.wait_for_change(1, "run_2")
    assert time.monotonic() - before > 0.9


def test_transaction_open_at_the_start_of_a_wait_is_seen(log: Decklog, postgres_url: str) -> None:
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
    query(postgres_url, f"select count(pg_terminate_backend(pid)) {OF_LISTENERS}")
    with Decklog.open(postgres_url) as other:
        other.journal.append("run_1", "while nobody heard")
        before = time.monotonic()
        log.db.wait_for_change(90, "run_1")
        assert time.monotonic() - before < 60


def test_listener_polls_under_many_commits_and_listens_again_later(log: Decklog, postgres_url: str) -> None:
    woken = threading.Event()
    stop = log.db.watch(None, woken.set)
    with psycopg.connect(postgres_url, autocommit=True) as stranger:

        def count_listeners() -> int:
            row = stranger.execute("select count(*) from listeners where stream = '*' and until > now()").fetchone()
            assert row is not None
            return int(row[0])

        def has_stopped_listening() -> bool:
            stranger.execute("select pg_notify('decklog', 'run_' || n) from generate_series(1, 100) n")
            log.journal.append("run_1", "one of many")
            return count_listeners() == 0

        wait_until(lambda: count_listeners() == 1)
        wait_until(has_stopped_listening)
        # Nobody tells of this one, and it is found.
        woken.clear()
        log.journal.append("run_1", "the last")
        assert woken.wait(30)
        wait_until(lambda: count_listeners() == 1)
    stop()


@pytest.mark.slow
def test_a_worker_that_waits_needs_one_connection(log: Decklog, postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[float] = []

    def counted(*given: Any) -> Any:
        looks.append(time.monotonic())
        return check_outlook(*given)

    monkeypatch.setattr(leases, "check_outlook", counted)
    with psycopg.connect(postgres_url, autocommit=True) as stranger:
        count = """
            select count(*) from pg_stat_activity
             where datname = current_database() and backend_type = 'client backend' and pid <> pg_backend_pid()
        """
        others = stranger.execute(count).fetchone() or (0,)
        with Decklog.open(postgres_url) as waiting:
            worker = threading.Thread(target=lambda: waiting.tasks.claim("run_1", worker="ada", wait_seconds=4))
            worker.start()
            most = 0
            while worker.is_alive():
                most = max(most, (stranger.execute(count).fetchone() or (0,))[0] - others[0])
                time.sleep(0.02)
            worker.join()
            assert waiting.tasks.claim("run_1", worker="ada") is None
    assert most == 1
    assert len(looks) <= 3  # before it waits, while the time runs, and at its end


@pytest.mark.slow
def test_wait_continues_after_all_connections_end(log: Decklog, postgres_url: str) -> None:
    ended: list[float] = []

    def wait() -> None:
        log.db.wait_for_change(0, "run_1")
        log.db.wait_for_change(90, "run_1")
        ended.append(time.monotonic())

    waiter = threading.Thread(target=wait)
    waiter.start()
    with psycopg.connect(postgres_url, autocommit=True) as stranger:
        others = "datname = current_database() and pid <> pg_backend_pid()"
        for _ in range(3):
            wait_until(lambda: listening(postgres_url))
            stranger.execute(f"select pg_terminate_backend(pid, 5000) from pg_stat_activity where {others}".encode())
    assert ended == []
    with Decklog.open(postgres_url) as other:
        other.journal.append("run_1", "while nobody listened")
    waiter.join(60)
    assert len(ended) == 1


@pytest.mark.slow
def test_waiting_worker_gets_a_task_when_a_lease_ends(log: Decklog) -> None:
    log.tasks.add("run_1", "leased")
    assert log.tasks.claim("run_1", worker="ada", lease_seconds=2) is not None
    before = time.monotonic()
    leased = claimed(log, "run_1", worker="bo", wait_seconds=60)
    assert 1 < time.monotonic() - before < 8
    leased.release(not_before=datetime.now(UTC) + timedelta(seconds=2))
    before = time.monotonic()
    assert log.tasks.claim("run_1", worker="bo", wait_seconds=60) is not None
    assert 1 < time.monotonic() - before < 8
