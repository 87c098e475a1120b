"""A claimed task as a context manager, and the check of its fencing token."""

import time
from collections.abc import Callable
from datetime import datetime
from threading import Event, Lock, Thread
from typing import Any, Protocol, Self

from decklog.core.errors import DecklogError, LeaseLost, NotFound, OutcomeUnknown
from decklog.db.base import Database
from decklog.journal import attribution
from decklog.stores.tasks.task import AttemptOutcome, Task, TaskState


class ClaimOperations(Protocol):
    """The task operations that a claim needs: extend the lease, and end the task in one of several ways."""

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
    def release(self, task_id: str, *, fence: int, reason: str | None = None, not_before: datetime | None = None) -> Task: ...
    def park(self, task_id: str, *, fence: int, reason: str) -> Task: ...
    def if_undone(self, act: Callable[[], None]) -> None: ...


def build_lease_check(task_id: str, fence: int) -> Callable[[Database], None]:
    """Build a check that the task is still claimed with this fencing token. The check raises `LeaseLost` otherwise."""

    def check(db: Database) -> None:
        names, rows = db.rows("select * from tasks where id = :task_id", {"task_id": task_id})
        if not rows:
            raise NotFound(f"there is no task {task_id}", table=Task.table, id=task_id)
        task = Task.from_row(names, rows[0])
        if task.state != TaskState.RUNNING or task.fence != fence:
            raise lease_lost(task, fence)

    return check


def end_changes(outcome: AttemptOutcome, state: TaskState, **fields: Any) -> dict[str, Any]:
    """Return the changes that end an attempt."""
    return {"state": state, "outcome": outcome, "worker": None, "leased_until": None, **fields}


def lease_lost(task: Task, fence: int) -> LeaseLost:
    holder = f"; {task.worker} has it with fence {task.fence}" if task.worker else ""
    return LeaseLost(
        f"task {task.id} is no longer yours: it is {task.state}{holder}",
        hint="Stop working on it; claim another: decklog next",
        task_id=task.id,
        state=task.state.value,
        fence=task.fence,
        yours=fence,
    )


class Claim:
    """A claimed task.

    As a context manager it extends the lease from a background thread, finishes the task when the block ends, and fails it when
    the block raises. A task that the block already ended (`finish`, `fail`, `block`, `release`, `park`) stays as it is. Records
    written in the block belong to the task, and are refused (`LeaseLost`) once the lease is lost.
    """

    # The most used fields of the task, with their types; `__getattr__` has the rest.
    id: str
    run_id: str
    group_id: str | None
    title: str
    state: TaskState
    fence: int

    def __init__(self, leases: ClaimOperations, task: Task, lease_seconds: float) -> None:
        self._leases = leases
        # The length of each term of the lease.
        self.lease_seconds = lease_seconds
        # Created on entering the block: most claims are never used as a context manager.
        self._keeper: _LeaseRenewer | None = None
        self._void: LeaseLost | None = None
        self.task = task
        self.lessons: list[Any] = []
        self.is_over = False
        self._is_entered = False

    def __getattr__(self, name: str) -> Any:
        if name == "task":
            raise AttributeError(name)  # a copy under construction has no task yet
        return getattr(self.task, name)

    @property
    def lost(self) -> LeaseLost | None:
        """Why the lease is no longer extended; None while it is."""
        return self._void or (None if self._keeper is None else self._keeper.lost)

    def void(self) -> None:
        """Invalidate the claim after a rollback of the transaction in which the task was claimed.

        The next claim gets the same fencing token, so this claim must not use it any more.
        """
        self._stop_renewal()
        self._void = LeaseLost(
            f"the claim of task {self.task.id} was undone with the transaction that it was made in",
            hint="Claim again.",
            task_id=self.task.id,
            yours=self.task.fence,
        )

    def as_dict(self) -> dict[str, Any]:
        data = self.task.as_dict()
        if self.lessons:
            data["lessons"] = [lesson.as_dict() if hasattr(lesson, "as_dict") else lesson for lesson in self.lessons]
        return data

    def extend(self, *, stage: str | None = None, state_name: str | None = None) -> Task:
        """Extend the lease for another term, and optionally set the stage of the work."""
        self.check_valid()
        task = self._leases.extend(
            self.task.id, fence=self.task.fence, lease_seconds=self.lease_seconds, stage=stage, state_name=state_name
        )
        self.set_task(task, is_over=self.is_over)
        return task

    def finish(self, summary: str | None = None, result: object = None) -> Task:
        """Finish the task as done."""
        return self._end(self._leases.finish, summary=summary, result=result)

    def fail(self, summary: str | None = None, *, blocker: str | None = None, retry_after_seconds: float = 0.0) -> Task:
        """Fail this attempt."""
        return self._end(self._leases.fail, summary=summary, blocker=blocker, retry_after_seconds=retry_after_seconds)

    def block(self, blocker: str, summary: str | None = None) -> Task:
        """Block the task until something outside changes."""
        return self._end(self._leases.block, blocker=blocker, summary=summary)

    def release(self, reason: str | None = None, *, not_before: datetime | None = None) -> Task:
        """Release the task without a failed attempt. Nobody can claim it before `not_before`."""
        return self._end(self._leases.release, reason=reason, not_before=not_before)

    def park(self, reason: str) -> Task:
        """Suspend the task while it waits for something outside."""
        return self._end(self._leases.park, reason=reason)

    def loss(self, problem: Exception, *, is_late: bool) -> LeaseLost | None:
        """Return why a lease that could not be extended is lost; None if the next try may succeed.

        The lease may outlast a transient failure. After its expiry it is unknown who has the task.
        """
        if isinstance(problem, LeaseLost):
            # The task may have been finished with this fencing token elsewhere, for example by a command.
            known = problem.details
            is_finished = known.get("state") == "done" and known.get("fence") == known.get("yours")
            return None if is_finished else problem
        # Extending twice is harmless, so an unknown outcome may be retried.
        may_pass = isinstance(problem, OutcomeUnknown) or (isinstance(problem, DecklogError) and problem.retryable)
        if may_pass and not is_late:
            return None
        return LeaseLost(
            f"the lease on task {self.task.id} could not be kept alive: {problem}",
            hint="Stop working on it: another worker may have it. Claim again once the trouble is over.",
            task_id=self.task.id,
            fence=self.task.fence,
        )

    def _end(self, verb: Any, **arguments: Any) -> Task:
        self.check_valid()
        self._stop_renewal()
        try:
            task: Task = verb(self.task.id, fence=self.task.fence, **arguments)
        except DecklogError:
            self._start_renewal()  # the task was not ended, so the worker keeps it while the block lasts
            raise
        self.set_task(task, is_over=True)
        return task

    def check_valid(self) -> None:
        """Raise the error of a claim whose transaction was rolled back."""
        if self._void is not None:
            raise self._void

    def set_task(self, task: Task, *, is_over: bool) -> None:
        """Set the current task and whether the claim is over. A rollback restores the previous values."""
        before = self.task, self.is_over

        def go_back() -> None:
            self.task, self.is_over = before
            self._start_renewal()

        self._leases.if_undone(go_back)
        self.task, self.is_over = task, is_over

    def _start_renewal(self) -> None:
        """Extend the lease from a thread in the block, unless the claim is over or lost."""
        if self._is_entered and not self.is_over and self.lost is None:
            self._stop_renewal()
            self._keeper = _LeaseRenewer(self)
            self._keeper.start()

    # The block

    def enter_context(self) -> None:
        """Attribute records of this context to the task from here on, and refuse them once the lease is lost."""
        actor = {"task_id": self.task.id, "group_id": self.task.group_id}
        held_task = (self.task.id, self.task.fence)
        self._layer = attribution.ContextLayer(actor, check=self._check_held, claim=self, held_task=held_task)
        attribution.enter(self._layer)

    def leave_context(self) -> None:
        """Stop attributing records to the task; other claims in this context stay active."""
        attribution.leave(self._layer)

    def follow(self, task: Task, fence: int) -> None:
        """Update the claim if a verb changed its task with this fencing token. If the task ended, the claim is over."""
        if (task.id, fence) != (self.task.id, self.task.fence) or self.is_over:
            return
        is_over = task.state != "running"
        if is_over:
            self._stop_renewal()
        self.set_task(task, is_over=is_over)

    def __enter__(self) -> Self:
        self.check_valid()
        self._is_entered = True
        self._start_renewal()
        self.enter_context()
        return self

    def __exit__(self, kind: Any, problem: BaseException | None, _: Any) -> None:
        self._is_entered = False
        self.leave_context()
        self._stop_renewal()
        if self.is_over or isinstance(problem, LeaseLost):
            return
        if self.lost is not None:
            raise self.lost
        if problem is None:
            self.finish()
        else:
            self.fail(f"{kind.__name__}: {problem}", blocker=kind.__name__)

    def _check_held(self, db: Database) -> None:
        self.check_valid()
        if not self.is_over:
            build_lease_check(self.task.id, self.task.fence)(db)

    def _stop_renewal(self) -> None:
        if self._keeper is not None:
            self._keeper.stop()


class _LeaseRenewer:
    """Extends a claim's lease from a background thread.

    Nobody joins that thread, because it may wait for a transaction of the caller that stops it.
    The fencing token refuses its later writes.
    """

    def __init__(self, claim: Claim) -> None:
        self._claim = claim
        self._seconds = claim.lease_seconds
        self._stopped = Event()
        self._deciding = Lock()
        self.lost: LeaseLost | None = None

    def start(self) -> None:
        name = f"lease of {self._claim.task.id}"
        Thread(target=self._run, name=name, daemon=True).start()

    def stop(self) -> None:
        with self._deciding:
            self._stopped.set()

    def _run(self) -> None:
        kept = time.monotonic()
        # Three tries fit into one lease, so one slow commit does not lose it.
        while not self._stopped.wait(self._seconds / 3):
            try:
                self._extend()
                kept = time.monotonic()
            except Exception as problem:  # noqa: BLE001 - any problem is reported to the worker
                lost = self._claim.loss(problem, is_late=time.monotonic() - kept > self._seconds)
                if lost is not None:
                    with self._deciding:
                        if not self._stopped.is_set():
                            self.lost = lost
                    return

    def _extend(self) -> None:
        claim = self._claim
        task = claim._leases.extend(claim.task.id, fence=claim.task.fence, lease_seconds=self._seconds)
        with self._deciding:
            if not self._stopped.is_set():
                claim.task = task
