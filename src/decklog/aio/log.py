"""The asynchronous log, derived from the operations of the stores."""

from functools import partial
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeVar

from decklog.aio import loops
from decklog.aio.calls import Job, LogCalls, await_despite_cancel, await_outcome, run_in_thread
from decklog.aio.once import AsyncOnce
from decklog.aio.stores import AsyncStore
from decklog.aio.transaction import AsyncTransaction, present
from decklog.core.errors import Busy
from decklog.log import STORES, Decklog

if TYPE_CHECKING:
    import os
    from collections.abc import Awaitable, Callable, Generator
    from contextlib import AbstractAsyncContextManager
    from typing import Self, overload

    from decklog.aio.typed import Stores
else:

    class Stores:
        """Creates each store on first access."""

        def __getattr__(self, name):
            if name not in STORES:
                raise AttributeError(f"a log has no {name!r}; its stores are {', '.join(STORES)}")
            store = AsyncStore(self._calls, name)
            setattr(self, name, store)
            return store

        def __dir__(self):
            return sorted([*super().__dir__(), *STORES])


L = TypeVar("L", bound="AsyncDecklog")
P = ParamSpec("P")
R = TypeVar("R")


class AsyncDecklog(Stores):
    """One log, for tasks of asyncio or trio. `AsyncDecklog(log)` shares a log that is open already, and leaves it open."""

    def __init__(self, log: Decklog) -> None:
        self.log = log
        self.acting = log.acting
        self.proving = log.proving
        self._is_own = False
        self._calls = LogCalls(log)

    @classmethod
    def open(cls, target: "str | os.PathLike[str]", **settings: Any) -> "Opening[Self]":
        """Open a log as `Decklog.open` does, to be awaited or entered: `async with AsyncDecklog.open(…) as log`."""
        return Opening(cls, partial(Decklog.open, target, **settings))

    def transaction(self) -> "AbstractAsyncContextManager[None]":
        """Make everything that this task writes in this block one transaction: all of it, or nothing.

        It belongs to the task that opened it. Other tasks' writes are their own, and wait where they must; a task that was
        started inside of it is refused (`Busy`) until it is over.
        """
        self._calls.check_open()
        return AsyncTransaction(self.log, self._calls.semaphore)

    if TYPE_CHECKING:

        @overload
        def once(self, key: Callable[P, Awaitable[R]]) -> Callable[P, Awaitable[R]]: ...
        @overload
        def once(self, key: str | None = None, *, run_id: str | None = None) -> AsyncOnce: ...

    def once(self, key: Any = None, *, run_id: str | None = None) -> Any:
        """Run a block (`async with log.once("deploy") as effect:`) or an asynchronous function (`@log.once`) once.

        As `Decklog.once` does: its first result is returned again.
        """
        effects: Any = self.effects
        if callable(key):
            return AsyncOnce(effects, self.log.once(run_id=run_id))(key)
        return AsyncOnce(effects, self.log.once(key, run_id=run_id))

    @property
    def is_in_transaction(self) -> bool:
        """Whether this task holds a transaction open, so that what is written now may still be undone."""
        return self.log.is_in_transaction

    async def close(self) -> None:
        """Close the log, after what is under way; using it afterwards raises `Closed`. A log that is shared stays open."""
        if present(self.log) is not None:
            raise Busy("this task holds a transaction of the log open", hint="Leave it first.")
        try:
            await self._calls.semaphore.wait_for_all()
        finally:
            future, was_cancelled = await await_despite_cancel(Job(self._shut), run_in_thread)
        future.result()
        if was_cancelled:
            raise loops.cancellation()

    def _shut(self) -> None:
        self._calls.shut()
        if self._is_own:
            self.log.close()

    async def __aenter__(self) -> "Self":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


class Opening(Generic[L]):
    """A log that is about to be opened, in a thread: migrating it may take a while."""

    def __init__(self, kind: "type[L]", opened: "Callable[[], Decklog]") -> None:
        self._kind = kind
        self._opened = opened

    def __await__(self) -> "Generator[Any, None, L]":
        return self._open().__await__()

    async def _open(self) -> L:
        async def closed(log: Decklog | None) -> None:
            if log is not None:
                await await_despite_cancel(Job(log.close), run_in_thread)

        log = self._kind(await await_outcome(Job(self._opened), run_in_thread, undo=closed))
        log._is_own = True
        return log

    async def __aenter__(self) -> L:
        self._log = await self._open()
        return self._log

    async def __aexit__(self, *_: object) -> None:
        await self._log.close()
