"""A task may be cancelled wherever it awaits: nothing is half done, nothing lost that was acknowledged, nothing left behind."""

import asyncio
import subprocess
import sys
import threading
import time
import types
from collections.abc import Callable, Coroutine, Generator
from pathlib import Path
from typing import Any

import anyio
import pytest

from decklog import AsyncDecklog, Decklog, EntryKind, TaskState
from tests.db.processes import environment

pytestmark = pytest.mark.anyio

# How long a cancellation comes after the await has begun: at once, or when what it waits for is over.
LATE = (0.0, 0.02)


@types.coroutine
def interrupted(program: Coroutine[Any, Any, Any], place: int, act: Callable[[], Any]) -> Generator[Any, Any, int]:
    """Run a program, and do something at its so-manyth await; give how many it had."""
    steps, count, answer = program.__await__(), 0, None
    problem: BaseException | None = None
    while True:
        try:
            trap = steps.send(answer) if problem is None else steps.throw(problem)
        except StopIteration:
            return count
        count += 1
        if count == place:
            act()
        problem = None
        try:
            answer = yield trap
        except BaseException as raised:  # noqa: BLE001 - whatever it is, it is the program's
            problem = raised


class Worker:
    """Does a bit of everything, and records what was acknowledged."""

    def __init__(self, alog: AsyncDecklog, run_id: str) -> None:
        self.alog = alog
        self.run_id = run_id
        self.done: list[str] = []

    async def work(self) -> None:
        await self.append("first")
        claim = await self.alog.tasks.claim(self.run_id, worker="w", recall=True)
        assert claim is not None
        async with claim:
            await self.append("claimed")
        self.done.append("finished")
        async with self.alog.transaction():
            await self.alog.journal.append(self.run_id, "left")
            async with self.alog.transaction():
                await self.alog.journal.append(self.run_id, "right")
        self.done.append("both")
        await anext(self.alog.journal.tail(self.run_id))
        next_one = await self.alog.tasks.claim(self.run_id, worker="w", wait_seconds=20)
        assert next_one is not None
        await next_one.finish()
        last = await self.alog.tasks.claim(self.run_id, worker="w")
        assert last is not None
        assert await self.alog.tasks.finish_and_claim(last.task.id, fence=last.task.fence) is not None

    async def append(self, body: str) -> None:
        await self.alog.journal.append(self.run_id, body)
        self.done.append(body)


def prepare(log: Decklog, run_id: str) -> None:
    log.runs.start("x", run_id=run_id)
    for number in range(4):
        log.tasks.add(run_id, f"task {number}", task_id=f"{run_id}.{number}")


def check(log: Decklog, worker: Worker) -> None:
    found = [entry.body for entry in log.journal.find(worker.run_id, kind=EntryKind.INTERACTION, limit=100)]
    tasks = [log.tasks.get(f"{worker.run_id}.{number}") for number in range(4)]
    for body in worker.done:
        assert {"both": "left" in found, "finished": tasks[0].state is TaskState.DONE}.get(body, body in found), body
    assert ("left" in found) == ("right" in found)
    assert len(found) == len(set(found))
    running = [task for task in tasks if task.state is TaskState.RUNNING]
    # What a program has in its hands without a block is its own to give back.
    assert len(running) <= 1, running
    assert all(task.failures == 0 for task in tasks)
    with log.transaction():
        log.journal.append(worker.run_id, "nobody holds anything")


@pytest.mark.slow
@pytest.mark.parametrize("late", LATE)
async def test_task_cancelled_at_every_await(alog: AsyncDecklog, log: Decklog, late: float) -> None:
    place, is_cancelled = 0, True
    while is_cancelled:
        place += 1
        prepare(log, f"run_{place}x")
        worker = Worker(alog, f"run_{place}x")
        with anyio.CancelScope() as scope:

            def cancel(scope: anyio.CancelScope = scope) -> None:
                time.sleep(late)
                scope.cancel()

            await interrupted(worker.work(), place, cancel)
        check(log, worker)
        is_cancelled = scope.cancelled_caught
    assert place > 15
    assert log.journal.verify().ok


@pytest.mark.slow
@pytest.mark.parametrize("late", LATE)
def test_asyncio_task_cancelled_at_every_await_and_the_next(log: Decklog, late: float) -> None:
    async def main() -> int:
        place = 0
        async with AsyncDecklog(log) as alog:
            while True:
                place += 1
                prepare(log, f"run_{place}x")
                worker = Worker(alog, f"run_{place}x")

                def cancel_twice(task: asyncio.Task[Any]) -> None:
                    time.sleep(late)
                    task.cancel()
                    asyncio.get_running_loop().call_soon(task.cancel)

                running = asyncio.create_task(_whole(worker, place, cancel_twice))
                (outcome,) = await asyncio.gather(running, return_exceptions=True)
                check(log, worker)
                if not isinstance(outcome, asyncio.CancelledError):
                    assert not isinstance(outcome, BaseException)
                    return place

    assert asyncio.run(main()) > 15


async def _whole(worker: Worker, place: int, cancel: Callable[[asyncio.Task[Any]], None]) -> None:
    task = asyncio.current_task()
    assert task is not None
    await interrupted(worker.work(), place, lambda: cancel(task))


@pytest.mark.slow
async def test_cancelled_write_before_its_start_never_happens(alog: AsyncDecklog, log: Decklog) -> None:
    entered, given_up = anyio.Event(), anyio.Event()

    async def hold() -> None:
        async with alog.transaction():
            await alog.journal.append("run_1", "held")
            entered.set()
            await given_up.wait()

    async with anyio.create_task_group() as group:
        group.start_soon(hold)
        await entered.wait()
        if not log.db.locks_rows:
            with anyio.move_on_after(0.02) as scope:
                await alog.journal.append("run_1", "never")
            assert scope.cancelled_caught
        with anyio.move_on_after(0.02):
            async with alog.transaction():
                if not log.db.locks_rows:
                    await alog.journal.append("run_1", "never either")
        given_up.set()
    await alog.journal.append("run_1", "after")
    found = log.journal.find("run_1", kind=EntryKind.INTERACTION, oldest_first=True)
    assert [entry.body for entry in found] == ["held", "after"]


async def test_close_waits_for_running_work_also_if_cancelled(target: str) -> None:
    alog = await AsyncDecklog.open(target)
    await alog.runs.start("x", run_id="r")

    async def hold() -> None:
        async with alog.transaction():
            await alog.journal.append("r", "held")
            entered.set()
            await anyio.sleep(0.05)

    entered = anyio.Event()
    async with anyio.create_task_group() as group:
        group.start_soon(hold)
        await entered.wait()
        with anyio.move_on_after(0.01):
            await alog.close()
    with Decklog.open(target) as log:
        assert [entry.body for entry in log.journal.find("r", kind=EntryKind.INTERACTION)] == ["held"]


@pytest.mark.slow
def test_asyncio_alone_is_enough(tmp_path: Path) -> None:
    program = """
import asyncio, sys
from decklog import AsyncDecklog

async def main() -> None:
    async with AsyncDecklog.open("x.db") as log:
        await log.runs.start("x", run_id="r")
        await log.tasks.add("r", "one", task_id="one")
        claim = await log.tasks.claim("r", worker="w")
        assert claim is not None
        try:
            async with asyncio.timeout(0.05):
                async with claim:
                    await asyncio.sleep(10)
        except TimeoutError:
            print((await log.tasks.get("one")).state)
        waiting = [asyncio.create_task(log.journal.append("r", f"{n}")) for n in range(50)]
        await asyncio.sleep(0)
        for task in waiting[::2]:
            task.cancel()
        done = await asyncio.gather(*waiting, return_exceptions=True)
        acknowledged = sum(not isinstance(outcome, BaseException) for outcome in done)
        print(acknowledged >= 25, "anyio" in sys.modules)

asyncio.run(main())
"""
    words = [sys.executable, "-W", "error", "-c", program]
    done = subprocess.run(words, cwd=tmp_path, env=environment(), capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout.split() == ["pending", "True", "False"], done.stderr
    assert done.stderr == ""


@pytest.mark.slow
async def test_cancelled_use_of_a_grant_happens_once_or_not_at_all(alog: AsyncDecklog, log: Decklog) -> None:
    outcomes: list[tuple[bool, int]] = []

    async def attempt(alog: AsyncDecklog, delay: float) -> None:
        approval = log.approvals.ask("run_1", "Deploy?", by="agent", about=f"plan {len(outcomes)}")
        log.approvals.decide(approval.id, "granted", by="owner")
        used: list[Any] = []

        async def use() -> None:
            used.append(await alog.approvals.use("run_1", approval.subject_digest or ""))

        async with anyio.create_task_group() as group:
            group.start_soon(use)
            await anyio.sleep(delay)
            group.cancel_scope.cancel()
        outcomes.append((bool(used), log.approvals.get(approval.id).uses or 0))

    for delay in (0.0, 0.0, 0.0001, 0.0003, 0.001, 0.002, 0.003, 0.005, 1.0):
        await attempt(alog, delay)
    assert {*outcomes} <= {(False, 0), (True, 1)}, outcomes
    assert outcomes[-1] == (True, 1)


@pytest.mark.slow
async def test_a_use_cancelled_before_its_commit_is_rolled_back(
    alog: AsyncDecklog, log: Decklog, monkeypatch: pytest.MonkeyPatch
) -> None:
    approval = log.approvals.ask("run_1", "Deploy?", by="agent", about="plan")
    log.approvals.decide(approval.id, "granted", by="owner")
    written, cancelled = threading.Event(), threading.Event()
    use = log.approvals._used

    def use_and_wait(found: Any) -> Any:
        result = use(found)
        written.set()
        assert cancelled.wait(10)
        return result

    monkeypatch.setattr(log.approvals, "_used", use_and_wait)
    async with anyio.create_task_group() as group:
        group.start_soon(alog.approvals.use, "run_1", approval.subject_digest or "")
        while not written.is_set():
            await anyio.sleep(0.001)
        group.cancel_scope.cancel()
        # Set by the loop after the cancellation has reached the task.
        threading.Timer(0.1, cancelled.set).start()
    with Decklog.open(log.db.target) as again:
        assert not again.approvals.get(approval.id).uses
        assert again.approvals.use("run_1", approval.subject_digest or "") is not None
