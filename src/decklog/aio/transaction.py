"""Transactions that a task keeps open while it awaits. Each runs in its own thread."""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar, copy_context
from typing import TYPE_CHECKING, Any

from decklog.aio import loops
from decklog.aio.calls import Job, Route, await_despite_cancel
from decklog.aio.semaphore import Semaphore
from decklog.core.errors import Busy
from decklog.log import Decklog

if TYPE_CHECKING:
    from concurrent.futures import Future

    from decklog.db.callers import TaskContext

# The open transactions of this task, and of the tasks that started it, outermost first.
_blocks: "ContextVar[tuple[AsyncTransaction, ...]]" = ContextVar("decklog_async_blocks", default=())


def present(log: Decklog) -> "AsyncTransaction | None":
    """Return the open transaction of this task. Raise Busy if it belongs to the task that started this one."""
    for block in reversed(_blocks.get()):
        if block.is_of(log):
            block.check_owner()
            return block
    return None


def route_of(log: Decklog) -> Route | None:
    """Return the route to the thread of this task's transaction."""
    block = present(log)
    return None if block is None else block.submit


def forget() -> None:
    """Detach this task from all transactions."""
    _blocks.set(())


class _Undone(Exception):
    """Rolls a transaction back."""


class AsyncTransaction:
    """One `async with log.transaction()`; inside of another one of the same task it is a savepoint."""

    def __init__(self, log: Decklog, semaphore: Semaphore) -> None:
        self._log = log
        self._semaphore = semaphore
        self._outer: AsyncTransaction | None = None
        self._is_open = False
        self._process = os.getpid()
        self._thread: ThreadPoolExecutor
        self._context: TaskContext

    def is_of(self, log: Decklog) -> bool:
        # A forked child has no part in the transaction.
        return self._is_open and self._log is log and self._process == os.getpid()

    def check_owner(self) -> None:
        if self._task is not loops.current_task():
            raise Busy(
                "this task was started inside of a transaction that another task holds open",
                hint="Leave what is written in a transaction to the task that opened it; `gather` starts tasks too.",
            )

    def submit(self, job: Callable[[], Any]) -> "Future[Any]":
        """Run a job in the thread of this transaction."""
        return self._thread.submit(copy_context().run, self._inside, job)

    def _inside(self, job: Callable[[], Any]) -> Any:
        with self._log.db.on_behalf_of(self._context):
            return job()

    async def __aenter__(self) -> None:
        self._outer = present(self._log)
        self._task = loops.current_task()
        self._block = self._log.transaction()
        if self._outer is not None:
            self._thread, self._context = self._outer._thread, self._outer._context
            future, was_cancelled = await await_despite_cancel(Job(self._block.__enter__), self.submit)
            future.result()
        else:
            await self._begin()
            was_cancelled = False
        self._is_open = True
        self._token = _blocks.get()
        _blocks.set((*self._token, self))
        if was_cancelled:
            await self.__aexit__(None, _Undone(), None)
            raise loops.cancellation()

    async def _begin(self) -> None:
        if self._log.is_in_transaction:
            raise Busy("this task holds a transaction of the log open that is not asynchronous", hint="Leave it first.")
        await self._semaphore.acquire()
        self._context = self._log.db.task_context()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="decklog transaction")
        begun = loops.signal()
        future = self.submit(self._block.__enter__)
        future.add_done_callback(lambda _: begun.set())
        try:
            await begun.wait()
        except BaseException:
            # Do not wait for the begin, which may wait for another process: roll it back afterwards.
            self._thread.submit(copy_context().run, self._abandon, future)
            self._thread.shutdown(wait=False)
            raise
        if (problem := future.exception()) is not None:
            self._leave()
            raise problem
        self._context.transfer_to_task()

    def _abandon(self, begun: "Future[Any]") -> None:
        """Roll back a transaction whose task was cancelled before it began."""
        try:
            if begun.exception() is None:
                self._inside(self._undo)
        finally:
            self._semaphore.release()

    def _undo(self) -> None:
        self._block.__exit__(_Undone, _Undone(), None)

    def _leave(self) -> None:
        self._thread.shutdown(wait=False)
        self._semaphore.release()

    async def __aexit__(self, _kind: Any, problem: BaseException | None, _trace: Any) -> None:
        end = self._undo if problem is not None else self._commit
        try:
            future, was_cancelled = await await_despite_cancel(Job(end), self.submit)
        finally:
            self._is_open = False
            _blocks.set(self._token)
            if self._outer is None:
                self._leave()
        if not loops.is_cancellation(problem):
            future.result()
        if was_cancelled and problem is None:
            raise loops.cancellation()

    def _commit(self) -> None:
        self._block.__exit__(None, None, None)
