"""Asynchronous stores, derived from the operations of the synchronous ones, and asynchronous claims."""

import time
from collections import deque
from collections.abc import Callable, Generator, Hashable, Iterator
from contextlib import contextmanager
from contextvars import copy_context
from datetime import datetime
from functools import partial, wraps
from typing import Any, Self

from decklog import Claim, Task, TaskState
from decklog.aio import loops
from decklog.aio.calls import Job, LogCalls, await_despite_cancel, await_or_roll_back, await_outcome
from decklog.aio.semaphore import Semaphore
from decklog.aio.transaction import forget, route_of
from decklog.core.errors import Invalid, LeaseLost
from decklog.log import store_class
from decklog.records.operations import Operation, WaitStep, check_wait, operations_of


class AsyncStore:
    """A store whose verbs are awaited under the same names; a verb that follows returns an asynchronous iterator."""

    def __init__(self, calls: LogCalls, name: str) -> None:
        self._calls = calls
        self._name = name

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        operation = next((found for found in operations_of(store_class(self._name)) if found.name == name), None)
        if operation is None:
            raise AttributeError(f"{self._name} has no verb {name!r}; it has {', '.join(dir(self))}")
        ways = {"answer": self._build_waiting_verb, "follow": self._build_follower}
        verb = wraps(operation.function)(ways.get(operation.through, self._build_verb)(operation))
        setattr(self, name, verb)
        return verb

    def __dir__(self) -> list[str]:
        return sorted(operation.name for operation in operations_of(store_class(self._name)))

    @property
    def _store(self) -> Any:
        return getattr(self._calls.log, self._name)

    def _build_verb(self, operation: Operation) -> Callable[..., Any]:
        async def verb(*args: Any, **kwargs: Any) -> Any:
            store = self._store
            act = partial(operation.function, store, *args, **kwargs)
            if operation.hands_out:
                route = self._calls.route(operation.through, route_of(self._calls.log))
                return await await_or_roll_back(act, self._calls.log.db.write, route)
            return self._wrap_result(await self._run_verb(operation.through, act, self._release_claim))

        return verb

    def _build_waiting_verb(self, operation: Operation) -> Callable[..., Any]:
        assert operation.steps is not None
        begin = operation.steps

        async def verb(*args: Any, **kwargs: Any) -> Any:
            steps, changes, found = begin(self._store, *args, **kwargs), VerbWaiter(self), None
            try:
                while True:
                    try:
                        step = steps.send(found)
                    except StopIteration as over:
                        return self._wrap_result(over.value)
                    found = await self._run_step(step, changes)
            except OverflowError as problem:
                raise Invalid(f"a number given to {operation.name} is too large: {problem}") from problem
            finally:
                steps.close()
                changes.stop()

        return verb

    def _build_follower(self, operation: Operation) -> Callable[..., Any]:
        assert operation.steps is not None
        begin = operation.steps

        def verb(*args: Any, **kwargs: Any) -> "Following":
            return Following(self, begin(self._store, *args, **kwargs))

        return verb

    async def _run_step(self, step: WaitStep, changes: "VerbWaiter") -> Any:
        if step.how == "wait":
            check_wait(self._calls.log.db)
            return await changes.wait(step)
        assert step.job is not None
        act = step.job if step.how == "none" else partial(getattr(self._calls.log.db, step.how), step.job)
        return await self._run_verb(step.how, act, step.undo)

    async def _run_verb(self, through: str, act: Callable[[], Any], undo: Callable[[Any], object] | None) -> Any:
        """Run one step of a verb; undo it if its caller is cancelled."""
        route = self._calls.route(through, route_of(self._calls.log))

        async def undone(result: Any) -> None:
            if undo is not None:
                await await_despite_cancel(Job(lambda: undo(result)), self._calls.route("none", route_of(self._calls.log)))

        return await await_outcome(Job(act), route, undo=undone)

    def _release_claim(self, result: Any) -> None:
        if isinstance(result, Claim):
            result.release("the worker was cancelled")

    def _wrap_result(self, result: Any) -> Any:
        return AsyncClaim(self, result) if isinstance(result, Claim) else result

    async def _insist(self, verb: str, /, *args: Any, **kwargs: Any) -> tuple[Any, bool]:
        """Run a verb even if cancelled; return its result and whether it was cancelled."""
        act = partial(getattr(self._store, verb), *args, **kwargs)
        future, was_cancelled = await await_despite_cancel(Job(act), self._calls.route("write", route_of(self._calls.log)))
        return future.result(), was_cancelled

    async def _watch(self, stream: str | None, wake: Callable[[], None]) -> Callable[[], None]:
        """Call `wake` whenever a stream, or any, may have new entries; return a function that stops it."""
        watch = partial(self._calls.log.db.watch, stream, wake)

        async def stopped(stop: Any) -> None:
            if stop is not None:
                stop()

        stop: Callable[[], None] = await await_outcome(Job(watch), self._calls.route("read", None), undo=stopped)
        return stop


class VerbWaiter:
    """Waits for changes on behalf of a verb, without a thread."""

    def __init__(self, store: AsyncStore) -> None:
        self._store = store
        self._stop: Callable[[], None] | None = None
        self._queue: Hashable = None
        self._semaphore: Semaphore | None = None
        self._is_first = False

    async def wait(self, step: WaitStep) -> None:
        """Wait until something may have changed, or the time is over.

        The first call returns at once, so that the verb sees what was committed before the watch began.
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
        """Queue behind tasks that wait for the same thing, so that not all of them poll at every change."""
        if self._semaphore is None:
            self._queue, self._semaphore = step.queue, self._store._calls.queues.join(step.queue)
        self._is_first = await self._semaphore.acquire(step.patience)
        return self._is_first

    def _wake(self) -> None:
        self._moved.set()

    def stop(self) -> None:
        if self._stop is not None:
            self._stop()
        self._leave_queue()

    def _leave_queue(self) -> None:
        """Leave the queue, so that the next one polls."""
        if self._semaphore is not None:
            if self._is_first:
                self._semaphore.release()
            self._store._calls.queues.leave(self._queue)
            self._semaphore, self._is_first = None, False


class Following:
    """An endless iterator. A caller that was cancelled may continue later and misses nothing."""

    def __init__(self, store: AsyncStore, steps: Generator[Any, Any, None]) -> None:
        self._store = store
        self._steps = steps
        self._changes = VerbWaiter(store)
        self._step: Any = None
        self._found: Any = None
        self._ready: deque[Any] = deque()

    def __aiter__(self) -> "Following":
        return self

    async def __anext__(self) -> Any:
        while not self._ready:
            if self._step is None:
                self._step = self._next()
            if isinstance(self._step, WaitStep):
                self._found = await self._store._run_step(self._step, self._changes)
            else:
                self._ready.extend(self._step)
                self._found = None
            self._step = None
        return self._ready.popleft()

    def _next(self) -> Any:
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


class AsyncClaim:
    """Holds a claimed task.

    As an asynchronous context manager it extends the lease in the background, finishes the task when the block ends, fails it
    when the block raises, and releases it when the block is cancelled. A task that the block has ended stays ended. Writes in
    the block belong to the task and raise `LeaseLost` once the lease is lost.
    """

    # What workers use most of the task, with its types; `__getattr__` has the rest.
    id: str
    run_id: str
    group_id: str | None
    title: str
    state: TaskState
    fence: int

    def __init__(self, tasks: AsyncStore, claim: Claim) -> None:
        self._tasks = tasks
        self._claim = claim
        self._keeper: _Keeper | None = None
        self.lessons: list[Any] = claim.lessons

    @property
    def task(self) -> Task:
        """The task as it was when its lease was last extended, or ended."""
        return self._claim.task

    @property
    def is_over(self) -> bool:
        """Whether the task has ended, in any way."""
        return self._claim.is_over

    @property
    def lost(self) -> LeaseLost | None:
        """Why the lease is no longer kept alive; None while it is."""
        return self._claim.lost or (None if self._keeper is None else self._keeper.lost)

    def __getattr__(self, name: str) -> Any:
        if name == "_claim":
            raise AttributeError(name)  # a copy that is being made has none yet
        return getattr(self._claim.task, name)

    def as_dict(self) -> dict[str, Any]:
        return self._claim.as_dict()

    async def extend(self, *, stage: str | None = None, state_name: str | None = None) -> Task:
        """Extend the lease by another term, and optionally record the stage of the work."""
        self._claim.check_valid()
        named: dict[str, Any] = {"lease_seconds": self._claim.lease_seconds, "stage": stage, "state_name": state_name}
        task: Task = await self._tasks.extend(self.task.id, fence=self.task.fence, **named)
        if not self.is_over:
            self._claim.set_task(task, is_over=False)
        return task

    async def finish(self, summary: str | None = None, result: object = None) -> Task:
        """End the task as done."""
        return await self._end("finish", summary=summary, result=result)

    async def fail(self, summary: str | None = None, *, blocker: str | None = None, retry_after_seconds: float = 0.0) -> Task:
        """End the attempt as failed."""
        return await self._end("fail", summary=summary, blocker=blocker, retry_after_seconds=retry_after_seconds)

    async def block(self, blocker: str, summary: str | None = None) -> Task:
        """Block the task until something outside changes."""
        return await self._end("block", blocker=blocker, summary=summary)

    async def release(self, reason: str | None = None, *, not_before: datetime | None = None) -> Task:
        """Release the task unharmed; nobody gets it before `not_before`."""
        return await self._end("release", reason=reason, not_before=not_before)

    async def park(self, reason: str) -> Task:
        """Set the task aside while it waits for something outside."""
        return await self._end("park", reason=reason)

    async def _end(self, verb: str, **arguments: Any) -> Task:
        """End the task even if cancelled meanwhile: a half-ended task would be blocked until its lease expires."""
        self._claim.check_valid()
        task: Task
        with self._resting():
            task, was_cancelled = await self._tasks._insist(verb, self.task.id, fence=self.task.fence, **arguments)
            self._claim.set_task(task, is_over=True)
        if was_cancelled:
            raise loops.cancellation()
        return task

    @contextmanager
    def _resting(self) -> Iterator[None]:
        """Pause the extension of the lease: a task that is being ended would be taken for lost."""
        if self._keeper is None:
            yield
            return
        self._keeper.is_resting = True
        try:
            yield
        finally:
            self._keeper.is_resting = False

    # The block

    async def __aenter__(self) -> Self:
        self._claim.check_valid()
        self._keeper = _Keeper(self)
        self._keeper.start()
        self._claim.enter_context()
        return self

    async def __aexit__(self, kind: Any, problem: BaseException | None, _: Any) -> None:
        self._claim.leave_context()
        assert self._keeper is not None
        self._keeper.stop()
        if loops.is_cancellation(problem):
            await self._give_back()
        elif self.is_over or isinstance(problem, LeaseLost):
            return
        elif self.lost is not None:
            raise self.lost
        elif problem is None:
            await self.finish()
        else:
            await self.fail(f"{kind.__name__}: {problem}", blocker=kind.__name__)

    async def _give_back(self) -> None:
        if self.is_over or self.lost is not None:
            return
        try:
            await self._end("release", reason="the worker was cancelled")
        except LeaseLost:
            return  # somebody else has it, and this worker stops anyhow


class _Keeper:
    """Extends a claim's lease in a background task. Do not await it: it may wait for a lock of the claim's task."""

    def __init__(self, claim: AsyncClaim) -> None:
        self._claim = claim
        self._stopped = loops.signal()
        self._is_stopped = False
        self.is_resting = False
        self.lost: LeaseLost | None = None

    def start(self) -> None:
        context = copy_context()
        context.run(forget)
        loops.spawn(self._run, f"lease of {self._claim.task.id}", context)

    def stop(self) -> None:
        self._is_stopped = True
        self._stopped.set()

    async def _run(self) -> None:
        seconds = self._claim._claim.lease_seconds
        kept = time.monotonic()
        while True:
            # Three tries fit into a lease, so that one slow commit does not lose it.
            await self._stopped.wait(seconds / 3)
            if self._is_stopped:
                return
            if self._claim.is_over or self.is_resting:
                continue  # until its block is left: a transaction that is undone may undo the end as well
            try:
                await self._claim.extend()
                kept = time.monotonic()
            except Exception as problem:  # noqa: BLE001 - any error is passed to the worker
                if self._is_over(problem, time.monotonic() - kept > seconds):
                    return

    def _is_over(self, problem: Exception, is_late: bool) -> bool:
        """Decide whether a lease that could not be extended is lost; it may outlive the trouble."""
        if self._is_stopped or self._claim.is_over or self.is_resting:
            return self._is_stopped
        self.lost = self._claim._claim.loss(problem, is_late=is_late)
        return self.lost is not None
