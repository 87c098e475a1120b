"""A claim in a task: work that is yours for the length of an `async with` block."""

import time
from contextlib import contextmanager
from contextvars import copy_context
from typing import TYPE_CHECKING

from decklog.aio import loops, transaction
from decklog.core.errors import LeaseLost

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime
    from typing import Any, Self

    from decklog import Claim, Task, TaskState
    from decklog.aio.stores import AsyncStore


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
    state: "TaskState"
    fence: int

    def __init__(self, tasks: "AsyncStore", claim: "Claim") -> None:
        self._tasks = tasks
        self._claim = claim
        self._keeper: _Keeper | None = None
        self.lessons: list[Any] = claim.lessons

    @property
    def task(self) -> "Task":
        """The task as it was when its lease was last extended, or ended."""
        return self._claim.task

    @property
    def is_over(self) -> bool:
        """Whether the task was ended in one of the ways there are."""
        return self._claim.is_over

    @property
    def lost(self) -> LeaseLost | None:
        """Why the lease is no longer kept alive; None while it is."""
        return self._claim.lost or (None if self._keeper is None else self._keeper.lost)

    def __getattr__(self, name: str) -> "Any":
        if name == "_claim":
            raise AttributeError(name)  # a copy that is being made has none yet
        return getattr(self._claim.task, name)

    def as_dict(self) -> "dict[str, Any]":
        return self._claim.as_dict()

    async def extend(self, *, stage: str | None = None, state_name: str | None = None) -> "Task":
        """Keep the lease alive for another term; may also say at which stage the work is."""
        return await self._extend(stage=stage, state_name=state_name)

    async def finish(self, summary: str | None = None, result: object = None) -> "Task":
        """End the task as done."""
        return await self._end("finish", summary=summary, result=result)

    async def fail(self, summary: str | None = None, *, blocker: str | None = None, retry_after_seconds: float = 0.0) -> "Task":
        """End the attempt as failed."""
        return await self._end("fail", summary=summary, blocker=blocker, retry_after_seconds=retry_after_seconds)

    async def block(self, blocker: str, summary: str | None = None) -> "Task":
        """Return the task up until something outside changes."""
        return await self._end("block", blocker=blocker, summary=summary)

    async def release(self, reason: str | None = None, *, not_before: "datetime | None" = None) -> "Task":
        """Give the task back unharmed; nobody gets it before `not_before`."""
        return await self._end("release", reason=reason, not_before=not_before)

    async def park(self, reason: str) -> "Task":
        """Set the task aside while it waits for something outside."""
        return await self._end("park", reason=reason)

    async def _extend(self, **stage: "Any") -> "Task":
        self._claim.check_valid()
        seconds = self._claim.lease_seconds
        task: Task = await self._tasks.extend(self.task.id, fence=self.task.fence, lease_seconds=seconds, **stage)
        if not self.is_over:
            self._claim.become(task, is_over=False)
        return task

    async def _end(self, verb: str, **arguments: "Any") -> "Task":
        """End the task even if cancelled meanwhile: a half-ended task would be blocked until its lease expires."""
        self._claim.check_valid()
        task: Task
        with self._resting():
            task, was_cancelled = await self._tasks._insist(verb, self.task.id, fence=self.task.fence, **arguments)
            self._claim.become(task, is_over=True)
        if was_cancelled:
            raise loops.cancellation()
        return task

    @contextmanager
    def _resting(self) -> "Iterator[None]":
        """Let nobody extend the lease meanwhile: a task that is being ended would be taken for lost."""
        if self._keeper is None:
            yield
            return
        self._keeper.is_resting = True
        try:
            yield
        finally:
            self._keeper.is_resting = False

    # The block

    async def __aenter__(self) -> "Self":
        self._claim.check_valid()
        self._keeper = _Keeper(self)
        self._keeper.start()
        self._claim.take_up()
        return self

    async def __aexit__(self, kind: "Any", problem: BaseException | None, _: "Any") -> None:
        self._claim.lay_down()
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
        context.run(transaction.forget)
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
                await self._claim._extend()
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
