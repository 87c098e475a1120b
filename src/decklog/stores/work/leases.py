"""Leases: what a worker may do with a task while it is the worker's own.

A lease has a number that only grows. Whoever comes with an older number has lost the task, whatever it did meanwhile.
"""

from datetime import timedelta
from functools import cache

from decklog.errors import Invalid, LeaseLost
from decklog.operations import writes
from decklog.stores.base import Store
from decklog.stores.work.task import Outcome, Task, TaskState

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Protocol

    class Reserving(Protocol):
        """Budgets that money can be held from."""

        def reserve(self, expires_at: Any, **amounts_and_place: Any) -> Any: ...
        def extend(self, reservation_id: str, expires_at: Any) -> Any: ...
        def settle(self, reservation_id: str) -> Any: ...


DEFAULT_LEASE_SECONDS = 300.0
LONGEST_SECONDS = 366 * 86400.0


class Leases(Store):
    """Lets a worker extend, finish, fail or give back what it has claimed."""

    reservations = None  # type: Reserving | None

    def _settle(self, task: Task) -> None:
        """End a task's reservation: what was charged under it stays, the rest is free again."""
        if task.reservation_id is not None and self.reservations is not None:
            self.reservations.settle(task.reservation_id)

    @writes
    def extend(
        self,
        task_id: str,
        *,
        fence: int,
        lease_seconds: float = DEFAULT_LEASE_SECONDS,
        stage: str | None = None,
        state_name: str | None = None,
    ) -> Task:
        """Keep a lease alive for so many seconds from now; may also say at which stage the work is."""
        check_span(lease_seconds, "lease_seconds")
        changes: dict[str, Any] = {"leased_until": self.now() + timedelta(seconds=lease_seconds)}
        if stage is not None:
            changes["stage"] = stage
        if state_name is not None:
            changes["state_name"] = state_name
        task = self._held(task_id, fence, changes)
        if task.reservation_id is not None and self.reservations is not None:
            self.reservations.extend(task.reservation_id, task.leased_until)
        return task

    @writes
    def finish(self, task_id: str, *, fence: int, summary: str | None = None, result: object = None) -> Task:
        """End a task as done; tasks that waited for it may become ready.

        A worker that did not hear the answer may say it again: with the same fence the task comes back as it is.
        """
        try:
            return self._finish(task_id, fence, summary, result)
        except LeaseLost:
            task = self.fetch(Task, task_id)
            if task.state == TaskState.DONE and task.fence == fence:
                return task.marked_already()
            raise

    def _finish(self, task_id: str, fence: int, summary: str | None, result: object) -> Task:
        ending = _ending(Outcome.DONE, TaskState.DONE, summary=summary, result=result, blocker=None, blocker_repeats=0)
        task = self._held(task_id, fence, ending, note=summary or "done")
        self._free_dependents(task_id)
        return task

    def _free_dependents(self, task_id: str) -> None:
        bound = {"task_id": task_id}
        if self.db.one("select 1 from dependencies where depends_on = :task_id limit 1", bound) is not None:
            self.change_all(
                Task,
                """
                update tasks set open_dependencies = open_dependencies - 1, updated_at = :now
                 where id in (select task_id from dependencies where depends_on = :task_id)
                   and open_dependencies > 0
                returning *
                """,
                note=f"{task_id} is done",
                task_id=task_id,
                now=self.now(),
            )

    @writes
    def fail(
        self,
        task_id: str,
        *,
        fence: int,
        summary: str | None = None,
        blocker: str | None = None,
        result: object = None,
        retry_after_seconds: float = 0.0,
    ) -> Task:
        """End an attempt as failed: the task goes back, or is blocked once its attempts are used.

        `blocker` names what stood in the way; `blocker_repeats` then counts how often in a row it was the same.
        """
        if retry_after_seconds != 0:
            check_span(retry_after_seconds, "retry_after_seconds")
        task = self._must_hold(task_id, fence)
        used_up = task.failures + 1 >= task.max_attempts
        repeats = 0 if blocker is None else task.blocker_repeats + 1 if blocker == task.blocker else 1
        reason = f"all {task.max_attempts} attempts are used" if used_up else None
        ending = _ending(
            Outcome.FAILED,
            TaskState.BLOCKED if used_up else TaskState.PENDING,
            summary=summary,
            result=result,
            blocker=blocker,
            blocker_repeats=repeats,
            failures=task.failures + 1,
            reason=reason or summary,
            not_before=self.now() + timedelta(seconds=retry_after_seconds) if retry_after_seconds > 0 else None,
        )
        return self._held(task_id, fence, ending, note=f"failed: {summary or blocker or ''}")

    @writes
    def block(self, task_id: str, *, fence: int, blocker: str, summary: str | None = None) -> Task:
        """Give a task up until something outside changes; `resume` makes it ready again."""
        task = self._must_hold(task_id, fence)
        repeats = task.blocker_repeats + 1 if blocker == task.blocker else 1
        ending = _ending(
            Outcome.BLOCKED,
            TaskState.BLOCKED,
            summary=summary,
            blocker=blocker,
            blocker_repeats=repeats,
            reason=summary or blocker,
        )
        return self._held(task_id, fence, ending, note=f"blocked: {blocker}")

    @writes
    def release(self, task_id: str, *, fence: int, reason: str | None = None) -> Task:
        """Give a task back unharmed: it is ready again, and no attempt is used."""
        ending = _ending(Outcome.RELEASED, TaskState.PENDING, reason=reason)
        return self._held(task_id, fence, ending, note=f"released: {reason or ''}")

    @writes
    def park(self, task_id: str, *, fence: int, reason: str) -> Task:
        """Set a task aside while it waits for something outside, such as CI or an answer; `resume` makes it ready again."""
        return self._held(task_id, fence, _ending(Outcome.PARKED, TaskState.WAITING, reason=reason), note=f"waits: {reason}")

    def _must_hold(self, task_id: str, fence: int) -> Task:
        """Read a task for a decision, and make sure that this worker has it."""
        found = self.select(Task, "select * from tasks where id = :task_id for update", task_id=task_id)
        if not found:
            raise self.refusal(Task, task_id)
        if found[0].state != TaskState.RUNNING or found[0].fence != fence:
            raise _lost(found[0], fence)
        return found[0]

    def _held(self, task_id: str, fence: int, changes: "dict[str, Any]", note: str | None = None) -> Task:
        """Change a task only if this worker still has it."""
        changed = self.change_all(
            Task,
            _held_update(tuple(changes)),
            note=note,
            task_id=task_id,
            fence=fence,
            now=self.now(),
            **{f"new_{name}": value for name, value in changes.items()},
        )
        if not changed:
            present = self.seek(Task, task_id)
            raise self.refusal(Task, task_id) if present is None else _lost(present, fence)
        if changed[0].state != TaskState.RUNNING:
            self._settle(changed[0])
        return changed[0]


@cache
def _held_update(names: "tuple[str, ...]") -> str:
    """Write the update that changes these fields of a task which is still the worker's own."""
    assignments = ", ".join(f"{name} = :new_{name}" for name in names)
    return f"""
    update tasks set {assignments}, updated_at = :now
     where id = :task_id and fence = :fence and state = 'running'
    returning *
    """


def check_span(seconds: float, field: str) -> None:
    """Refuse a span of time that is none, or that no clock reaches."""
    if not 0 < seconds <= LONGEST_SECONDS:
        raise Invalid(f"{field} is {seconds:g}; it goes from more than 0 to {LONGEST_SECONDS:g}", field=field)


def _ending(outcome: Outcome, state: TaskState, **fields: "Any") -> "dict[str, Any]":
    return {"state": state, "outcome": outcome, "worker": None, "leased_until": None, **fields}


def _lost(task: Task, fence: int) -> LeaseLost:
    holder = f"; {task.worker} has it with fence {task.fence}" if task.worker else ""
    return LeaseLost(
        f"task {task.id} is no longer yours: it is {task.state}{holder}",
        hint="Stop working on it; claim another.",
        task_id=task.id,
        state=task.state.value,
        fence=task.fence,
        yours=fence,
    )
