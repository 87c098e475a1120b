"""Adapter for the running event loop: asyncio (also under anyio) or trio."""

import asyncio
import sys
from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager, nullcontext
from contextvars import Context
from typing import Any


def _trio() -> Any:
    """Return the trio module if trio runs this code, else None."""
    trio = sys.modules.get("trio")
    return trio if trio is not None and trio.lowlevel.in_trio_run() else None


def signal() -> "Signal":
    """Create a signal for the running loop."""
    trio = _trio()
    return _AsyncioSignal() if trio is None else _TrioSignal(trio)


def current_task() -> object:
    """Return the task that runs here."""
    if (trio := _trio()) is not None:
        task: object = trio.lowlevel.current_task()
        return task
    return asyncio.current_task()


def is_cancellation(problem: BaseException | None) -> bool:
    """Return whether an error is a cancellation."""
    if (trio := _trio()) is not None:
        return isinstance(problem, trio.Cancelled)
    return isinstance(problem, asyncio.CancelledError)


def cancellation() -> BaseException:
    """Create the error of a cancelled asyncio task."""
    return asyncio.CancelledError()


def cancel_later(problem: BaseException) -> None:
    """Raise a caught cancellation again at the next await of this task."""
    if _trio() is not None:
        return  # trio does this itself
    task = asyncio.current_task()
    assert task is not None
    # Counted once, and with its message: `asyncio.timeout` and anyio know their own cancellations by them.
    task.uncancel()
    task.cancel(*problem.args)


_tasks: set[Any] = set()


def spawn(run: Callable[[], Awaitable[None]], name: str, context: Context) -> None:
    """Start a background task. It must handle all its errors."""
    if (trio := _trio()) is not None:
        trio.lowlevel.spawn_system_task(run, name=name, context=context)
        return

    async def whole() -> None:
        await run()

    task = asyncio.get_running_loop().create_task(whole(), name=name, context=context)
    # A loop holds its tasks only weakly.
    _tasks.add(task)
    task.add_done_callback(_tasks.discard)


class _AsyncioSignal:
    """A one-time event. Any thread may set it; its own loop awaits it."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._future: asyncio.Future[None] = self._loop.create_future()

    def set(self) -> None:
        try:
            self._loop.call_soon_threadsafe(self._settle)
        except RuntimeError:
            return  # the loop is closed, and nobody waits in it

    def _settle(self) -> None:
        if not self._future.done():
            self._future.set_result(None)

    @property
    def is_set(self) -> bool:
        return self._future.done()

    async def wait(self, seconds: float | None = None) -> None:
        """Wait until it is set, or until the timeout."""
        if not self._future.done():
            # Unlike awaiting the future, this can be cancelled and repeated.
            await asyncio.wait((self._future,), timeout=seconds)

    async def insist(self) -> bool:
        """Wait until it is set, even if cancelled; return whether it was cancelled."""
        was_cancelled = False
        with self._shield():
            while not self._future.done():
                try:
                    await self.wait()
                except asyncio.CancelledError:
                    was_cancelled = True
        return was_cancelled

    def _shield(self) -> AbstractContextManager[Any]:
        # A cancelled scope of anyio cancels again and again, as fast as the loop turns.
        anyio = sys.modules.get("anyio")
        return nullcontext() if anyio is None else anyio.CancelScope(shield=True)


class _TrioSignal:
    """The same for trio."""

    def __init__(self, trio: Any) -> None:
        self._trio = trio
        self._token = trio.lowlevel.current_trio_token()
        self._event = trio.Event()

    def set(self) -> None:
        try:
            self._token.run_sync_soon(self._event.set)
        except self._trio.RunFinishedError:
            return  # the loop is over, and nobody waits in it

    @property
    def is_set(self) -> bool:
        return bool(self._event.is_set())

    async def wait(self, seconds: float | None = None) -> None:
        with self._trio.move_on_after(float("inf") if seconds is None else seconds):
            await self._event.wait()

    async def insist(self) -> bool:
        with self._trio.CancelScope(shield=True):
            await self._event.wait()
        return False  # trio raises Cancelled at the next await


Signal = _AsyncioSignal | _TrioSignal
