"""Threads that share a log, and processes that share its tasks."""

import os
import signal
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest

from decklog import Conflict, Decklog, NotFound
from decklog.records.record import find_all
from tests.db.processes import read_line, start, together
from tests.fork_server import ForkedProcess
from tests.stores.claiming import claimed

FULL = bool(os.environ.get("DECKLOG_TEST_FULL"))
# Enough that all of them wait for each other, on any machine; `make test-full` has more of both.
PROCESSES, TASKS = (16, 2000) if FULL else (8, 100)
WRITES = 30 if FULL else 10


# Threads


def test_threads_that_share_a_log_get_each_their_own_results(log: Decklog, run_id: str) -> None:
    def write(thread: int) -> list[tuple[int, str | None, str | None]]:
        with log.acting(f"agent {thread}"):
            entries = [log.journal.append(run_id, f"{thread}.{count}") for count in range(WRITES)]
        return [(entry.seq, entry.body, entry.agent) for entry in entries]

    with ThreadPoolExecutor(16) as pool:
        results = list(pool.map(write, range(16)))
    for thread, result in enumerate(results):
        assert [body for _, body, _ in result] == [f"{thread}.{count}" for count in range(WRITES)]
        assert {agent for _, _, agent in result} == {f"agent {thread}"}
    assert sorted(seq for result in results for seq, _, _ in result) == list(range(2, 16 * WRITES + 2))
    assert log.journal.verify().ok


def test_one_thread_that_fails_does_not_spoil_the_others(log: Decklog, run_id: str) -> None:
    def write(thread: int) -> int:
        written = 0
        for count in range(WRITES):
            if thread % 3:
                written += log.journal.append(run_id, f"{thread}.{count}").seq > 0
            else:
                with pytest.raises(NotFound):
                    log.runs.count_cycle("nobody")
        return written

    with ThreadPoolExecutor(12) as pool:
        written = sum(pool.map(write, range(12)))
    assert written == 8 * WRITES
    result = log.journal.verify()
    assert result.ok
    assert result.entries == written + 1


def test_a_transaction_is_not_starved_by_background_writes(log: Decklog, run_id: str) -> None:
    stop = threading.Event()

    def flood() -> None:
        while not stop.is_set():
            log.submit(log.journal.append, run_id, "flood").result(30)

    with ThreadPoolExecutor(4) as pool:
        floods = [pool.submit(flood) for _ in range(4)]
        before = time.monotonic()
        for count in range(5):
            with log.transaction():
                log.journal.append(run_id, f"in a block {count}")
        waited = time.monotonic() - before
        stop.set()
        for future in floods:
            future.result(30)
    assert waited < 20
    assert log.journal.verify().ok


def test_a_future_that_is_cancelled_too_late_stops_nobody(log: Decklog, run_id: str) -> None:
    futures = [log.submit(log.journal.append, run_id, str(count)) for count in range(50)]
    cancelled = sum(future.cancel() for future in futures)
    assert log.journal.append(run_id, "after").seq > 1
    log.close()
    assert all(future.done() for future in futures)
    assert sum(not future.cancelled() for future in futures) == 50 - cancelled


@pytest.mark.slow
def test_threads_that_end_leave_no_connection_behind(log: Decklog, run_id: str) -> None:
    def read() -> None:
        assert log.runs.get(run_id).id == run_id

    def in_threads(count: int) -> int:
        for _ in range(count):
            thread = threading.Thread(target=read)
            thread.start()
            thread.join()
        return len(os.listdir("/proc/self/fd"))

    if not os.path.exists("/proc/self/fd"):
        pytest.skip("this system does not list a process's open files")
    before = in_threads(10)
    assert in_threads(60) <= before + 10


# Blocks


def test_a_block_inside_a_block_is_all_or_nothing_too(log: Decklog, run_id: str) -> None:
    with log.transaction():
        log.journal.append(run_id, "outer")
        with pytest.raises(ZeroDivisionError), log.transaction():
            log.journal.append(run_id, "inner")
            log.runs.update(run_id, summary="inner")
            raise ZeroDivisionError
        log.journal.append(run_id, "outer again")
    assert [entry.body for entry in log.journal.find(run_id)] == ["outer again", "outer", "Make the parser faster"]
    assert log.runs.get(run_id).summary is None
    assert log.journal.verify().ok


def test_a_verb_inside_a_verb_that_fails_takes_back_only_itself(log: Decklog, run_id: str) -> None:
    log.tasks.add(run_id, "kept", task_id="t1")
    with log.transaction():
        log.tasks.add(run_id, "also kept", task_id="t2")
        with pytest.raises(Conflict):
            log.tasks.add_many(run_id, [{"title": "x", "task_id": "t3"}, {"title": "y", "task_id": "t4", "depends_on": ["t4"]}])
        with pytest.raises(NotFound):
            log.tasks.add_many(run_id, [{"title": "x", "task_id": "t3"}, {"title": "y", "task_id": "t4", "depends_on": ["no"]}])
    assert [task.id for task in log.tasks.find(run_id)] == ["t1", "t2"]
    assert log.journal.verify().ok


def test_two_threads_can_not_make_a_circle_together(target: str) -> None:
    with Decklog.open(target) as log:
        run_id = log.runs.start("circles").id
        for count in range(12 if FULL else 5):
            log.tasks.add_many(run_id, [{"title": "a", "task_id": f"a{count}"}, {"title": "b", "task_id": f"b{count}"}])
            meet = threading.Barrier(2)

            def depend(one: str, other: str, meet: threading.Barrier = meet) -> bool:
                meet.wait(10)
                try:
                    log.tasks.depend(one, other)
                    return True
                except Conflict:
                    return False

            with ThreadPoolExecutor(2) as pool:
                both = [pool.submit(depend, f"a{count}", f"b{count}"), pool.submit(depend, f"b{count}", f"a{count}")]
            assert [future.result() for future in both].count(True) == 1


# Processes that share tasks


@pytest.fixture
def tasked(target: str) -> tuple[str, str]:
    with Decklog.open(target) as log:
        run_id = log.runs.start("many hands").id
        log.tasks.add_many(run_id, [{"title": f"task {number}"} for number in range(TASKS)])
    return target, run_id


@pytest.mark.slow
def test_every_task_is_done_once_by_many_processes(tasked: tuple[str, str]) -> None:
    target, run_id = tasked
    results = together("work", PROCESSES, target, run_id, 60.0, 0.0)
    with Decklog.open(target) as log:
        tasks = list(find_all(log.tasks.find, run_id, limit=1000))
        assert Counter(task.state for task in tasks) == {"done": len(tasks)}
        assert {task.attempts for task in tasks} == {1}
        assert sum(result["done"] for result in results) == len(tasks)
        assert log.journal.verify().ok


@pytest.mark.slow
def test_no_task_is_lost_or_done_twice_when_workers_are_killed(tasked: tuple[str, str]) -> None:
    target, run_id = tasked
    killed = 0
    for seed in range(20):
        results = together("work", PROCESSES, target, run_id, 0.5, 0.06, seed)
        killed += sum("error" in result for result in results)
        if len(results) > sum("error" in result for result in results):
            break
    assert killed > 0
    with Decklog.open(target) as log:
        tasks = list(find_all(log.tasks.find, run_id, limit=1000))
        assert {task.state for task in tasks} <= {"done", "blocked"}
        for task in tasks:
            attempts = log.tasks.attempts(task.id)
            assert [attempt.number for attempt in attempts] == list(range(1, task.attempts + 1))
            outcomes = [attempt.outcome for attempt in attempts]
            assert outcomes.count("done") == (task.state == "done")
            assert set(outcomes) <= {"done", "expired"}
            assert outcomes[-1] == ("done" if task.state == "done" else "expired")
        assert log.journal.verify().ok


@pytest.fixture
def one_task(target: str) -> tuple[str, str]:
    with Decklog.open(target) as log:
        run_id = log.runs.start("one task").id
        log.tasks.add(run_id, "the one")
    return target, run_id


def finish_it(target: str, run_id: str) -> str:
    """Take the task over once its lease has run out, and finish it."""
    with Decklog.open(target) as log:
        claim = claimed(log, run_id, worker="heir", wait_seconds=20)
        claim.finish("by the heir")
        return ", ".join(f"{attempt.number} {attempt.outcome}" for attempt in log.tasks.attempts(claim.task.id))


@pytest.mark.slow
def test_a_worker_that_dies_leaves_its_task_to_another(one_task: tuple[str, str]) -> None:
    worker = start("claim_and_hold", *one_task, 0.5)
    read_line(worker)
    worker.kill()
    worker.communicate()
    assert finish_it(*one_task) == "1 expired, 2 done"


@pytest.mark.slow
def test_a_worker_that_never_starts_leaves_its_task_to_another(one_task: tuple[str, str]) -> None:
    worker = start("claim_and_hold", *one_task, 0.5)
    read_line(worker)
    try:
        assert finish_it(*one_task) == "1 expired, 2 done"
    finally:
        assert told_in_the_end(worker) == '"lease_lost"\n'


@pytest.mark.slow
def test_a_worker_that_freezes_and_comes_back_finds_its_task_gone(one_task: tuple[str, str]) -> None:
    worker = start("claim_and_hold", *one_task, 0.5)
    pid = read_line(worker)["pid"]
    os.kill(pid, signal.SIGSTOP)
    try:
        assert finish_it(*one_task) == "1 expired, 2 done"
    finally:
        os.kill(pid, signal.SIGCONT)
        assert told_in_the_end(worker) == '"lease_lost"\n'
    with Decklog.open(one_task[0]) as log:
        assert log.tasks.find(one_task[1])[0].summary == "by the heir"
        assert log.journal.verify().ok


def told_in_the_end(worker: ForkedProcess) -> str:
    told, _ = worker.communicate("go on\n", timeout=30)
    return told
