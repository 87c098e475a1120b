"""A transaction belongs to the thread or the task that opened it; nobody else rides on it."""

import asyncio
from collections.abc import Callable
from threading import Thread
from typing import Any

import pytest

from decklog import Decklog
from decklog.core.errors import Busy
from decklog.db.callers import act_for

pytestmark = pytest.mark.anyio


class Failure(Exception):
    pass


async def fail_with_a_transaction_open(log: Decklog, meanwhile: Callable[[], Any]) -> None:
    with pytest.raises(Failure), log.transaction():
        log.journal.append("run_1", "never happened")
        await asyncio.create_task(later(meanwhile))
        raise Failure


async def later(act: Callable[[], Any]) -> None:
    await asyncio.sleep(0)
    act()


def bodies(log: Decklog) -> list[str | None]:
    return [entry.body for entry in log.journal.find("run_1", oldest_first=True) if entry.kind == "interaction"]


async def test_write_of_another_task_is_not_lost_in_a_rollback(log: Decklog, run_id: str) -> None:
    def write_beside() -> None:
        for act in (lambda: log.journal.append(run_id, "meanwhile"), lambda: log.transaction().__enter__(), log.close):
            with pytest.raises(Busy, match="another task"):
                act()
        assert bodies(log) == []

    # Once by a task that was there before, and once by one that began inside of the transaction.
    inside, before = asyncio.Event(), asyncio.Event()

    async def stranger() -> None:
        await inside.wait()
        write_beside()
        before.set()

    waiting = asyncio.create_task(stranger())

    def go() -> None:
        write_beside()
        inside.set()

    await fail_with_a_transaction_open(log, go)
    await waiting
    log.journal.append(run_id, "after")
    assert bodies(log) == ["after"]
    assert log.journal.verify().ok


async def test_tasks_hold_transactions_one_after_the_other(log: Decklog, run_id: str) -> None:
    async def hold(name: str) -> None:
        while True:
            try:
                with log.transaction():
                    log.journal.append(run_id, f"{name} 1")
                    await asyncio.sleep(0)
                    with log.transaction():
                        await asyncio.sleep(0)
                        log.journal.append(run_id, f"{name} 2")
                return
            except Busy:
                await asyncio.sleep(0)

    await asyncio.gather(*(hold(name) for name in "abc"))
    assert bodies(log) == ["a 1", "a 2", "b 1", "b 2", "c 1", "c 2"]


async def test_a_thread_started_inside_of_a_transaction_does_not_wait_for_it(log: Decklog, run_id: str) -> None:
    with log.transaction():
        with pytest.raises(Busy, match="started this"):
            await asyncio.to_thread(log.journal.append, run_id, "by a thread")
        log.journal.append(run_id, "by the task")
    assert bodies(log) == ["by the task"]


def test_thread_acting_for_a_task_is_inside_its_transaction(log: Decklog, run_id: str) -> None:
    task = object()

    def acting(act: Callable[[], Any]) -> None:
        def run() -> None:
            with act_for(task):
                act()

        thread = Thread(target=run)
        thread.start()
        thread.join()

    block = log.transaction()
    acting(block.__enter__)
    acting(lambda: log.journal.append(run_id, "by another thread"))
    assert bodies(log) == []
    acting(lambda: block.__exit__(None, None, None))
    assert bodies(log) == ["by another thread"]


def test_write_submitted_inside_a_transaction_is_committed_alone(log: Decklog, run_id: str) -> None:
    with pytest.raises(Failure), log.transaction():
        future = log.submit(log.runs.start, "goes on", run_id="run_2")
        raise Failure
    assert future.result(20).id == "run_2"
    assert log.runs.get("run_2").goal == "goes on"


def test_each_log_knows_its_own_transaction(log: Decklog, tmp_path: Any) -> None:
    with Decklog.open(tmp_path / "other.db") as other, log.transaction():
        assert log.is_in_transaction
        assert not other.is_in_transaction
        other.runs.start("x", run_id="run_x")
    assert not log.is_in_transaction
