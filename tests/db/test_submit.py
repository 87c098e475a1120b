"""Writes in the background: one that ends badly ends alone."""

from threading import Barrier, Thread, enumerate
from time import sleep

import pytest

from decklog import Closed, Decklog
from decklog.db.statements import Statements
from tests.waiting import wait_until


@pytest.mark.parametrize("end", [SystemExit, KeyboardInterrupt, GeneratorExit, ValueError])
def test_a_job_that_exits_takes_nobody_with_it(log: Decklog, run_id: str, end: type[BaseException]) -> None:
    def leave() -> None:
        log.journal.append(run_id, "undone")
        raise end

    with log.transaction():  # so that all of them are written together
        before = log.submit(log.journal.append, run_id, "before")
        exits = log.submit(leave)
        after = log.submit(log.journal.append, run_id, "after")
    assert isinstance(exits.exception(20), end)
    assert {before.result(20).body, after.result(20).body} == {"before", "after"}
    assert log.journal.append(run_id, "later").body == "later"
    assert "undone" not in {entry.body for entry in log.journal.find(run_id)}


# Python ignores SystemExit in a thread; pytest reports it.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_callback_that_exits_leaves_the_log_to_others(log: Decklog, run_id: str) -> None:
    def leave(_: object) -> None:
        raise SystemExit

    with log.transaction():
        log.journal.append(run_id, "nobody else writes to this run before the block ends")
        first = log.submit(log.journal.append, run_id, "first")
        first.add_done_callback(leave)
        second = log.submit(log.journal.append, run_id, "second")
    assert second.result(20).body == "second"
    assert log.journal.append(run_id, "third").body == "third"


def test_close_waits_for_results_of_submitted_jobs(log: Decklog, run_id: str) -> None:
    with log.transaction():  # so that all of them are written together
        log.journal.append(run_id, "nobody else writes to this run before the block ends")
        first = log.submit(log.journal.append, run_id, "first")
        first.add_done_callback(lambda _: sleep(0.1))  # it is told first, and takes its time
        others = [log.submit(log.journal.append, run_id, f"number {number}") for number in range(3)]
    log.close()
    assert all(future.done() for future in (first, *others))


def test_callback_of_a_job_can_close_the_log(log: Decklog, run_id: str) -> None:
    with log.transaction():
        log.journal.append(run_id, "nobody else writes to this run before the block ends")
        first = log.submit(log.journal.append, run_id, "first")
        first.add_done_callback(lambda _: log.close())
        second = log.submit(log.journal.append, run_id, "second")
    assert second.result(20).body == "second"
    wait_until(lambda: _is_closed(log, run_id))


def _is_closed(log: Decklog, run_id: str) -> bool:
    try:
        log.journal.append(run_id, "once more")
    except Closed:
        return True
    return False


def test_a_thread_that_exits_in_its_write_leaves_the_log_to_others(log: Decklog, run_id: str) -> None:
    results: list[object] = []

    def leave() -> None:
        raise SystemExit

    def write_and_leave() -> None:
        try:
            log.db.write(leave)
        except SystemExit:
            results.append("left")

    threads = [Thread(target=write_and_leave) for _ in range(4)]
    threads += [Thread(target=lambda: results.append(log.journal.append(run_id, "stays").body)) for _ in range(4)]
    with log.transaction():
        for thread in threads:
            thread.start()
    for thread in threads:
        thread.join(20)
    assert sorted(map(str, results)) == ["left"] * 4 + ["stays"] * 4


def test_first_submits_of_threads_share_one_writer(log: Decklog, run_id: str) -> None:
    gate = Barrier(8)

    def submit() -> None:
        gate.wait(20)
        log.submit(log.journal.append, run_id, "at once").result(20)

    threads = [Thread(target=submit) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    names = [thread.name for thread in enumerate() if thread.name.startswith("decklog_")]
    assert len(names) == len(set(names))
    assert len(log.journal.search("once")) == 8


def test_statement_cache_is_bounded() -> None:
    known: Statements[int] = Statements()
    for number in range(5000):
        assert known.keep(f"select {number}", number) == number
    known.keep("select " + "1, " * 9000, 1)
    assert 0 < len(known) <= 1000
    assert max(map(len, known)) < 10_000
