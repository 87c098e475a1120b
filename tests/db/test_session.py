"""Statements of a PostgreSQL session: sent together where they can be, and prepared when they come again."""

import os
import signal
import threading
from typing import Any

import pytest

from decklog import Decklog
from decklog.core.errors import Invalid, NotFound, Unreachable
from decklog.db.postgres import session
from tests.stores.claiming import claimed

pytestmark = pytest.mark.parametrize("target", ["postgres"], indirect=True)
_PREPARED = "select count(*) from pg_prepared_statements where name like 'decklog%'"


def read(log: Any, sql: str, **parameters: Any) -> Any:
    return log.db.read(lambda: log.db.rows(sql, parameters))


def test_values_come_back_as_they_went(target: str) -> None:
    parameters = {"text": "a ' \\ ü", "small": 7, "large": 2**40, "none": None, "bytes": b"\x00\xff", "yes": True}
    sql = "select :text as one, :small + 0, :large + 0, cast(:none as text), :bytes as five, :yes and :yes, 1 % 2"
    with Decklog.open(target) as log:
        for _ in range(3):
            names, rows = read(log, sql, **parameters)
            assert (names[0], names[4]) == ("one", "five")
            assert rows == [("a ' \\ ü", 7, 2**40, None, b"\x00\xff", True, 1)]


def test_repeated_statements_are_prepared_up_to_a_limit(target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "_MOST_PREPARED", 3)
    with Decklog.open(target) as log:
        (before,) = log.db.read(lambda: log.db.one(_PREPARED, {})) or ()
        for number in range(5):
            for _ in range(2):
                read(log, f"select {number} + :more", more=1)
        (after,) = log.db.read(lambda: log.db.one(_PREPARED, {})) or ()
    assert before == 0
    assert 1 <= after <= 4


def test_deallocated_statement_is_prepared_again(target: str) -> None:
    with Decklog.open(target) as log:
        for _ in range(3):
            assert read(log, "select :word as word", word="a")[1] == [("a",)]
        with connections_of(log) as connection:
            connection.execute("deallocate all")
        assert read(log, "select :word as word", word="b")[1] == [("b",)]


def test_refused_statement_leaves_the_connection_usable(target: str) -> None:
    with Decklog.open(target) as log:
        for _ in range(3):
            with pytest.raises(Invalid, match="division by zero"):
                read(log, "select 1 / :by", by=0)
        with pytest.raises(Invalid, match="can't be stored"):
            read(log, "select :word as word", word="\ud800")
        assert read(log, "select 1 / :by", by=1)[1] == [(1,)]
        assert log.db.connections.pool().get_stats()["connections_num"] <= 2


def test_a_signal_interrupts_a_long_read_and_the_next_read_is_answered(target: str) -> None:
    def ring(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, ring)
    try:
        with Decklog.open(target) as log:
            read(log, "select 1")
            signal.setitimer(signal.ITIMER_REAL, 0.05)
            with pytest.raises(KeyboardInterrupt):
                read(log, "select pg_sleep(60)")
            asleep = "select count(*) from pg_stat_activity where query like '%pg_sleep(60)%' and pid <> pg_backend_pid()"
            assert read(log, f"{asleep} and state = 'active' and {os.getpid()} > 0")[1] == [(0,)]
    finally:
        signal.signal(signal.SIGALRM, before)


def test_large_parameters_are_sent_in_parts(target: str) -> None:
    long = "é" * 4_000_000
    with Decklog.open(target) as log:
        assert read(log, "select length(:long)", long=long)[1] == [(4_000_000,)]


def test_statements_without_result_take_no_round_trip(target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    round_trips = 0
    exchange = session.Session._exchange
    caller = threading.get_ident()

    def counted(*given: Any) -> Any:
        nonlocal round_trips
        round_trips += threading.get_ident() == caller  # texts are indexed in another thread
        return exchange(*given)

    monkeypatch.setattr(session.Session, "_exchange", counted)
    with Decklog.open(target) as log:
        log.runs.start("Make the parser faster", run_id="run_1")
        round_trips = 0
        log.journal.append("run_1", "Ran the tests")
        assert round_trips == 2  # begun and appended, and committed
        log.db.write(lambda: None)
        assert round_trips == 2
        log.runs.get("run_1")
        assert round_trips == 4
        log.db.read(lambda: [list(log.db.each(f"select {number} + :more", {"more": 1})) for number in range(5)])
        assert round_trips == 10  # a cursor is opened on the way of its first rows, and closed on that of what comes next


@pytest.mark.parametrize("is_listened_to", [False, True])
def test_a_task_is_claimed_in_two_round_trips_and_finished_in_two(
    target: str, monkeypatch: pytest.MonkeyPatch, is_listened_to: bool
) -> None:
    round_trips = 0
    exchange = session.Session._exchange

    def counted(*given: Any) -> Any:
        nonlocal round_trips
        round_trips += 1
        return exchange(*given)

    with Decklog.open(target) as log:
        log.runs.start("Make the parser faster", run_id="run_1")
        for number in range(4):
            log.tasks.add("run_1", f"task {number}")
        log.tasks.claim("run_1", worker="ada")
        if is_listened_to:
            log.db.wait_for_change(0, "run_1")
        monkeypatch.setattr(session.Session, "_exchange", counted)
        claim = claimed(log, "run_1", worker="bo")
        assert round_trips == 2
        fused = log.tasks.finish_and_claim(claim.task.id, fence=claim.task.fence)
        assert fused is not None
        assert (round_trips, fused.task.worker) == (4, "bo")
        log.tasks.finish(fused.task.id, fence=fused.task.fence)
        assert round_trips == 6
        monkeypatch.undo()
        assert log.journal.verify().ok


def _prepare_and_forget(log: Decklog) -> None:
    """Append often enough for statements to be prepared, and have the server let go of them."""
    log.runs.start("Make the parser faster", run_id="run_1")
    for number in range(3):
        log.journal.append("run_1", f"first {number}")
    with connections_of(log) as connection:
        connection.execute("deallocate all")


def test_write_is_retried_after_lost_statements_or_connection(target: str) -> None:
    with Decklog.open(target) as log:
        _prepare_and_forget(log)
        log.journal.append("run_1", "second")
        with Decklog.open(target) as other, connections_of(log) as connection:
            backend = connection.info.backend_pid
            assert other.db.write(lambda: other.db.one("select pg_terminate_backend(:pid, 5000)", {"pid": backend})) == (True,)
        log.journal.append("run_1", "third")
        assert [entry.body for entry in log.journal.find("run_1", limit=2)] == ["third", "second"]


def test_block_fails_with_a_retryable_error_after_lost_statements(target: str) -> None:
    with Decklog.open(target) as log:
        log.runs.start("Make the parser faster", run_id="run_1")
        with pytest.raises(Unreachable, match="does not exist") as forgotten, log.transaction():
            log.journal.append("run_1", "second")
            for command in ("select :word as word", "select :word as word", "deallocate all", "select :word as word"):
                log.db.rows(command, {"word": "a"})
        assert forgotten.value.retryable
        with log.transaction():
            log.journal.append("run_1", "third")
        assert [entry.body for entry in log.journal.find("run_1", kind="interaction")] == ["third"]


def test_statement_skipped_in_a_pipeline_is_prepared_later(target: str) -> None:
    with Decklog.open(target) as log:
        sql = "select :word as word"

        def failing() -> None:
            log.db.queue_rows("select name, 1 / :by from streams", {"by": 0})
            log.db.rows(sql, {"word": "a"})

        log.runs.start("Make the parser faster", run_id="run_1")
        assert read(log, sql, word="a")[1] == [("a",)]
        with pytest.raises(Invalid, match="division by zero"):
            log.db.write(failing)
        for _ in range(3):
            assert read(log, sql, word="a")[1] == [("a",)]


def test_inner_block_is_rolled_back_with_the_outer_one(target: str) -> None:
    with Decklog.open(target) as log:
        log.runs.start("Make the parser faster", run_id="run_1")
        with log.transaction():
            log.journal.append("run_1", "outermost")
            with pytest.raises(NotFound), log.transaction():
                with log.transaction():
                    log.journal.append("run_1", "innermost")
                # Refused by the database itself, in the same go as what ends the block before.
                log.journal.append("run_2", "nowhere")
            with pytest.raises(ZeroDivisionError), log.transaction():
                raise ZeroDivisionError
            log.journal.append("run_1", "at last")
        assert [entry.body for entry in log.journal.find("run_1", limit=2)] == ["at last", "outermost"]


def test_a_transaction_of_queued_statements_alone_is_committed(target: str) -> None:
    with Decklog.open(target) as log:
        row = ("run_1", "2026-11-18T00:00:00.000000Z", 1)
        log.db.write(lambda: log.db.insert("streams", ("name", "created_at", "in_order"), [row]))
        assert log.db.read(lambda: log.db.one("select name from streams", {})) == ("run_1",)


def test_a_statement_that_was_queued_and_dropped_is_prepared_later(target: str) -> None:
    with Decklog.open(target) as log:
        row = ("run_1", "2026-11-18T00:00:00.000000Z", 1)

        def dropped() -> None:
            log.db.rows("select 1", {})
            for _ in range(3):
                log.db.insert("streams", ("name", "created_at", "in_order"), [row])
            raise ZeroDivisionError

        for _ in range(2):
            with pytest.raises(ZeroDivisionError):
                log.db.write(dropped)
        log.db.write(lambda: log.db.insert("streams", ("name", "created_at", "in_order"), [row]))
        assert log.db.read(lambda: log.db.one("select count(*) from streams", {})) == (1,)


def test_one_caller_uses_two_connections(target: str) -> None:
    with Decklog.open(target) as log:
        log.runs.start("Make the parser faster", run_id="run_1")
        assert log.runs.get("run_1").id == "run_1"
        assert log.db.connections.pool().get_stats()["connections_num"] <= 2


def connections_of(log: Any) -> Any:
    """Take a connection of an open log, which has as many as are taken at once."""
    return log.db.connections.pool().connection()
