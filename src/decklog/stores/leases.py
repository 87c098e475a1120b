"""Leases: a claim gives one worker a task for a while, with a number that only grows.

Whoever comes with an older number has lost the task, whatever it did meanwhile. Expired leases are taken back inside every
claim, so no daemon is needed.
"""

from datetime import timedelta

from decklog.errors import Invalid, LeaseLost
from decklog.operations import writes, writes_in_steps
from decklog.records import to_json
from decklog.stores.base import Store
from decklog.stores.claim import Claim
from decklog.stores.task import Outcome, Task, TaskState

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

DEFAULT_LEASE_SECONDS = 300.0
LONGEST_SECONDS = 366 * 86400.0

_EXPIRED = """
update tasks set
  state = case when failures + 1 >= max_attempts then 'blocked' else 'pending' end,
  reason = 'the lease of ' || worker || ' expired'
    || case when failures + 1 >= max_attempts then '; all ' || max_attempts || ' attempts are used' else '' end,
  failures = failures + 1,
  outcome = 'expired',
  summary = null,
  result = null,
  worker = null,
  leased_until = null,
  updated_at = :now
where run_id = :run_id
  and state = 'running'
  and leased_until < :now
returning *
"""


class Leases(Store):
    """Gives tasks to workers and takes them back."""

    @writes_in_steps
    def claim(
        self,
        run_id: str | None = None,
        *,
        worker: str,
        group_id: str | None = None,
        role: str | None = None,
        tag: str | None = None,
        lease_seconds: float = DEFAULT_LEASE_SECONDS,
        wait_seconds: float = 0.0,
    ) -> Claim | None:
        """Take the most urgent, oldest ready task; None when there is none.

        The task is yours until the lease ends: extend it, and show its fence with every later call. With `wait_seconds`, wait
        so long for a task to become ready.
        """
        if not worker.strip():
            raise Invalid("a worker needs a name", field="worker")
        _check_span(lease_seconds, "lease_seconds")
        wanted = {"group_id": group_id, "role": role, "tag": tag}
        patience = _Patience(wait_seconds)
        while True:
            task = self.db.write(lambda: self._claim(run_id, worker, wanted, lease_seconds))
            if task is not None:
                return Claim(self, task, lease_seconds)
            if patience.over():
                return None
            self.db.wait_for_change(patience.left())

    def _claim(self, run_id: str | None, worker: str, wanted: "dict[str, str | None]", lease_seconds: float) -> Task | None:
        for run in [run_id] if run_id is not None else self._runs_with_work():
            self._take_back(run)
            if (task := self._take(run, worker, wanted, lease_seconds)) is not None:
                return task
        return None

    def _runs_with_work(self) -> list[str]:
        """Name the runs with tasks that are ready or running, in order of urgency."""
        _, rows = self.db.rows(
            """
            select run_id, max(priority) as urgency, min(created_at) as oldest
              from tasks
             where (state = 'pending' and open_dependencies = 0) or state = 'running'
             group by run_id
             order by urgency desc, oldest, run_id
            """,
            {},
        )
        return [row[0] for row in rows]

    def _take_back(self, run_id: str) -> None:
        now = self.now()
        bound, _ = self.db.values.bind({"run_id": run_id, "now": now})
        late = self.db.one(
            "select 1 from tasks where run_id = :run_id and state = 'running' and leased_until < :now limit 1", bound
        )
        if late is not None:
            self.change_all(Task, _EXPIRED, note="lease expired", run_id=run_id, now=now)

    def _take(self, run_id: str, worker: str, wanted: "dict[str, str | None]", lease_seconds: float) -> Task | None:
        now = self.now()
        narrowed = "".join(f"and {name} = :{name}\n" for name in ("group_id", "role") if wanted[name] is not None)
        if wanted["tag"] is not None:
            narrowed += "and replace(tags, :tag, '') <> tags\n"
        taken = self.change_all(
            Task,
            f"""
            update tasks set
              state = 'running',
              worker = :worker,
              fence = fence + 1,
              attempts = attempts + 1,
              leased_at = :now,
              leased_until = :until,
              outcome = null,
              reason = null,
              updated_at = :now
            where id = (
              select id from tasks
               where run_id = :run_id
                 and state = 'pending'
                 and open_dependencies = 0
                 and (not_before is null or not_before <= :now)
                 {narrowed}
               order by priority desc, created_at, id
               limit 1 for update skip locked
            )
            returning *
            """,
            note=f"claimed by {worker}",
            run_id=run_id,
            worker=worker,
            now=now,
            until=now + timedelta(seconds=lease_seconds),
            group_id=wanted["group_id"],
            role=wanted["role"],
            tag=to_json(wanted["tag"]) if wanted["tag"] is not None else None,
        )
        return taken[0] if taken else None

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
        _check_span(lease_seconds, "lease_seconds")
        changes: dict[str, Any] = {"leased_until": self.now() + timedelta(seconds=lease_seconds)}
        if stage is not None:
            changes["stage"] = stage
        if state_name is not None:
            changes["state_name"] = state_name
        return self._held(task_id, fence, changes)

    @writes
    def finish(self, task_id: str, *, fence: int, summary: str | None = None, result: object = None) -> Task:
        """End a task as done; tasks that waited for it may become ready."""
        return self._finish(task_id, fence, summary, result)

    @writes
    def finish_and_claim(
        self,
        task_id: str,
        *,
        fence: int,
        summary: str | None = None,
        result: object = None,
        lease_seconds: float = DEFAULT_LEASE_SECONDS,
    ) -> Claim | None:
        """End a task as done and take the next of its run for the same worker, in one transaction."""
        _check_span(lease_seconds, "lease_seconds")
        worker = self.fetch(Task, task_id).worker
        done = self._finish(task_id, fence, summary, result)
        task = self._claim(done.run_id, worker or "", {"group_id": None, "role": None, "tag": None}, lease_seconds)
        return None if task is None else Claim(self, task, lease_seconds)

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
            _check_span(retry_after_seconds, "retry_after_seconds")
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
        assignments = ", ".join(f"{name} = :new_{name}" for name in changes)
        changed = self.change_all(
            Task,
            f"""
            update tasks set {assignments}, updated_at = :now
             where id = :task_id and fence = :fence and state = 'running'
            returning *
            """,
            note=note,
            task_id=task_id,
            fence=fence,
            now=self.now(),
            **{f"new_{name}": value for name, value in changes.items()},
        )
        if not changed:
            present = self.seek(Task, task_id)
            raise self.refusal(Task, task_id) if present is None else _lost(present, fence)
        return changed[0]


def _check_span(seconds: float, field: str) -> None:
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


class _Patience:
    """How long a claim may wait, in steps short enough to notice expired leases and start times."""

    def __init__(self, seconds: float) -> None:
        import time

        self._clock = time.monotonic
        self._end = self._clock() + seconds

    def left(self) -> float:
        return min(1.0, max(0.0, self._end - self._clock()))

    def over(self) -> bool:
        return self._clock() >= self._end
