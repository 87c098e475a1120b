"""Tasks: what a run has to do, in which order, and why something can't be done yet."""

from datetime import datetime

from decklog.db.where import Where, enum_of, page_size
from decklog.errors import Conflict, Invalid, NotFound
from decklog.operations import reads, writes
from decklog.records import Page, from_json
from decklog.stores.of_run import check_run
from decklog.stores.work import ready_tags
from decklog.stores.work.claimable import GOES_ON, TAGGED, spelled_tag
from decklog.stores.work.leases import Leases
from decklog.stores.work.task import Attempt, AttemptOutcome, Dependency, Task, TaskState, attempts_from, checked, listed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import Any

    from decklog.records import Record

ENDED = (TaskState.DONE, TaskState.ABANDONED)
ENDED_RUN = ("completed", "failed", "cancelled")

# What a claim would take now; a lease that expired at the last attempt leaves its task blocked.
_CLAIMABLE = f"""
((state = 'pending' and open_dependencies = 0 and (not_before is null or not_before <= :now)
  or state = 'running' and leased_until < :steady_now and failures + 1 < max_attempts)
 and run_id in (select id from runs where {GOES_ON}))
"""


class Tasks(Leases):
    """Plans tasks, gives them to workers one at a time, and keeps what came of each attempt."""

    records = (Task, Dependency)
    derived = (ready_tags.TABLE,)

    def audit(self, _record_classes: "dict[str, type[Record]]") -> "Iterator[dict[str, Any]]":
        """Name what is wrong with the tags by which tasks are claimed, each as the fields of a problem."""
        return ready_tags.audit(self._db)

    def derive(self) -> None:
        """Make those tags anew, as after records came from another log."""
        self._db.write(lambda: ready_tags.derive(self._db))

    @writes
    def add(
        self,
        run_id: str,
        title: str,
        *,
        objective: str = "",
        task_id: str | None = None,
        group_id: str | None = None,
        priority: int = 50,
        role: str | None = None,
        tags: list[str] | None = None,
        acceptance: list[str] | None = None,
        verification: list[str] | None = None,
        allowed_paths: list[str] | None = None,
        inputs: dict[str, object] | None = None,
        depends_on: list[str] | None = None,
        not_before: datetime | None = None,
        max_attempts: int = 3,
        stage: str | None = None,
        state_name: str | None = None,
        trace_file: str | None = None,
        loop_version: int | None = None,
        key: str | None = None,
    ) -> Task:
        """Add a task to a run. With an id or key that is known already, that task comes back as it is."""
        given = checked({name: value for name, value in locals().items() if name not in ("self", "run_id")})
        needed, now = given.pop("depends_on"), self._now()
        identity = given.pop("task_id") or self._ids.new("task")
        task = self._add_once(
            run_id,
            lambda: self._known(run_id, task_id, key),
            lambda: self.add_record(
                id=identity,
                run_id=run_id,
                state=TaskState.PENDING,
                open_dependencies=self._count_open(run_id, needed),
                created_at=now,
                updated_at=now,
                **given,
            ),
        )
        if not task.already:
            self._check_goes_on(run_id)
            for other in needed:
                self._add(Dependency, run_id=run_id, task_id=task.id, depends_on=other)
        return task

    def add_record(self, **fields: "Any") -> Task:
        """Insert a task as it is given. Importers use it; others use `add`."""
        return self._add(Task, note=fields["title"], **fields)

    def _add_once(self, run_id: str, find: "Callable[[], Task | None]", add: "Callable[[], Task]") -> Task:
        """Add a task unless it is known; when something it refers to is missing, look first whether that is its run."""
        try:
            return self._once(find, add)
        except NotFound:
            check_run(self._db, run_id)
            raise

    def _check_goes_on(self, run_id: str) -> None:
        """Refuse a run that is over: what is added to it could never be claimed."""
        status = self._db.one("select status from runs where id = :run_id", {"run_id": run_id})
        if status is not None and status[0] in ENDED_RUN:
            raise Conflict(
                f"run {run_id} is {status[0]}; nobody would get what is added to it",
                hint=f"Take it up again first: decklog runs update {run_id} --status active",
                run_id=run_id,
                status=status[0],
            )

    def _known(self, run_id: str, task_id: str | None, key: str | None) -> Task | None:
        if task_id is not None and (task := self._seek(Task, task_id)) is not None:
            if task.run_id != run_id:
                raise Conflict(
                    f"task {task_id} is of run {task.run_id}, not of {run_id}; an id is good for one task in the whole log",
                    hint="Choose another id, or give a key: keys are the run's own.",
                    task_id=task_id,
                    run_id=task.run_id,
                )
            return task
        if key is None:
            return None
        found = self._select(Task, "select * from tasks where run_id = :run_id and key = :key", run_id=run_id, key=key)
        return found[0] if found else None

    def _count_open(self, run_id: str, needed: list[str]) -> int:
        """Count what a task has to wait for: tasks of its own run, since a run is moved, forked and kept by itself."""
        count = 0
        for task_id in needed:
            found = self._select(Task, "select * from tasks where id = :task_id for update", task_id=task_id)
            if not found:
                raise NotFound(f"there is no task {task_id} to depend on", task_id=task_id)
            if found[0].run_id != run_id:
                raise Invalid(
                    f"task {task_id} is of run {found[0].run_id}; a task depends on tasks of its own run, {run_id}",
                    hint="Wait for another run with not_before, or by parking the task until it is done.",
                    field="depends_on",
                )
            count += found[0].state != TaskState.DONE
        return count

    @writes
    def add_many(self, run_id: str, tasks: list[dict[str, object]]) -> list[Task]:
        """Add several tasks at once, each given as the arguments of `add`; one may depend on another that comes later."""
        return [self.add(run_id, **task) for task in _in_order(listed(tasks))]

    @writes
    def depend(self, task_id: str, depends_on: str) -> Task:
        """Make a pending task wait for another one; a circle is refused."""
        task = self._fetch(Task, task_id)
        # Two that are added at once may close a circle together: a run's plan is changed by one at a time.
        self._db.lock_stream(task.run_id)
        self._select(
            Task,
            "select * from tasks where id = :one or id = :other order by id for update",
            one=task_id,
            other=depends_on,
            run_id=task.run_id,
        )
        circle = self._path(depends_on, task_id)
        if circle is not None:
            raise Conflict(f"this would be a circle: {' -> '.join([task_id, *circle])}", circle=[task_id, *circle])
        if self._seek(Dependency, (task_id, depends_on)) is not None:
            return task.marked_already()
        still_open = self._count_open(task.run_id, [depends_on])
        self._add(Dependency, run_id=task.run_id, task_id=task_id, depends_on=depends_on)
        return self._change(
            Task,
            task_id,
            """
            update tasks set open_dependencies = open_dependencies + :more, updated_at = :now
             where id = :id and state = 'pending'
            returning *
            """,
            note=f"waits for {depends_on}",
            more=still_open,
            now=self._now(),
        )

    def _path(self, start: str, goal: str) -> list[str] | None:
        """Find how one task depends on another, if it does."""
        paths, seen = [[start]], {start}
        while paths:
            path = paths.pop()
            if path[-1] == goal:
                return path
            for needed in self.dependencies(path[-1]):
                if needed not in seen:
                    seen.add(needed)
                    paths.append([*path, needed])
        return None

    @reads
    def dependencies(self, task_id: str) -> list[str]:
        """List the tasks that a task depends on."""
        _, rows = self._db.rows(
            "select depends_on from dependencies where task_id = :task_id order by depends_on", {"task_id": task_id}
        )
        return [row[0] for row in rows]

    @reads
    def get(self, task_id: str) -> Task:
        """Get a task."""
        return self._fetch(Task, task_id)

    @reads
    def find(
        self,
        run_id: str,
        *,
        state: TaskState | None = None,
        group_id: str | None = None,
        role: str | None = None,
        tag: str | None = None,
        worker: str | None = None,
        limit: int = 20,
        after: str | None = None,
    ) -> Page[Task]:
        """List a run's tasks in the order they were added."""
        check_run(self._db, run_id)
        where = Where(Task)
        where.equal(
            run_id=run_id, state=state and enum_of(TaskState, state, "state"), group_id=group_id, role=role, worker=worker
        )
        if tag is not None:
            where.add(TAGGED, tag=spelled_tag(tag))
        return self._page(Task, where, order=("created_at", "id"), limit=limit, after=after)

    @reads
    def why_none(
        self, run_id: str | None = None, *, group_id: str | None = None, role: str | None = None, tag: str | None = None
    ) -> "dict[str, Any]":
        """Say why a claim gets nothing, as a code and in words, and what would help."""
        from decklog.stores.work.unclaimed import explain

        if run_id is not None:
            check_run(self._db, run_id)
        wanted = {"group_id": group_id, "role": role, "tag": tag}
        return explain(self._db, run_id, wanted, self._now(), self._steady_now())

    @reads
    def ready(self, run_id: str, *, limit: int = 20) -> "dict[str, Any]":
        """List what could be claimed now, most urgent first, and why the rest can't."""
        check_run(self._db, run_id)
        now = self._now()
        return {
            "ready": [task.as_dict() for task in self._open(run_id, _CLAIMABLE, now, limit)],
            "not_ready": [
                {"id": task.id, "title": task.title, "state": task.state.value, "why": self._reason(task, now)}
                for task in self._open(run_id, f"not {_CLAIMABLE}", now, limit)
            ],
        }

    def _open(self, run_id: str, condition: str, now: datetime, limit: int) -> list[Task]:
        """List the most urgent of a run's open tasks that meet a condition."""
        return self._select(
            Task,
            f"""
            select * from tasks
             where run_id = :run_id and state <> 'done' and state <> 'abandoned' and {condition}
             order by priority desc, created_at, id
             limit {page_size(limit)}
            """,
            run_id=run_id,
            now=now,
            steady_now=self._steady_now(),
        )

    def _reason(self, task: Task, now: datetime) -> str:
        """Say why a task can't be claimed."""
        match task.state:
            case TaskState.RUNNING if task.leased_until is not None:
                left = task.leased_until - self._steady_now()
                if left.total_seconds() < 0:
                    return f"the lease of {task.worker} expired, and all {task.max_attempts} attempts are used"
                return f"{task.worker} has it until {now + left:%H:%M:%S}"
            case TaskState.PENDING if task.open_dependencies:
                return f"waits for {', '.join(self._unfinished(task.id))}"
            case TaskState.PENDING if task.not_before is not None and task.not_before > now:
                return f"not before {task.not_before:%Y-%m-%d %H:%M:%S}"
            case TaskState.PENDING:
                return f"run {task.run_id} is paused or over"
        return f"{task.state}: {task.reason}" if task.reason else str(task.state)

    def _unfinished(self, task_id: str) -> list[str]:
        _, rows = self._db.rows(
            """
            select d.depends_on, t.state
              from dependencies d join tasks t on t.id = d.depends_on
             where d.task_id = :task_id and t.state <> 'done'
             order by d.depends_on
            """,
            {"task_id": task_id},
        )
        return [f"{name} ({state})" for name, state in rows]

    # What a person, or the loop above the workers, does

    @writes
    def pause(self, task_id: str, *, reason: str, fence: int | None = None, snapshot: dict[str, object] | None = None) -> Task:
        """Pause a task and keep what its worker was doing.

        Without a fence it is taken from whoever has it, who gets `LeaseLost` on the next call.
        """
        if fence is not None:
            self._must_hold(task_id, fence)
        return self._move(
            task_id, TaskState.PAUSED, AttemptOutcome.PAUSED, reason, ("pending", "running", "waiting", "blocked"), snapshot
        )

    @writes
    def resume(self, task_id: str) -> Task:
        """Make a paused, waiting or blocked task ready again; its snapshot is there for the next worker."""
        task = self._fetch(Task, task_id)
        if task.state == TaskState.PENDING:
            return task.marked_already()
        return self._change(
            Task,
            task_id,
            """
            update tasks set state = 'pending', reason = null, not_before = null, updated_at = :now,
              failures = case when failures >= max_attempts then max_attempts - 1 else failures end
             where id = :id and (state = 'paused' or state = 'waiting' or state = 'blocked')
            returning *
            """,
            note="resumed",
            now=self._now(),
        )

    @writes
    def abandon(self, task_id: str, *, reason: str) -> Task:
        """Give a task up for good; whoever has it loses it."""
        task = self._fetch(Task, task_id)
        if task.state == TaskState.ABANDONED:
            return task.marked_already()
        lawful = ("pending", "running", "waiting", "blocked", "paused")
        return self._move(task_id, TaskState.ABANDONED, AttemptOutcome.ABANDONED, reason, lawful, None)

    def _move(
        self,
        task_id: str,
        state: TaskState,
        outcome: AttemptOutcome,
        reason: str,
        lawful: tuple[str, ...],
        snapshot: dict[str, object] | None,
    ) -> Task:
        """Move a task from outside; the fence grows, so that a worker who has it finds out."""
        kept = "snapshot = :snapshot," if snapshot is not None else ""
        lawful_states = " or ".join(f"state = '{name}'" for name in lawful)
        moved = self._change(
            Task,
            task_id,
            f"""
            update tasks set
              state = :state, reason = :reason, {kept} fence = fence + 1, worker = null, leased_until = null,
              outcome = case when state = 'running' then :outcome else outcome end, updated_at = :now
             where id = :id and ({lawful_states})
            returning *
            """,
            note=f"{state}: {reason}",
            state=state,
            outcome=outcome,
            reason=reason,
            snapshot=snapshot,
            now=self._now(),
        )
        self._settle(moved)
        return moved

    @writes
    def replan(
        self, run_id: str, tasks: list[dict[str, object]], *, reason: str = "replanned", include_running: bool = False
    ) -> list[Task]:
        """Put new tasks in place of the pending ones, all in one transaction; running ones are left alone unless asked."""
        check_run(self._db, run_id)
        also = " or state = 'running'" if include_running else ""
        abandoned = self._change_all(
            Task,
            f"""
            update tasks set
              state = 'abandoned', reason = :reason, fence = fence + 1, worker = null, leased_until = null,
              outcome = case when state = 'running' then 'abandoned' else outcome end, updated_at = :now
             where run_id = :run_id and (state = 'pending'{also})
            returning *
            """,
            note=f"abandoned: {reason}",
            run_id=run_id,
            reason=reason,
            now=self._now(),
        )
        for task in abandoned:
            self._settle(task)
        return self.add_many(run_id, tasks)

    @reads
    def attempts(self, task_id: str) -> list[Attempt]:
        """List the attempts at a task, oldest first, as the journal tells them."""
        self._fetch(Task, task_id)
        _, rows = self._db.rows(
            """
            select payload from entries
             where record_table = 'tasks' and record_id = :task_id
             order by seq
            """,
            {"task_id": task_id},
        )
        return self.attempts_in(from_json(row[0]) for row in rows)

    def attempts_in(self, images: "Iterable[dict[str, Any]]") -> list[Attempt]:
        """Read the attempts that tasks' images tell of, given in their order; the earliest comes first."""
        versions: dict[str, list[Task]] = {}
        for image in images:
            versions.setdefault(image["id"], []).append(Task.from_image(image))
        attempts = [attempt for tasks in versions.values() for attempt in attempts_from(tasks)]
        return sorted(attempts, key=lambda attempt: (attempt.started_at, attempt.task_id))


def _in_order(tasks: "list[dict[str, Any]]") -> "list[dict[str, Any]]":
    """Order tasks so that each comes after those of the list it depends on; refuse a circle, naming it."""
    named = {str(task["task_id"]): task for task in tasks if task.get("task_id")}
    ordered: list[dict[str, Any]] = []
    done: set[int] = set()

    def visit(task: "dict[str, Any]", path: list[str]) -> None:
        if id(task) in done:
            return
        name = str(task.get("task_id") or "")
        if name and name in path:
            circle = [*path[path.index(name) :], name]
            raise Conflict(f"these tasks depend on each other in a circle: {' -> '.join(circle)}", circle=circle)
        for needed in task.get("depends_on") or []:
            if needed in named:
                visit(named[needed], [*path, name])
        done.add(id(task))
        ordered.append(task)

    for task in tasks:
        visit(task, [])
    return ordered
