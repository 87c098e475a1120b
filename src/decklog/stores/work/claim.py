"""A claim in Python: a task that is yours for the length of a `with` block."""

import threading
from time import monotonic

from decklog.errors import LeaseLost
from decklog.operations import lease
from decklog.stores.journal.attribution import acting

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Protocol, Self

    from decklog.db.base import Database
    from decklog.stores.work.task import Task

    class Ending(Protocol):
        """What a claim needs of the tasks: to keep one, and to end it in one of these ways."""

        def extend(
            self, task_id: str, *, fence: int, lease_seconds: float, stage: str | None = None, state_name: str | None = None
        ) -> Task: ...
        def finish(self, task_id: str, *, fence: int, summary: str | None = None, result: object = None) -> Task: ...
        def fail(
            self,
            task_id: str,
            *,
            fence: int,
            summary: str | None = None,
            blocker: str | None = None,
            retry_after_seconds: float = 0.0,
        ) -> Task: ...
        def block(self, task_id: str, *, fence: int, blocker: str, summary: str | None = None) -> Task: ...
        def release(self, task_id: str, *, fence: int, reason: str | None = None) -> Task: ...
        def park(self, task_id: str, *, fence: int, reason: str) -> Task: ...
        def lease_check(self, task_id: str, fence: int) -> Callable[[Database], None]: ...


class Claim:
    """Holds a claimed task.

    As a context manager it keeps the lease alive from a background thread, finishes the task when the block ends, and fails it
    when the block raises. What the block already ended (`finish`, `fail`, `block`, `release`, `park`) stays so.
    """

    def __init__(self, leases: "Ending", task: "Task", lease_seconds: float) -> None:
        self._leases = leases
        self._lease_seconds = lease_seconds
        # Made on entering the block: most claims are never used as one.
        self._stop: threading.Event | None = None
        self.task = task
        self.lessons: list[Any] = []
        self.is_over = False
        # Why the lease is no longer kept alive, when that is not because the claim ended.
        self.lost: Exception | None = None

    def __getattr__(self, name: str) -> "Any":
        if name == "task":
            raise AttributeError("this claim has no task yet")  # as while it is being copied
        return getattr(self.task, name)

    def as_dict(self) -> "dict[str, Any]":
        data = self.task.as_dict()
        if self.lessons:
            data["lessons"] = [lesson.as_dict() if hasattr(lesson, "as_dict") else lesson for lesson in self.lessons]
        return data

    def extend(self, **stage: "Any") -> "Task":
        """Keep the lease alive for another term."""
        task = self._leases.extend(self.task.id, fence=self.task.fence, lease_seconds=self._lease_seconds, **stage)
        if not self.is_over:  # the background may hear late that it kept what has ended since
            self.task = task
        return task

    def finish(self, summary: str | None = None, result: object = None) -> "Task":
        """End the task as done."""
        return self._end(self._leases.finish, summary=summary, result=result)

    def fail(self, summary: str | None = None, *, blocker: str | None = None, retry_after_seconds: float = 0.0) -> "Task":
        """End the attempt as failed."""
        return self._end(self._leases.fail, summary=summary, blocker=blocker, retry_after_seconds=retry_after_seconds)

    def block(self, blocker: str, summary: str | None = None) -> "Task":
        """Give the task up until something outside changes."""
        return self._end(self._leases.block, blocker=blocker, summary=summary)

    def release(self, reason: str | None = None) -> "Task":
        """Give the task back unharmed."""
        return self._end(self._leases.release, reason=reason)

    def park(self, reason: str) -> "Task":
        """Set the task aside while it waits for something outside."""
        return self._end(self._leases.park, reason=reason)

    def _end(self, verb: "Any", **arguments: "Any") -> "Task":
        self._rest()
        task: Task = verb(self.task.id, fence=self.task.fence, **arguments)
        self.is_over = True
        self.task = task
        return task

    # The block

    def __enter__(self) -> "Self":
        self._stop = stop = threading.Event()
        threading.Thread(target=self._keep_alive, args=(stop,), name=f"lease of {self.task.id}", daemon=True).start()
        check = self._leases.lease_check(self.task.id, self.task.fence)
        self._tokens = (
            lease.set(lambda db: None if self.is_over else check(db)),
            acting.set({**(acting.get() or {}), "task_id": self.task.id, "group_id": self.task.group_id}),
        )
        return self

    def __exit__(self, kind: "Any", problem: BaseException | None, _: "Any") -> None:
        lease_token, acting_token = self._tokens
        lease.reset(lease_token)
        acting.reset(acting_token)
        self._rest()
        if self.is_over or isinstance(problem, LeaseLost):
            return
        if isinstance(self.lost, LeaseLost):
            raise self.lost
        if problem is None:
            self.finish()
        else:
            self.fail(f"{kind.__name__}: {problem}", blocker=kind.__name__)

    def _keep_alive(self, stop: threading.Event) -> None:
        """Extend the lease, three times in its length; say in `lost` why that ended, whatever the reason."""
        kept_at, pause = monotonic(), self._lease_seconds / 3
        while not stop.wait(pause):
            try:
                self.extend()
                kept_at, pause = monotonic(), self._lease_seconds / 3
            except Exception as problem:  # noqa: BLE001 - whatever it is, the worker has to hear of it
                left = kept_at + self._lease_seconds - monotonic()
                if not getattr(problem, "retryable", False) or left <= 0:
                    self.lost = problem
                    return
                # A server that restarts or a busy disk: there is time to try again before the lease is over.
                pause = max(0.01, min(self._lease_seconds / 10, left))

    def _rest(self) -> None:
        # Not waited for: it may be waiting for a transaction that the caller holds.
        if self._stop is not None:
            self._stop.set()
