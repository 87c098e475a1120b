"""Leases: claims of tasks, and the operations of a worker on a claimed task.

Each lease has a fencing token that only grows. A worker with an older token has lost the task, and its writes are refused.
"""

from collections.abc import Callable, Generator, Mapping
from datetime import datetime, timedelta
from typing import Any, Protocol

from decklog.core.errors import BudgetExceeded, Conflict, Invalid, LeaseLost
from decklog.journal.attribution import list_claims
from decklog.records.operations import WaitStep, call_step, check_wait, read_step, wait_step, waits_to_write, write_step, writes
from decklog.stores.base import Store, StoreParts
from decklog.stores.checks import LONGEST_RESERVATION_SECONDS, check_span, check_time
from decklog.stores.of_run import check_run, given_fields
from decklog.stores.tasks.claim import Claim, end_changes, lease_lost
from decklog.stores.tasks.claimable import (
    EXPIRE_LEASES,
    HOLDER_AND_LINKS,
    PRECHECK_SQL,
    Outlook,
    Patience,
    check_outlook,
    claim_after_finish_sql,
    claim_sql,
    direct_claim_sql,
    list_runs_with_work,
)
from decklog.stores.tasks.task import AttemptOutcome, LinkKind, Task, TaskState

DEFAULT_LEASE_SECONDS = 300.0


class BudgetReserver(Protocol):
    """Budgets that can reserve money."""

    def reserve(
        self,
        expires_at: datetime,
        *,
        amount_microdollars: int,
        tokens: int,
        run_id: str,
        group_id: str | None,
        task_id: str,
        agent: str | None,
        holder: str,
    ) -> Any: ...
    def extend(self, reservation_id: str, expires_at: Any) -> Any: ...
    def get(self, reservation_id: str) -> Any: ...
    def settle(self, reservation_id: str) -> Any: ...


class LessonFinder(Protocol):
    """A memory of earlier failures."""

    def recall(self, query: str) -> list[Any]: ...


class TaskScheduler(Protocol):
    """Schedules that add tasks when they are due."""

    def add_due_tasks(self, run_id: str) -> list[Task]: ...


class Leases(Store):
    """Gives tasks to workers, lets workers extend, finish, fail or release them, and takes back tasks of dead workers."""

    def __init__(
        self,
        parts: StoreParts,
        *,
        reservations: Callable[[], BudgetReserver],
        lessons: Callable[[], LessonFinder],
        schedules: Callable[[], TaskScheduler],
    ) -> None:
        super().__init__(parts)
        self._reservations = reservations
        self._lessons = lessons
        self._schedules = schedules

    @waits_to_write
    def claim(
        self,
        run_id: str | None = None,
        *,
        worker: str,
        task_id: str | None = None,
        group_id: str | None = None,
        role: str | None = None,
        tag: str | None = None,
        lease_seconds: float = DEFAULT_LEASE_SECONDS,
        wait_seconds: float = 0.0,
        reserve_microdollars: int | None = None,
        reserve_tokens: int | None = None,
        recall: bool = False,
    ) -> Generator[WaitStep, Any, Claim | None]:
        """Claim the most urgent, oldest ready task; nothing if no task is ready.

        The task is yours until the lease ends: extend it, and pass its fence with every later call. With `wait_seconds`, wait up
        to that time for a task to become ready. With `task_id`, claim that task or raise `Conflict` with the reason.

        With `reserve_…`, that amount is reserved from the budgets in the same transaction, or nothing is claimed. It is finalized
        when the task ends, and released when the lease expires. With `recall`, lessons from similar work are included.
        """
        if not worker.strip():
            raise Invalid("a worker needs a name", field="worker")
        check_span(lease_seconds, "lease_seconds")
        if wait_seconds > 0:
            check_wait(self._db)
        wanted: dict[str, str] = given_fields({"group_id": group_id, "role": role, "tag": tag})
        if task_id is not None:
            from decklog.stores.tasks.why import check_run_of_task, refuse_claim

            found = yield read_step(lambda: check_run_of_task(self._fetch(Task, task_id), run_id, wanted))
            run_id, wanted = found, {"id": task_id}
        amounts = {"microdollars": reserve_microdollars, "tokens": reserve_tokens}
        patience = Patience(wait_seconds) if wait_seconds > 0 else None

        def claim_one() -> Claim | None:
            task = self._claim(run_id, worker, wanted, lease_seconds, amounts)
            return None if task is None else self._build_claim(task, lease_seconds)

        claim: Claim | None = None
        while claim is None:
            claim = yield write_step(claim_one, undo=self._unclaim)
            if claim is None and (patience is None or not (yield from self._wait_for_task(run_id, worker, wanted, patience))):
                if task_id is not None:
                    yield read_step(lambda: refuse_claim(self._db, self._fetch(Task, task_id), worker, self._times()))
                return None
        if recall:
            about = f"{claim.task.title} {claim.task.objective}"
            claim.lessons = yield call_step(lambda: self._lessons().recall(about), undo=lambda _: self._unclaim(claim))
        return claim

    def _unclaim(self, claim: Claim | None) -> None:
        """Release a task that was claimed for a caller who no longer waits for it."""
        if claim is not None:
            self.release(claim.task.id, fence=claim.task.fence, reason="the worker was cancelled")

    def _build_claim(self, task: Task, lease_seconds: float) -> Claim:
        """Return the claim of a task. A rollback makes it invalid."""
        claim = Claim(self, task, lease_seconds)
        self.if_undone(claim.void)
        return claim

    def if_undone(self, act: Callable[[], None]) -> None:
        """Call `act` if the caller's transaction is rolled back."""
        self._db.if_undone(act)

    def _wait_for_task(
        self, run_id: str | None, worker: str, wanted: dict[str, str], patience: Patience
    ) -> Generator[WaitStep, Any, bool]:
        """Wait until there may be a task to claim. The check takes no lock; only a claim locks the run."""
        filters = given_fields({**wanted, "run_id": run_id, "worker": worker})
        found = Outlook(is_ready=False, is_shared=True, seconds=0.0)
        while not found.is_ready and not patience.over():
            # With assigned tasks one waiter can't check for the others, so each checks separately.
            queue = ("claim", run_id, *wanted.items(), None if found.is_shared else worker)
            yield wait_step(patience.step(found.seconds), run_id, queue=queue, patience=patience.left())
            found = yield read_step(lambda: check_outlook(self._db, filters, self._times()))
        return found.is_ready

    def _claim(
        self,
        run_id: str | None,
        worker: str,
        wanted: dict[str, str],
        lease_seconds: float,
        amounts: dict[str, int | None] | None = None,
    ) -> Task | None:
        now = self._now()
        for run in [run_id] if run_id is not None else list_runs_with_work(self._db, worker, now):
            if (task := self._claim_next(run, worker, wanted, now, lease_seconds)) is not None:
                until = now + timedelta(seconds=lease_seconds)
                return self._reserve(task, amounts, until) if amounts and any(amounts.values()) else task
        if run_id is not None:
            # An empty result would mean a run with nothing left to do, so check that the run exists.
            check_run(self._db, run_id)
        return None

    def _reserve(self, task: Task, amounts: Mapping[str, int | None], until: datetime) -> Task:
        """Reserve budget for a task. If a budget refuses, the claim is rolled back."""
        reservation = self._reservations().reserve(
            min(until, self._latest_reservation_end()),
            amount_microdollars=amounts["microdollars"] or 0,
            tokens=amounts["tokens"] or 0,
            run_id=task.run_id,
            group_id=task.group_id,
            task_id=task.id,
            agent=task.worker,
            holder=f"{task.id}#{task.fence}",
        )
        return self._update_held(task.id, task.fence, {"reservation_id": reservation.id}, note=f"reserved {reservation.id}")

    def _latest_reservation_end(self) -> datetime:
        """Return the latest possible end of a reservation. A longer lease extends its reservation."""
        return self._now() + timedelta(seconds=LONGEST_RESERVATION_SECONDS)

    def _times(self) -> dict[str, datetime]:
        """Return the wall-clock time and the time of the lease clock."""
        return {"now": self._now(), "steady_now": self._steady_now()}

    def _claim_next(self, run_id: str, worker: str, filters: dict[str, str], now: datetime, lease_seconds: float) -> Task | None:
        """Claim the next ready task. Tasks that others are claiming at this moment are skipped."""
        steady_now = self._steady_now()
        bound = {"run_id": run_id, "worker": worker, "now": now, "steady_now": steady_now}
        bound |= {"until": steady_now + timedelta(seconds=lease_seconds), **filters}
        names, note = tuple(filters), f"claimed by {worker}"
        taken = self._change_all(Task, direct_claim_sql(names), note=note, **bound)
        if not taken:
            is_expired, is_due, has_own = self._before_claim(run_id, worker, now, steady_now)
            if is_expired or is_due or has_own:
                taken = self._change_all(Task, claim_sql(names), note=note, **bound)
        return taken[0] if taken else None

    def _before_claim(self, run_id: str, worker: str, now: datetime, steady_now: datetime) -> tuple[Any, ...]:
        """Take back expired leases, add due tasks of schedules, and return what was found."""
        bound = {"run_id": run_id, "worker": worker, "now": now, "steady_now": steady_now}
        found = self._db.one(PRECHECK_SQL, self._db.values.bind(bound)[0])
        assert found is not None
        is_expired, is_due, _ = found
        if is_expired:
            self._change_all(Task, EXPIRE_LEASES, note="lease expired", run_id=run_id, now=now, steady_now=steady_now)
        if is_due:
            self._schedules().add_due_tasks(run_id)
        return found

    @writes
    def finish_and_claim(
        self,
        task_id: str,
        *,
        fence: int,
        summary: str | None = None,
        result: object = None,
        group_id: str | None = None,
        role: str | None = None,
        tag: str | None = None,
        lease_seconds: float = DEFAULT_LEASE_SECONDS,
        reserve_microdollars: int | None = None,
        reserve_tokens: int | None = None,
    ) -> Claim | None:
        """Finish a task and claim the next of its run for the same worker, in one transaction.

        Filters and reservations for the next task work as in `claim`. If a budget refuses, the first task is not finished either.
        """
        check_span(lease_seconds, "lease_seconds")
        wanted: dict[str, str] = given_fields({"group_id": group_id, "role": role, "tag": tag})
        amounts = {"microdollars": reserve_microdollars, "tokens": reserve_tokens}
        taken = self._queue_claim(task_id, wanted, lease_seconds)
        done, worker = self._finish(task_id, fence, summary, result)
        task = taken()
        if task is None:
            task = self._claim(done.run_id, worker, wanted, lease_seconds, amounts)
        elif any(amounts.values()):
            task = self._reserve(task, amounts, self._now() + timedelta(seconds=lease_seconds))
        return None if task is None else self._build_claim(task, lease_seconds)

    def _queue_claim(self, finished: str, filters: dict[str, str], lease_seconds: float) -> Callable[[], Task | None]:
        """Send the claim of the next task ahead, together with the finish. The returned function records and returns the task."""
        now, steady_now = self._now(), self._steady_now()
        bound = {"finished": finished, "now": now, "steady_now": steady_now, **filters}
        bound["until"] = steady_now + timedelta(seconds=lease_seconds)
        redacted = self._db.values.bind_into(bound, bound)
        self._lock_stream(Task, {"id": bound["finished"]})
        found = self._db.queue_query(claim_after_finish_sql(tuple(filters)), bound)

        def taken() -> Task | None:
            names, rows = found()
            note = f"claimed by {rows[0][names.index('worker')]}" if rows else None
            tasks = self._record_changes(Task, names, rows, note, redacted)
            return tasks[0] if tasks else None

        return taken

    def _settle_reservation(self, task: Task) -> None:
        """Finalize a task's reservation: charges stay, and the rest is released."""
        if task.raw("reservation_id") is not None:
            self._reservations().settle(task.raw("reservation_id"))

    # What a worker does with a claimed task

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
        """Extend a lease from now; optionally record the stage of the work."""
        given = given_fields({"stage": stage, "state_name": state_name})
        return self._extend(task_id, fence, lease_seconds, given)

    @writes
    def refence(self, task_id: str, *, fence: int, lease_seconds: float = DEFAULT_LEASE_SECONDS) -> Task:
        """Continue a task under a new fence, as after a restart; the old fence is refused."""
        note = f"{task_id} goes on under fence {fence + 1}"
        return self._extend(task_id, fence, lease_seconds, {"fence": fence + 1}, note)

    def _extend(self, task_id: str, fence: int, lease_seconds: float, changes: dict[str, Any], note: str | None = None) -> Task:
        """Extend a lease with its reservation; reserve again if that has expired, as after a clock change."""
        check_span(lease_seconds, "lease_seconds")
        term = timedelta(seconds=lease_seconds)
        task = self._update_held(task_id, fence, {"leased_until": self._steady_now() + term, **changes}, note=note)
        if task.reservation_id is None:
            return task
        reservations, until = self._reservations(), self._now() + term
        try:
            reservations.extend(task.reservation_id, min(until, self._latest_reservation_end()))
            return task
        except Conflict:
            before = reservations.get(task.reservation_id)
        if before.state != "open":
            return task  # the worker released the reservation and did not reserve again
        left = {"microdollars": before.microdollars - before.used_microdollars, "tokens": before.tokens - before.used_tokens}
        try:
            return self._reserve(task, {unit: max(0, amount) for unit, amount in left.items()}, until)
        except BudgetExceeded:
            return task  # the budget is used up by others; this worker's spending still counts against it

    # A worker that has ended a task may repeat the call: the fencing token decides.
    @writes(late=True)
    def finish(self, task_id: str, *, fence: int, summary: str | None = None, result: object = None) -> Task:
        """Finish a task as done; tasks that depend on it may become ready.

        A worker that got no answer may repeat the call: with the same fence the task is returned unchanged.
        """
        try:
            return self._finish(task_id, fence, summary, result)[0]
        except LeaseLost:
            task = self._fetch(Task, task_id)
            if task.state == TaskState.DONE and task.fence == fence:
                return task.mark_already()
            raise

    def _finish(self, task_id: str, fence: int, summary: str | None, result: object) -> tuple[Task, str]:
        """Finish a task as done; return it and its worker."""
        bound, _ = self._db.values.bind({"id": task_id})
        self._lock_stream(Task, bound)
        links = self._db.queue_rows(HOLDER_AND_LINKS, bound)
        changes = end_changes(AttemptOutcome.DONE, TaskState.DONE, summary=summary, result=result)
        changes |= {"blocker": None, "blocker_repeats": 0}
        task = self._update_held(task_id, fence, changes, note=summary or "done")
        found = links()
        for run_id, kind in sorted({(run_id, kind) for _, run_id, kind in found if kind is not None}):
            if kind == LinkKind.PARENT:
                self._check_subtasks_ended(task_id)
            elif kind == LinkKind.BLOCKS:
                self._resolve_dependents(run_id, task_id)
        return task, found[0][0]

    def _check_subtasks_ended(self, task_id: str) -> None:
        """Raise Conflict for a task with open parts, which can't be finished."""
        _, rows = self._db.rows(
            """
            select t.id, t.state from dependencies d join tasks t on t.id = d.task_id
             where d.depends_on = :task_id and d.kind = 'parent' and t.state <> 'done' and t.state <> 'abandoned'
             order by t.id
            """,
            {"task_id": task_id},
        )
        if rows:
            parts = ", ".join(f"{name} ({state})" for name, state in rows[:10])
            raise Conflict(
                f"task {task_id} has {len(rows)} open subtasks and can't be done before them: {parts}",
                hint="Finish or abandon them, or remove one: decklog tasks undepend SUBTASK TASK. To let others do them, "
                f"release it: decklog tasks release {task_id} --fence N",
                task_id=task_id,
                open=[name for name, _ in rows],
            )

    def _resolve_dependents(self, run_id: str, task_id: str) -> None:
        """Resolve the dependencies on a finished task."""
        self._change_all(
            Task,
            """
            update tasks set open_dependencies = open_dependencies - 1, updated_at = :now
             where id in (select task_id from dependencies where depends_on = :task_id and run_id = :run_id and kind = 'blocks')
               and open_dependencies > 0
            returning *
            """,
            note=f"{task_id} is done",
            task_id=task_id,
            run_id=run_id,
            now=self._now(),
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
        """Fail an attempt: the task becomes ready again, or is blocked when its attempts are used up.

        `blocker` names the obstacle; `blocker_repeats` counts how often in a row it was the same. With `retry_after_seconds`,
        nobody can claim the task before that; a later `not_before` of the task stays.
        """
        if retry_after_seconds != 0:
            check_span(retry_after_seconds, "retry_after_seconds")
        task = self._load_held(task_id, fence)
        used_up = task.failures + 1 >= task.max_attempts
        repeats = 0 if blocker is None else task.blocker_repeats + 1 if blocker == task.blocker else 1
        used = [f"all {task.max_attempts} attempts are used"] if used_up else []
        reason = "; ".join([*used, *([summary] if summary else [])]) or None
        later = {}
        if retry_after_seconds > 0:
            retry_at = self._now() + timedelta(seconds=retry_after_seconds)
            later["not_before"] = retry_at if task.not_before is None else max(retry_at, task.not_before)
        changes = end_changes(
            AttemptOutcome.FAILED,
            TaskState.BLOCKED if used_up else TaskState.PENDING,
            summary=summary,
            result=result,
            blocker=blocker,
            blocker_repeats=repeats,
            failures=task.failures + 1,
            reason=reason,
            **later,
        )
        return self._update_held(task_id, fence, changes, note=f"failed: {summary or blocker or ''}")

    @writes
    def block(self, task_id: str, *, fence: int, blocker: str, summary: str | None = None) -> Task:
        """Block a task until something outside changes; `resume` makes it ready again."""
        task = self._load_held(task_id, fence)
        repeats = task.blocker_repeats + 1 if blocker == task.blocker else 1
        changes = end_changes(
            AttemptOutcome.BLOCKED,
            TaskState.BLOCKED,
            summary=summary,
            blocker=blocker,
            blocker_repeats=repeats,
            reason=summary or blocker,
        )
        return self._update_held(task_id, fence, changes, note=f"blocked: {blocker}")

    @writes
    def release(self, task_id: str, *, fence: int, reason: str | None = None, not_before: datetime | None = None) -> Task:
        """Release a task: it is ready again, or will be at `not_before`, and no attempt is used."""
        later = {} if not_before is None else {"not_before": check_time("not_before", not_before)}
        changes = end_changes(AttemptOutcome.RELEASED, TaskState.PENDING, reason=reason, **later)
        return self._update_held(task_id, fence, changes, note=f"released: {reason or ''}")

    @writes
    def park(self, task_id: str, *, fence: int, reason: str) -> Task:
        """Set a task aside while it waits for something outside, such as CI or an answer; `resume` makes it ready again."""
        return self._update_held(
            task_id, fence, end_changes(AttemptOutcome.PARKED, TaskState.WAITING, reason=reason), note=f"waits: {reason}"
        )

    def _load_held(self, task_id: str, fence: int) -> Task:
        """Load a task for update. Raise LeaseLost if this worker no longer has it."""
        found = self._fetch_for_update(Task, task_id)
        if found.state != TaskState.RUNNING or found.fence != fence:
            raise lease_lost(found, fence)
        return found

    def _update_held(self, task_id: str, fence: int, changes: dict[str, Any], note: str | None = None) -> Task:
        """Change fields of a task if this worker still has it. Raise LeaseLost otherwise."""
        is_held = "fence = :fence and state = 'running'"
        task = self._try_update(Task, task_id, changes, condition=is_held, note=note, fence=fence)
        if task is None:
            present = self._seek(Task, task_id)
            raise self._refusal(Task, task_id) if present is None else lease_lost(present, fence)
        for claim in list_claims():
            claim.follow(task, fence)
        if task.state != TaskState.RUNNING:
            self._settle_reservation(task)
        return task
