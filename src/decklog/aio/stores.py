"""A store whose verbs are awaited, derived from the operations of the plain one."""

from collections import deque
from functools import partial, wraps
from typing import TYPE_CHECKING

from decklog import Claim
from decklog.aio import loops
from decklog.aio.calls import Job, handed, insisted, outcome
from decklog.aio.claim import AsyncClaim
from decklog.aio.transaction import present
from decklog.core.errors import Invalid
from decklog.log import store_class
from decklog.records.operations import WaitStep, check_may_wait, operations_of

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Hashable
    from typing import Any

    from decklog.aio.calls import LogCalls
    from decklog.aio.turns import Turns
    from decklog.records.operations import Operation


class AsyncStore:
    """One noun. Each verb of the plain store is here under the same name, to be awaited; one that follows gives an iterator."""

    def __init__(self, calls: "LogCalls", name: str) -> None:
        self._calls = calls
        self._name = name

    def __getattr__(self, name: str) -> "Any":
        if name.startswith("_"):
            raise AttributeError(name)
        operation = next((found for found in operations_of(store_class(self._name)) if found.name == name), None)
        if operation is None:
            raise AttributeError(f"{self._name} has no verb {name!r}; it has {', '.join(dir(self))}")
        verb = wraps(operation.function)(self._verb(operation))
        setattr(self, name, verb)
        return verb

    def __dir__(self) -> list[str]:
        return sorted(operation.name for operation in operations_of(store_class(self._name)))

    @property
    def _store(self) -> "Any":
        return getattr(self._calls.log, self._name)

    def _verb(self, operation: "Operation") -> "Callable[..., Any]":
        ways = {"answer": self._stepping, "follow": self._following}
        return ways.get(operation.through, self._calling)(operation)

    def _calling(self, operation: "Operation") -> "Callable[..., Any]":
        async def verb(*args: "Any", **kwargs: "Any") -> "Any":
            store = self._store
            act = partial(operation.function, store, *args, **kwargs)
            if operation.hands_out:
                route = self._calls.route(operation.through, present(self._calls.log))
                return await handed(act, self._calls.log.db.write, route)
            return self._given(await self._done(operation.through, act, self._unclaimed))

        return verb

    def _stepping(self, operation: "Operation") -> "Callable[..., Any]":
        assert operation.steps is not None
        begin = operation.steps

        async def verb(*args: "Any", **kwargs: "Any") -> "Any":
            steps, changes, found = begin(self._store, *args, **kwargs), VerbWaiter(self), None
            try:
                while True:
                    try:
                        step = steps.send(found)
                    except StopIteration as over:
                        return self._given(over.value)
                    found = await self._taken(step, changes)
            except OverflowError as problem:
                raise Invalid(f"a number given to {operation.name} is too large: {problem}") from problem
            finally:
                steps.close()
                changes.stop()

        return verb

    def _following(self, operation: "Operation") -> "Callable[..., Any]":
        assert operation.steps is not None
        begin = operation.steps

        def verb(*args: "Any", **kwargs: "Any") -> "Following":
            return Following(self, begin(self._store, *args, **kwargs))

        return verb

    async def _taken(self, step: WaitStep, changes: "VerbWaiter") -> "Any":
        if step.how == "wait":
            check_may_wait(self._calls.log.db)
            return await changes.wait(step)
        assert step.job is not None
        act = step.job if step.how == "none" else partial(getattr(self._calls.log.db, step.how), step.job)
        return await self._done(step.how, act, step.undo)

    async def _done(self, through: str, act: "Callable[[], Any]", undo: "Callable[[Any], object] | None") -> "Any":
        """Do one act of a verb; when its caller is cancelled, keep nothing that only the caller could give back."""
        route = self._calls.route(through, present(self._calls.log))

        async def undone(result: "Any") -> None:
            if undo is not None:
                await insisted(Job(lambda: undo(result)), self._calls.route("none", present(self._calls.log)))

        return await outcome(Job(act), route, undo=undone)

    def _unclaimed(self, result: "Any") -> None:
        if isinstance(result, Claim):
            result.release("the worker was cancelled")

    def _given(self, result: "Any") -> "Any":
        return AsyncClaim(self, result) if isinstance(result, Claim) else result

    async def _insist(self, verb: str, /, *args: "Any", **kwargs: "Any") -> "tuple[Any, bool]":
        """Run a verb even if cancelled; return its result and whether it was cancelled."""
        act = partial(getattr(self._store, verb), *args, **kwargs)
        future, was_cancelled = await insisted(Job(act), self._calls.route("write", present(self._calls.log)))
        return future.result(), was_cancelled

    async def _watch(self, stream: str | None, wake: "Callable[[], None]") -> "Callable[[], None]":
        """Have somebody woken whenever a stream, or any, may have moved; what comes back ends it."""
        watch = partial(self._calls.log.db.watch, stream, wake)

        async def stopped(stop: "Any") -> None:
            if stop is not None:
                stop()

        stop: Callable[[], None] = await outcome(Job(watch), self._calls.route("read", None), undo=stopped)
        return stop


class VerbWaiter:
    """What a verb waits for. It is woken, and holds no thread meanwhile."""

    def __init__(self, store: AsyncStore) -> None:
        self._store = store
        self._stop: Callable[[], None] | None = None
        self._queue: Hashable = None
        self._turns: Turns | None = None
        self._is_first = False

    async def wait(self, step: WaitStep) -> None:
        """Wait until something may have changed, or the time is over.

        The first time it returns at once: what was committed before anybody watched is found by looking once more.
        """
        if step.queue != self._queue:
            self._leave_queue()
        if step.queue is not None and not self._is_first and not await self._in_queue(step):
            return
        if self._stop is None:
            self._moved = loops.signal()
            self._stop = await self._store._watch(step.stream, self._wake)
            return
        await self._moved.wait(step.seconds)
        if self._moved.is_set:
            self._moved = loops.signal()

    async def _in_queue(self, step: WaitStep) -> bool:
        """Wait behind those who came before and want the same; all of them looking at every change would be a stampede."""
        if self._turns is None:
            self._queue, self._turns = step.queue, self._store._calls.queues.join(step.queue)
        self._is_first = await self._turns.take(step.patience)
        return self._is_first

    def _wake(self) -> None:
        self._moved.set()

    def stop(self) -> None:
        if self._stop is not None:
            self._stop()
        self._leave_queue()

    def _leave_queue(self) -> None:
        """Let those behind come forward."""
        if self._turns is not None:
            if self._is_first:
                self._turns.give_back()
            self._store._calls.queues.leave(self._queue)
            self._turns, self._is_first = None, False


class Following:
    """An endless iterator. A caller that was cancelled may continue later and misses nothing."""

    def __init__(self, store: AsyncStore, steps: "Generator[Any, Any, None]") -> None:
        self._store = store
        self._steps = steps
        self._changes = VerbWaiter(store)
        self._step: Any = None
        self._found: Any = None
        self._ready: deque[Any] = deque()

    def __aiter__(self) -> "Following":
        return self

    async def __anext__(self) -> "Any":
        while not self._ready:
            if self._step is None:
                self._step = self._next()
            if isinstance(self._step, WaitStep):
                self._found = await self._store._taken(self._step, self._changes)
            else:
                self._ready.extend(self._step)
                self._found = None
            self._step = None
        return self._ready.popleft()

    def _next(self) -> "Any":
        try:
            return self._steps.send(self._found)
        except StopIteration:
            self._changes.stop()
            raise StopAsyncIteration from None

    async def aclose(self) -> None:
        """Follow no longer; leaving the loop and forgetting the iterator does the same."""
        self._steps.close()
        self._changes.stop()

    def __del__(self) -> None:
        self._changes.stop()
