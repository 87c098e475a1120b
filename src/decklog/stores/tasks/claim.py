"""A claim in Python: a task that is yours for the length of a with block, and the check of its fence."""

import time
from collections.abc import Callable
from datetime import datetime
from typing import Any, Protocol, Self

from decklog.core.errors import DecklogError, LeaseLost, NotFound, OutcomeUnknown
from decklog.db.base import Database
from decklog.journal import attribution
from decklog.stores.tasks.task import AttemptOutcome, Task, TaskState


def lease_check(task_id: str, fence: int) -> Callable[[Database], None]:
    """Make the check that a task is still held with a fence; the one that has lost it gets `LeaseLost`."""

    def check(db: Database) -> None:
        names, rows = db.rows("select * from tasks where id = :task_id", {"task_id": task_id})
        if not rows:
            raise NotFound(f"there is no task {task_id}", table=Task.table, id=task_id)
        task = Task.from_row(names, rows[0])
        if task.state != TaskState.RUNNING or task.fence != fence:
            raise lost(task, fence)

    return check


def ending(outcome: AttemptOutcome, state: TaskState, **fields: Any) -> dict[str, Any]:
    return {"state": state, "outcome": outcome, "worker": None, "leased_until": None, **fields}


def lost(task: Task, fence: int) -> LeaseLost:
    holder = f"; {task.worker} has it with fence {task.fence}" if task.worker else ""
    return LeaseLost(
        f"task {task.id} is no longer yours: it is {task.state}{holder}",
        hint="Stop working on it; claim another: decklog next",
        task_id=task.id,
        state=task.state.value,
        fence=task.fence,
        yours=fence,
    )


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
    def release(self, task_id: str, *, fence: int, reason: str | None = None, not_before: datetime | None = None) -> Task: ...
    def park(self, task_id: str, *, fence: int, reason: str) -> Task: ...
    def lease_check(self, task_id: str, fence: int) -> Callable[[Database], None]: ...
    def if_undone(self, act: Callable[[], None]) -> None: ...


class Claim:
    """Holds a claimed task.

    As a context manager it keeps the lease alive from a background thread, finishes the task when the block ends, and fails it
    when the block raises. What the block already ended (`finish`, `fail`, `block`, `release`, `park`) stays so. What is
    written in the block is about the task, and refused (`LeaseLost`) once the lease is lost.
    """

    # What workers use most of the task, with its types; `__getattr__` has the rest.
    id: str
    run_id: str
    group_id: str | None
    title: str
    state: "TaskState"
    fence: int

    def __init__(self, leases: Ending, task: Task, lease_seconds: float) -> None:
        self._leases = leases
        self._lease_seconds = lease_seconds
        # Made on entering the block: most claims are never used as one.
        self._keeper: _Keeper | None = None
        self._void: LeaseLost | None = None
        self.task = task
        self.lessons: list[Any] = []
        self.is_over = False
        self._is_entered = False

    def __getattr__(self, name: str) -> Any:
        if name == "task":
            raise AttributeError(name)  # a copy that is being made has none yet
        return getattr(self.task, name)

    @property
    def lost(self) -> LeaseLost | None:
        """Why the lease is no longer kept alive; None while it is."""
        return self._void or (None if self._keeper is None else self._keeper.lost)

    def void(self) -> None:
        """Hold nothing any more: the transaction in which the task was claimed was undone.

        A caller that claims it next gets the same fence, so nothing may be said with this one.
        """
        self._rest()
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
        """Keep the lease alive for another term; may also say at which stage the work is."""
        self.check_valid()
        task = self._leases.extend(
            self.task.id, fence=self.task.fence, lease_seconds=self._lease_seconds, stage=stage, state_name=state_name
        )
        self.become(task, is_over=self.is_over)
        return task

    def finish(self, summary: str | None = None, result: object = None) -> Task:
        """End the task as done."""
        return self._end(self._leases.finish, summary=summary, result=result)

    def fail(self, summary: str | None = None, *, blocker: str | None = None, retry_after_seconds: float = 0.0) -> Task:
        """End the attempt as failed."""
        return self._end(self._leases.fail, summary=summary, blocker=blocker, retry_after_seconds=retry_after_seconds)

    def block(self, blocker: str, summary: str | None = None) -> Task:
        """Return the task up until something outside changes."""
        return self._end(self._leases.block, blocker=blocker, summary=summary)

    def release(self, reason: str | None = None, *, not_before: datetime | None = None) -> Task:
        """Give the task back unharmed; nobody gets it before `not_before`."""
        return self._end(self._leases.release, reason=reason, not_before=not_before)

    def park(self, reason: str) -> Task:
        """Set the task aside while it waits for something outside."""
        return self._end(self._leases.park, reason=reason)

    @property
    def lease_seconds(self) -> float:
        """How long each term of the lease is."""
        return self._lease_seconds

    def loss(self, problem: Exception, *, is_late: bool) -> LeaseLost | None:
        """Return why a lease is lost that could not be extended; None when the next try may go well.

        The lease may outlive the trouble; once its time is over, nobody knows whose the task is.
        """
        if isinstance(problem, LeaseLost):
            return None if _is_finished(problem) else problem
        return None if _may_pass(problem) and not is_late else _not_kept(self.task, problem)

    def _end(self, verb: Any, **arguments: Any) -> Task:
        self.check_valid()
        self._rest()
        try:
            task: Task = verb(self.task.id, fence=self.task.fence, **arguments)
        except DecklogError:
            self._keep_on()  # it was not ended, and is the worker's for as long as the block lasts
            raise
        self.become(task, is_over=True)
        return task

    def check_valid(self) -> None:
        """Refuse to go on with a claim that was undone."""
        if self._void is not None:
            raise self._void

    def become(self, task: Task, *, is_over: bool) -> None:
        """Be what the task is now, until a transaction that is undone makes it again what it was."""
        before = self.task, self.is_over
        self._leases.if_undone(lambda: self._go_back(*before))
        self.task, self.is_over = task, is_over

    def _go_back(self, task: Task, is_over: bool) -> None:
        self.task, self.is_over = task, is_over
        self._keep_on()

    def _keep_on(self) -> None:
        """Keep the lease alive again in the block, unless it is over or lost."""
        if self._is_entered and not self.is_over and self.lost is None:
            self._keep()

    def _keep(self) -> None:
        self._rest()
        self._keeper = _Keeper(self)
        self._keeper.start()

    # The block

    def take_up(self) -> None:
        """Write about the task from here on, in this context, and only while the lease lasts."""
        who = {"task_id": self.task.id, "group_id": self.task.group_id}
        self._layer = attribution.ContextLayer(who, check=self._check_held, claim=self, holds=(self.task.id, self.task.fence))
        attribution.enter(self._layer)

    def lay_down(self) -> None:
        """Write about the task no longer; blocks of other claims in this context go on."""
        attribution.leave(self._layer)

    def follow(self, task: Task, fence: int) -> None:
        """Be what the task is now if a verb changed it with this claim's fence: what ended it has ended the claim."""
        if (task.id, fence) != (self.task.id, self.task.fence) or self.is_over:
            return
        is_over = task.state != "running"
        if is_over:
            self._rest()
        self.become(task, is_over=is_over)

    def __enter__(self) -> Self:
        self.check_valid()
        self._keep()
        self._is_entered = True
        self.take_up()
        return self

    def __exit__(self, kind: Any, problem: BaseException | None, _: Any) -> None:
        self._is_entered = False
        self.lay_down()
        self._rest()
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
            self._leases.lease_check(self.task.id, self.task.fence)(db)

    def _rest(self) -> None:
        if self._keeper is not None:
            self._keeper.stop()


class _Keeper:
    """Extends a claim's lease from a separate thread.

    Nobody waits for that thread: it may itself wait for a transaction of the caller that stops it. The fence refuses what it does
    after that.
    """

    def __init__(self, claim: Claim) -> None:
        from threading import Event, Lock  # most claims never start a thread

        self._claim = claim
        self._seconds = claim._lease_seconds
        self._stopped = Event()
        self._deciding = Lock()
        self.lost: LeaseLost | None = None

    def start(self) -> None:
        from threading import Thread

        name = f"lease of {self._claim.task.id}"
        Thread(target=self._run, name=name, daemon=True).start()

    def stop(self) -> None:
        with self._deciding:
            self._stopped.set()

    def _run(self) -> None:
        kept = time.monotonic()
        # Three tries fit into a lease, so that one slow commit does not lose it.
        while not self._stopped.wait(self._seconds / 3):
            try:
                self._extend()
                kept = time.monotonic()
            except Exception as problem:  # noqa: BLE001 - the worker gets any problem
                lost = self._claim.loss(problem, is_late=time.monotonic() - kept > self._seconds)
                if lost is not None:
                    self._give_up(lost)
                    return

    def _extend(self) -> None:
        claim = self._claim
        task = claim._leases.extend(claim.task.id, fence=claim.task.fence, lease_seconds=self._seconds)
        with self._deciding:
            if not self._stopped.is_set():
                claim.task = task

    def _give_up(self, why: LeaseLost) -> None:
        with self._deciding:
            if not self._stopped.is_set():
                self.lost = why


def _may_pass(problem: Exception) -> bool:
    """Return whether the next try may go well: to extend twice does no harm, so that an unknown outcome is no obstacle."""
    return isinstance(problem, OutcomeUnknown) or (isinstance(problem, DecklogError) and problem.retryable)


def _is_finished(problem: LeaseLost) -> bool:
    """Check whether the task was finished with this claim's own fence: the worker ended it elsewhere, as by a command."""
    return problem.details.get("state") == "done" and problem.details.get("fence") == problem.details.get("yours")


def _not_kept(task: Task, problem: Exception) -> LeaseLost:
    return LeaseLost(
        f"the lease on task {task.id} could not be kept alive: {problem}",
        hint="Stop working on it: another worker may have it. Claim again once the trouble is over.",
        task_id=task.id,
        fence=task.fence,
    )
