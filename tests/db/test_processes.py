"""Many processes, one log: nothing lost, nothing twice, nobody starved."""

import os
import signal
import time
from collections import Counter
from pathlib import Path

import pytest

from decklog import Busy, Decklog
from tests.db.processes import alone, read_line, start, together
from tests.fork_server import ForkedProcess

# `make test-full` runs the sizes that the claims in the README are made of; fewer still have every writer wait for others.
FULL = bool(os.environ.get("DECKLOG_TEST_FULL"))


@pytest.fixture
def started(target: str) -> str:
    """A log with one run in it, closed."""
    with Decklog.open(target) as log:
        log.runs.start("shared by many", run_id="run_1")
    return target


def whole(target: str) -> int:
    """Verify a log and count its entries."""
    with Decklog.open(target) as log:
        result = log.journal.verify()
    assert result.ok, result.problems
    return result.entries


@pytest.mark.parametrize("round_number", range(3 if FULL else 1))
def test_processes_can_create_one_log_at_the_same_time(tmp_path: Path, round_number: int) -> None:
    target = str(tmp_path / "new" / "decklog.db")
    times = 60 if FULL else 6  # it is made at the first of them
    assert together("open_often", 8, target, times) == [times] * 8
    with Decklog.open(target) as log:
        versions = [step["version"] for step in log.db.facts()["steps"]]
    assert versions == sorted(set(versions))
    assert sorted(os.listdir(tmp_path / "new")) == ["decklog.db", "decklog.db-lock"], "no backup of a log that was never older"


@pytest.mark.slow
def test_appends_of_many_processes_have_no_gap_and_one_chain(started: str) -> None:
    times = 500 if FULL else 20
    results = together("append", 8, started, "run_1", times)
    numbers = [seq for result in results for seq in result]
    assert sorted(numbers) == list(range(2, 8 * times + 2))
    assert all(result == sorted(result) for result in results)
    assert whole(started) == 8 * times + 1


@pytest.mark.slow
@pytest.mark.parametrize("stream", ["run_1", None])
def test_a_reader_in_another_process_sees_each_entry_once_and_in_order(started: str, stream: str | None) -> None:
    times = 200 if FULL else 16
    reader = start("follow", started, stream, 1 + 8 * times // 2 + (8 * (1 + times // 2) if stream is None else 0))
    try:
        assert read_line(reader) == "ready"
        together("append_to_own", 8, started, times)
        ids = read_line(reader)
    finally:
        reader.communicate(timeout=30)
    shared = [int(name.split(":")[1]) for name in ids if name.startswith("run_1:")]
    assert shared == list(range(1, 8 * times // 2 + 2))
    assert set(Counter(ids).values()) == {1}
    for number in range(8 if stream is None else 0):
        own = [int(name.split(":")[1]) for name in ids if name.startswith(f"own_{number}:")]
        assert own == list(range(1, times // 2 + 2))


@pytest.mark.slow
def test_frozen_writer_makes_others_busy_until_it_continues(started: str) -> None:
    holder = start("hold_lock", started)
    pid = read_line(holder)
    try:
        os.kill(pid, signal.SIGSTOP)
        with Decklog.open(started, busy_seconds=0.5) as log:
            before = time.monotonic()
            with pytest.raises(Busy):
                log.journal.append("run_1", "in vain")
            assert time.monotonic() - before < 20
            os.kill(pid, signal.SIGCONT)
            holder.communicate("go on\n", timeout=20)
            assert log.journal.append("run_1", "at last").seq == 3
            assert log.journal.append("run_1", "and again").seq == 4
    finally:
        os.kill(pid, signal.SIGCONT) if holder.poll() is None else None
        holder.kill()
        holder.wait()
    assert whole(started) == 4


def test_killed_writer_with_a_child_releases_the_lock(started: str) -> None:
    writer = start("die_with_lock_after_fork", started)
    child = read_line(writer)
    try:
        writer.kill()
        writer.wait()
        with Decklog.open(started, busy_seconds=3) as log:
            assert log.journal.append("run_1", "free").seq == 3
    finally:
        os.kill(child, signal.SIGKILL)
        writer.stdin.close()
        writer.stdout.close()


def test_opening_a_file_again_in_one_process_loses_no_lock(tmp_path: Path) -> None:
    """Closing any descriptor of a file drops a process's POSIX locks on it, and SQLite's with them."""
    target = str(tmp_path / "decklog.db")
    with Decklog.open(target) as log:
        log.runs.start("opened twice", run_id="run_1")
    twice = start("open_twice_in_one_process", target)
    assert read_line(twice) != 0
    alone("write_and_close", target, "run_1", "from another process")
    send_line(twice)
    acknowledged = read_line(twice)
    assert acknowledged == [4, 5, 6, 7, 8]
    alone("write_and_close", target, "run_1", "from another process")
    send_line(twice)
    twice.communicate(timeout=20)
    assert whole(target) == 9


def send_line(process: ForkedProcess) -> None:
    process.stdin.write("go on\n")
    process.stdin.flush()


@pytest.mark.slow
def test_timed_out_waits_leave_one_thread_and_one_file(started: str) -> None:
    holder = start("hold_lock", started)
    read_line(holder)
    try:
        with Decklog.open(started, busy_seconds=0.05) as log:
            for count in range(12):
                with pytest.raises(Busy):
                    log.journal.append("run_1", "in vain")
                if count == 1:
                    before = threads_and_files()
            after = threads_and_files()
            holder.communicate("go on\n", timeout=20)
            assert log.journal.append("run_1", "at last").seq == 3
    finally:
        holder.kill()
        holder.wait()
    # Threads that index in the background may have ended meanwhile.
    assert after <= before


def threads_and_files() -> tuple[int, int]:
    return len(os.listdir("/proc/self/task")), len(os.listdir("/proc/self/fd"))


# Forks


@pytest.mark.slow
def test_timed_out_wait_before_a_fork_releases_the_lock(started: str) -> None:
    holder = start("hold_lock", started)
    read_line(holder)
    waiter = start("give_up_and_fork", started)
    child = read_line(waiter)
    try:
        holder.communicate("go on\n", timeout=20)
        with Decklog.open(started, busy_seconds=5) as log:
            assert log.journal.append("run_1", "by another").seq == 3
        assert waiter.communicate("go on\n", timeout=20)[0] == "4\n"
    finally:
        for process in (waiter, holder):
            process.kill()
            process.wait()
        os.kill(child, signal.SIGKILL)


def test_a_fork_inside_a_read_harms_neither(started: str) -> None:
    assert alone("fork_inside_a_read", started, timeout=60) == {"status": 0, "read": 2, "after": 3}


def test_an_embedder_may_fork(started: str) -> None:
    assert alone("peek_with_a_forking_embedder", started, timeout=60) == ["Commas are tokens"]


@pytest.mark.slow
def test_parent_and_child_go_on_after_a_fork(started: str) -> None:
    result = alone("fork_while_open", started, 5)
    assert result["statuses"] == [0] * 5
    assert result["ok"]
    assert result["entries"] == whole(started) == 2 + 5 * 2 * 6


@pytest.mark.slow
def test_a_fork_while_threads_write_and_read_harms_neither(started: str) -> None:
    result = alone("fork_while_threads_write", started, 8)
    assert result["statuses"] == [0] * 8
    assert result["problems"] == []
    assert result["ok"]
    assert result["distinct"] == result["written"]
    assert whole(started) == 1 + result["written"] + 8 * 6


@pytest.mark.slow
def test_a_fork_inside_a_transaction_leaves_it_to_the_parent(started: str) -> None:
    assert alone("fork_inside_transaction", started) == {"status": 0, "ok": True, "entries": 3}


@pytest.mark.slow
def test_child_forked_inside_a_transaction_writes_or_gets_a_conflict(started: str) -> None:
    result = alone("fork_inside_transaction_and_write", started)
    assert result["ok"]
    if "://" in started:
        assert result["again"] == 4
    else:
        assert (result["child"], result["again"]) == (["conflict"] * 3, 3)


@pytest.mark.slow
def test_child_forked_inside_a_read_writes_after_its_parent_closed(started: str) -> None:
    assert alone("outlive_the_parents_read", started) == {"child": "2", "entries": 2, "ok": True}


def test_an_interrupted_wait_does_not_stop_later_writes(started: str) -> None:
    results = alone("interrupt_a_waiting_write", started, timeout=60)
    assert results[0] == "interrupted" or results[0].isdigit()
    assert results[-1].isdigit()
