"""Callers: the threads and tasks that hold transactions, their undo actions, and deadlines of reads."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import Context, ContextVar, copy_context
from threading import get_ident, local

from decklog.core.errors import Busy, TimedOut


def run_undo_actions(actions: list[Callable[[], None]], savepoint: int = 0) -> None:
    """Call the functions that were added since a savepoint, the last first, after a rollback."""
    while len(actions) > savepoint:
        actions.pop()()


_deadline = local()


@contextmanager
def within(seconds: float) -> Iterator[None]:
    """Limit the reads of a block to a number of seconds."""
    before, _deadline.at = getattr(_deadline, "at", None), time.monotonic() + seconds
    try:
        yield
    finally:
        _deadline.at = before


def deadline() -> float | None:
    """Return the deadline of reads of this thread by the monotonic clock, or None. Raise TimedOut if it has passed."""
    at: float | None = getattr(_deadline, "at", None)
    if at is not None and time.monotonic() >= at:
        raise timed_out_error()
    return at


def timed_out_error() -> TimedOut:
    """Build the error for a read that was stopped."""
    return TimedOut("the read exceeded its time limit and was stopped", hint="Narrow the query, or raise the limit.")


_acting_for: ContextVar[object | None] = ContextVar("decklog_stands_for", default=None)
_blocks: ContextVar[tuple[object, ...]] = ContextVar("decklog_blocks", default=())


def current_caller() -> object:
    """Return the identity of this caller: its task, or else its thread."""
    other = _acting_for.get()
    if other is not None:
        return other
    return _running_task() or get_ident()


def _running_task() -> object | None:
    # Don't import asyncio: without it there are no tasks, and the import takes longer than most commands.
    tasks = sys.modules.get("asyncio.tasks")
    if (current_task := getattr(tasks, "current_task", None)) is not None:
        loop = tasks.events._get_running_loop()  # type: ignore[union-attr]
        task: object | None = None if loop is None else current_task(loop)
        if task is not None:
            return task
    lowlevel = sys.modules.get("trio.lowlevel")
    if lowlevel is None or not lowlevel.in_trio_run():
        return None
    trio_task: object = lowlevel.current_task()
    return trio_task


@contextmanager
def act_for(other: object) -> Iterator[None]:
    """Act for another caller in this context. A thread that works for a task is inside the task's transaction."""
    token = _acting_for.set(other)
    try:
        yield
    finally:
        _acting_for.reset(token)


class TaskContext:
    """Represents a task in other threads. After `transfer_to_task`, the task holds the transaction begun for it."""

    def __init__(self) -> None:
        self._task = current_caller()
        self._home = get_ident()
        self.thread: int | None = None

    def transfer_to_task(self) -> None:
        """Make the task the holder of the transaction. Other tasks of its thread then get Busy instead of waiting."""
        self.thread = self._home

    def __hash__(self) -> int:
        return hash(self._task)

    def __eq__(self, other: object) -> bool:
        return other is self or (self.thread is not None and other == self._task)


def copy_detached_context() -> Context:
    """Copy the context for a background job, without the caller and its transactions."""
    context = copy_context()
    context.run(_acting_for.set, None)
    context.run(_blocks.set, ())
    return context


class CallerBlock:
    """A transaction that a caller holds open for its code."""

    def __init__(self) -> None:
        self.holder = current_caller()
        self._thread = get_ident()
        self._is_by_proxy = _acting_for.get() is not None
        self._outer = _blocks.get()
        _blocks.set((*self._outer, self))

    def is_held(self) -> bool:
        """Return whether the current caller holds this transaction."""
        return self.holder == current_caller()

    def is_of_this_thread(self) -> bool:
        # A worker thread is free after its call, but the thread of the waiting task is not.
        return get_ident() == (getattr(self.holder, "thread", None) if self._is_by_proxy else self._thread)

    def check_free(self) -> None:
        """Raise Busy for a caller that would deadlock: in the holder's thread, or started inside the block."""
        if self.is_of_this_thread() or self in _blocks.get():
            raise Busy(
                "another task of this thread, or the one that started this one, has an open transaction of this log",
                hint="Don't await inside `transaction()`, and write only from the task that opened it.",
            )

    def leave(self) -> None:
        _blocks.set(self._outer)
