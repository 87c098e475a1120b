"""Run verbs outside of the event loop: by the shared writer, by a thread pool, or by the thread of a transaction.

A verb that is cancelled before it starts does not run. A running verb is awaited, so that a cancelled caller knows that nothing
happens afterwards.
"""

import os
from collections.abc import Awaitable, Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from threading import Lock
from typing import Any

from decklog.aio import loops
from decklog.aio.semaphore import Queues, Semaphore
from decklog.core.errors import Busy, Closed
from decklog.log import Decklog

Route = Callable[[Callable[[], Any]], Future[Any]]

# Reads on SQLite never block: a few threads keep a CPU busy.
_READERS = 4


class _Withdrawn(Exception):
    """Raised to roll back a job whose caller is gone."""


class Job:
    """A submitted job that can be withdrawn until it starts."""

    def __init__(self, act: Callable[[], Any]) -> None:
        self._act = act
        self._deciding = Lock()
        self._has_begun = False
        self._is_withdrawn = False
        self._is_decided = False

    def run(self) -> Any:
        with self._deciding:
            if self._is_withdrawn:
                raise _Withdrawn
            self._has_begun = True
        return self._act()

    def withdraw(self) -> bool:
        """Prevent it from running; return False if it has started."""
        with self._deciding:
            self._is_withdrawn = not self._has_begun
            return self._is_withdrawn

    def decide(self) -> None:
        """Roll back if the caller is gone. Called last in the transaction."""
        with self._deciding:
            if self._is_withdrawn:
                raise _Withdrawn
            self._is_decided = True

    def take_back(self) -> bool:
        """Roll it back; return False if it is too late."""
        with self._deciding:
            self._is_withdrawn = not self._is_decided
            return self._is_withdrawn


async def await_outcome(job: Job, route: Route, *, undo: Callable[[Any], Awaitable[None]] | None = None) -> Any:
    """Return the outcome of a job.

    If the caller is cancelled, `undo` is called with the result, or None.
    """
    future, done = _submit(job, route)
    try:
        await done.wait()
    except BaseException as problem:
        if not loops.is_cancellation(problem):
            raise
        if not job.withdraw():
            await done.insist()
        if undo is not None:
            await undo(future.result() if done.is_set and future.exception() is None else None)
        raise
    return future.result()


async def await_or_roll_back(act: Callable[[], Any], write: Callable[[Callable[[], Any]], Any], route: Route) -> Any:
    """Return the outcome of a write; when the caller is cancelled first, roll the write back.

    A cancellation that comes too late for that is raised at the caller's next await, so that the outcome is never lost.
    """

    def whole() -> Any:
        result = act()
        job.decide()
        return result

    job = Job(lambda: write(whole))
    future, done = _submit(job, route)
    try:
        await done.wait()
    except BaseException as problem:
        if not loops.is_cancellation(problem):
            raise
        if job.withdraw():
            raise
        is_taken_back = job.take_back()
        await done.insist()
        if is_taken_back or future.exception() is not None:
            raise
        loops.cancel_later(problem)
    return future.result()


async def await_despite_cancel(job: Job, route: Route) -> tuple[Future[Any], bool]:
    """Wait for a job even if cancelled; return its future and whether it was cancelled."""
    future, done = _submit(job, route)
    was_cancelled = await done.insist()
    return future, was_cancelled


def _submit(job: Job, route: Route) -> tuple[Future[Any], loops.Signal]:
    done = loops.signal()
    future = route(job.run)
    future.add_done_callback(lambda _: done.set())
    return future, done


class LogCalls:
    """Routes the verbs of one log, with a bounded number of threads."""

    def __init__(self, log: Decklog) -> None:
        self.log = log
        self._opening = Lock()
        self._is_closed = False
        self._reset()

    def _reset(self) -> None:
        """Reset threads and queues, as in a new process."""
        self._process = os.getpid()
        self._pools: dict[str, ThreadPoolExecutor] = {}
        self._queues = Queues()
        self._semaphore = Semaphore(max(1, self.log.db.most_transactions // 4))

    @property
    def queues(self) -> Queues:
        """Queues of tasks that wait for the same thing."""
        self._notice_fork()
        return self._queues

    @property
    def semaphore(self) -> Semaphore:
        """Limits the transactions that tasks keep open at the same time."""
        self._notice_fork()
        return self._semaphore

    def _notice_fork(self) -> None:
        if self._process != os.getpid():
            # Threads and waiting tasks stayed in the parent process.
            self._opening = Lock()
            self._reset()

    def _size(self, name: str) -> int:
        """Return the size of a pool. All pools together use at most the available connections."""
        most = self.log.db.most_transactions
        if most == 1:
            return _READERS
        return max(1, most // 2 if name == "worker" else most // 4)

    def check_open(self) -> None:
        if self._is_closed:
            raise Closed("this log is closed; open it again")

    def _pool(self, name: str) -> ThreadPoolExecutor:
        self._notice_fork()
        with self._opening:
            self.check_open()
            if name not in self._pools:
                self._pools[name] = ThreadPoolExecutor(self._size(name), thread_name_prefix=f"decklog {name}")
            return self._pools[name]

    def route(self, through: str, transaction: Route | None) -> Route:
        """Choose where a verb runs: in the thread of the task's transaction if there is one."""
        if transaction is not None:
            return transaction
        if self.log.is_in_transaction:
            raise Busy(
                "this task holds a transaction of the log open that is not asynchronous, and could only wait for itself",
                hint="Use `async with log.transaction()`, or the plain verbs inside of the plain transaction.",
            )
        if through == "write" and not self.log.db.locks_rows:
            # Jobs for the shared writer need no thread and share a commit.
            self.check_open()
            return self.log.db.submit
        pool = self._pool("reader" if through == "read" else "worker")
        return lambda job: pool.submit(copy_context().run, job)

    def shut(self) -> None:
        """End the threads after their current jobs."""
        with self._opening:
            self._is_closed = True
            pools, self._pools = self._pools, {}
        for pool in pools.values():
            pool.shutdown()


def run_in_thread(act: Callable[[], Any]) -> Future[Any]:
    """Run a function in a new thread."""
    pool = ThreadPoolExecutor(1, thread_name_prefix="decklog")
    try:
        return pool.submit(copy_context().run, act)
    finally:
        pool.shutdown(wait=False)
