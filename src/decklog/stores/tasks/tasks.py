"""Tasks: the work of a run, its order, and why a task can't be claimed yet."""

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any, Unpack

from decklog.core.errors import Conflict, Invalid, NotFound
from decklog.db.where import Where, page_size
from decklog.records.operations import reads, writes
from decklog.records.record import Page, Record
from decklog.records.values import from_json
from decklog.stores.checks import check_filled
from decklog.stores.of_run import check_open, check_run, parse_cleared
from decklog.stores.results.tasks import ClaimExplanation, ReadyTasks, TaskDetails
from decklog.stores.tasks.claimable import HAS_TAG, READY_TAGS, RUN_IS_ACTIVE, audit_tags, derive_tags, format_tag
from decklog.stores.tasks.links import Links
from decklog.stores.tasks.task import (
    CLEARABLE,
    EDITABLE,
    EDITABLE_WHILE_RUNNING,
    Attempt,
    AttemptOutcome,
    Dependency,
    LinkKind,
    NewTasks,
    Task,
    TaskComment,
    TaskFields,
    TaskState,
    TaskStateLike,
    all_runs_condition,
    build_attempts,
    check_task_fields,
    check_task_list,
    default_values,
    not_editable,
    sort_by_dependencies,
    with_defaults,
)
from decklog.stores.tasks.why import explain_no_claim, explain_task, explain_wait

# Tasks that can be claimed now. A lease that expired at the last attempt leaves its task blocked.
_CLAIMABLE = f"""
((state = 'pending' and open_dependencies = 0 and (not_before is null or not_before <= :now)
  or state = 'running' and leased_until < :steady_now and failures + 1 < max_attempts)
 and run_id in (select id from runs where {RUN_IS_ACTIVE}))
"""


# A change from outside. The fencing token grows, so that the worker is refused.
_TAKE_BACK = """
update tasks set
  state = :state, reason = :reason, fence = fence + 1, worker = null, leased_until = null,
  outcome = case when state = 'running' then :outcome else outcome end, updated_at = :now
"""


class Tasks(Links):
    """Plans tasks, gives them to workers one at a time, and records the result of each attempt."""

    records = (Task, Dependency, TaskComment)
    derived = (READY_TAGS,)

    def audit(self, _record_classes: Mapping[str, type[Record]]) -> Iterator[dict[str, Any]]:
        """Yield problems of the tags of claimable tasks."""
        return audit_tags(self._db)

    def derive(self) -> None:
        """Rebuild the tags of claimable tasks, for example after an import from another log."""
        self._db.write(lambda: derive_tags(self._db))

    @writes
    def add(
        self,
        run_id: str,
        title: str,
        *,
        task_id: str | None = None,
        depends_on: list[str] | None = None,
        assigned_to: str | None = None,
        parent_id: str | None = None,
        key: str | None = None,
        **fields: Unpack[TaskFields],
    ) -> Task:
        """Add a task to a run. A task with a known id or key is returned unchanged.

        The default priority is 50, from 0 to 100, and the default number of attempts 3. A known task that was added with other
        values is a `Conflict` that names the fields. With `parent_id` it is a subtask of that task, which can't be done before
        it.
        """
        given = check_task_fields({"title": title, **with_defaults(fields), "assigned_to": assigned_to, "key": key})
        linked = check_task_fields({"depends_on": depends_on, "parent_id": parent_id, "task_id": task_id})
        needed, parent, now = linked["depends_on"], linked["parent_id"], self._now()
        identity = linked["task_id"] or self._ids.new("task")
        try:
            task = self._find_or_add(
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
        except NotFound:
            # A missing run explains any other missing reference.
            check_run(self._db, run_id)
            raise
        links = {**dict.fromkeys(needed, LinkKind.BLOCKS), **({} if parent is None else {parent: LinkKind.PARENT})}
        if task.already:
            self._check_same(task, {**given, **({} if task_id is None else {"id": task_id})}, links)
            return task
        check_open(self._db, run_id, "tasks can't be added to it")
        for other in needed:
            self._add(Dependency, run_id=run_id, task_id=task.id, depends_on=other)
        if parent is not None:
            self.depend(task.id, parent, kind=LinkKind.PARENT)
        return task

    def _check_same(self, task: Task, given: dict[str, Any], links: dict[str, LinkKind]) -> None:
        """Refuse to add a task again with other values than it has or had when it was added."""
        first = self._db.one(
            "select payload from entries where record_table = 'tasks' and record_id = :id order by seq limit 1", {"id": task.id}
        )
        defaults = Task._column_defaults()
        added = {} if first is None else Task.upcast(from_json(first[0]))
        bound, _ = self._db.values.bind(given)
        now, _ = self._db.values.bind({name: getattr(task, name) for name in given})
        # Default values count as not given, and later edits do not conflict with a repeated call.
        differing = [name for name in bound if bound[name] not in (now[name], added.get(name), defaults[name])]
        new_kinds = self._list_new_kinds(task.id, links)
        differing += sorted({"depends_on" if kind == LinkKind.BLOCKS else "parent_id" for kind in new_kinds})
        if differing:
            raise Conflict(
                f"task {task.id} already exists, with another {' and another '.join(differing)}",
                hint=f"Change it: decklog tasks edit {task.id}. Or give the new task another id and key.",
                task_id=task.id,
                fields=differing,
            )

    def add_record(self, **fields: Any) -> Task:
        """Insert a task with the given fields. For importers; other callers use `add`."""
        return self._add(Task, note=fields["title"], **fields)

    def _known(self, run_id: str, task_id: str | None, key: str | None) -> Task | None:
        if task_id is not None and (task := self._seek(Task, task_id)) is not None:
            if task.run_id != run_id:
                raise Conflict(
                    f"task {task_id} belongs to run {task.run_id}, not to {run_id}; ids are unique in the whole log",
                    hint="Choose another id, or give a key: keys are unique per run.",
                    task_id=task_id,
                    run_id=task.run_id,
                )
            return task
        return self._seek_by(Task, run_id=run_id, key=key)

    @writes
    def add_many(self, run_id: str, tasks: NewTasks) -> list[Task]:
        """Add several tasks at once, each given as the arguments of `add`; one may depend on another that comes later."""
        whole = sort_by_dependencies(check_task_list(tasks))
        added = [self.add(run_id, **{name: value for name, value in task.items() if name != "parent_id"}) for task in whole]
        # A parent may depend on its own parts, so parents are linked after all tasks exist.
        for task, given in zip(added, whole, strict=True):
            if given.get("parent_id") is None:
                continue
            parent = check_filled("parent_id", given["parent_id"])
            if task.already:
                self._check_same(task, {}, {parent: LinkKind.PARENT})
            else:
                self.depend(task.id, parent, kind=LinkKind.PARENT)
        return added

    @writes
    def edit(
        self,
        task_id: str,
        *,
        reason: str,
        title: str | None = None,
        clear: list[str] | None = None,
        **fields: Unpack[TaskFields],
    ) -> Task:
        """Change the given fields of a task and keep the rest; `clear` names fields to empty.

        While a worker has the task, only priority, role, tags, not_before and max_attempts can change. Done and abandoned tasks
        can't be changed.
        """
        all_fields = {"title": title, **fields}
        given = check_task_fields({name: all_fields[name] for name in EDITABLE if all_fields.get(name) is not None})
        changes = given | default_values(parse_cleared(clear, CLEARABLE, given))
        if not changes:
            raise Invalid("no changes given", field="task_id")
        return self._set(task_id, changes, f"edited {', '.join(changes)}: {check_filled('reason', reason)}")

    @writes
    def assign(self, task_id: str, worker: str | None = None, *, reason: str | None = None) -> Task:
        """Reserve a task for one worker, so that only this worker can claim it; without a worker, for anybody again.

        A worker that has the task keeps it.
        """
        to = None if worker is None else check_filled("worker", worker)
        note = f"assigned to {to}" if to is not None else "assigned to nobody"
        return self._set(task_id, {"assigned_to": to}, f"{note}: {reason}" if reason else note)

    def _set(self, task_id: str, changes: dict[str, Any], note: str) -> Task:
        """Set fields of an unfinished task. Only some may change while a worker has it."""
        task = self._fetch_for_update(Task, task_id)
        differing = self._differing_fields(task, changes)
        if not differing:
            return task.mark_already()
        relied_on = [name for name in differing if name not in (*EDITABLE_WHILE_RUNNING, "assigned_to")]
        also = "" if relied_on else " or state = 'running'"
        allowed_states = f"(state = 'pending' or state = 'waiting' or state = 'blocked' or state = 'paused'{also})"
        changed = self._try_update(Task, task_id, differing, condition=allowed_states, note=note)
        if changed is None:
            raise not_editable(task, relied_on)
        return changed

    @reads
    def get(self, task_id: str) -> Task:
        """Get a task."""
        return self._fetch(Task, task_id)

    @reads
    def details(self, task_id: str) -> TaskDetails:
        """Show a task with its status, links, subtasks, attempts and latest comments."""
        task = self.get(task_id)
        where = Where(TaskComment, task_id=task_id)
        comments = self._page(TaskComment, where, order=("created_at", "id"), limit=20, after=None, descending=True)
        return {
            "task": task.as_dict(),
            "why": explain_task(self._db, task, self._now(), self._steady_now()),
            **self._describe_links(task),
            "attempts": [attempt.as_dict() for attempt in self.attempts(task_id)],
            "comments": [comment.as_dict() for comment in reversed(comments)],
        }

    @reads
    def find(
        self,
        run_id: str | None = None,
        *,
        state: TaskStateLike | None = None,
        group_id: str | None = None,
        role: str | None = None,
        tag: str | None = None,
        worker: str | None = None,
        assigned_to: str | None = None,
        limit: int = 20,
        after: str | None = None,
    ) -> Page[Task]:
        """List a run's tasks in the order they were added.

        Without a run, list running, waiting, blocked or paused tasks of all runs, the latest change first.
        """
        where = Where(Task)
        if run_id is not None:
            check_run(self._db, run_id)
        else:
            where.add(all_runs_condition(state))
        where.equal(run_id=run_id, state=state, group_id=group_id, role=role, worker=worker, assigned_to=assigned_to)
        if tag is not None:
            where.add(HAS_TAG, tag=format_tag(tag))
        order = ("created_at" if run_id is not None else "updated_at", "id")
        return self._page(Task, where, order=order, limit=limit, after=after, descending=run_id is None)

    @reads
    def why_none(
        self,
        run_id: str | None = None,
        *,
        worker: str | None = None,
        group_id: str | None = None,
        role: str | None = None,
        tag: str | None = None,
    ) -> ClaimExplanation:
        """Explain why a claim returns nothing, with a code, a message and a hint."""
        if run_id is not None:
            check_run(self._db, run_id)
        wanted = {"group_id": group_id, "role": role, "tag": tag, "worker": worker}
        return explain_no_claim(self._db, run_id, wanted, self._now(), self._steady_now())

    @reads
    def ready(self, run_id: str, *, limit: int = 20) -> ReadyTasks:
        """List the tasks that can be claimed now, most urgent first, and why the others can't."""
        check_run(self._db, run_id)
        now, steady_now = self._now(), self._steady_now()
        return {
            "ready": [task.as_dict() for task in self._open(run_id, _CLAIMABLE, now, limit)],
            "not_ready": [
                {
                    "id": task.id,
                    "title": task.title,
                    "state": task.state.value,
                    "why": explain_wait(self._db, task, now, steady_now)[1],
                }
                for task in self._open(run_id, f"not {_CLAIMABLE}", now, limit)
            ],
        }

    def _open(self, run_id: str, condition: str, now: datetime, limit: int) -> list[Task]:
        """List the most urgent of a run's open tasks that match a condition."""
        where = Where(Task, run_id=run_id)
        where.add(f"state <> 'done' and state <> 'abandoned' and {condition}", now=now, steady_now=self._steady_now())
        return self._list(Task, where, order="priority desc, created_at, id", limit=page_size(limit))

    # Operations of people and orchestrators

    @writes
    def pause(self, task_id: str, *, reason: str, fence: int | None = None, snapshot: dict[str, object] | None = None) -> Task:
        """Pause a task and keep what its worker was doing.

        Without a fence, its worker loses it and gets `LeaseLost` on the next call.
        """
        if fence is not None:
            self._load_held(task_id, fence)
        return self._move(task_id, TaskState.PAUSED, AttemptOutcome.PAUSED, reason, snapshot)

    @writes
    def resume(self, task_id: str) -> Task:
        """Resume a paused, waiting or blocked task; its snapshot is kept for the next worker."""
        task = self._fetch_for_update(Task, task_id)
        if task.state == TaskState.PENDING:
            return task.mark_already()
        # A task without attempts left gets one more.
        changes: dict[str, Any] = {"state": "pending", "reason": None, "not_before": None}
        changes["failures"] = min(task.failures, task.max_attempts - 1)
        allowed_states = "(state = 'paused' or state = 'waiting' or state = 'blocked')"
        return self._update(Task, task_id, changes, condition=allowed_states, note="resumed")

    @writes
    def abandon(self, task_id: str, *, reason: str) -> Task:
        """Abandon a task for good; its worker loses it."""
        task = self._fetch_for_update(Task, task_id)
        if task.state == TaskState.ABANDONED:
            return task.mark_already()
        return self._move(task_id, TaskState.ABANDONED, AttemptOutcome.ABANDONED, reason)

    def _move(
        self, task_id: str, state: TaskState, outcome: AttemptOutcome, reason: str, snapshot: dict[str, object] | None = None
    ) -> Task:
        """Change an unfinished task's state from outside."""
        task = self._fetch_for_update(Task, task_id)
        changes: dict[str, Any] = {"state": state, "reason": reason, "worker": None, "leased_until": None}
        if task.state == TaskState.RUNNING:
            changes["outcome"] = outcome
        if snapshot is not None:
            changes["snapshot"] = snapshot
        allowed_states = "state <> :to and state <> 'done' and state <> 'abandoned'"
        note = f"{state}: {reason}"
        moved = self._update(Task, task_id, changes, adding={"fence": 1}, condition=allowed_states, note=note, to=state)
        self._settle_reservation(moved)
        return moved

    @writes
    def replan(
        self, run_id: str, tasks: list[dict[str, object]], *, reason: str = "replanned", include_running: bool = False
    ) -> list[Task]:
        """Replace the pending tasks by new ones in one transaction; running ones stay unless requested."""
        check_run(self._db, run_id)
        also = " or state = 'running'" if include_running else ""
        abandoned = self._change_all(
            Task,
            f"{_TAKE_BACK} where run_id = :run_id and (state = 'pending'{also}) returning *",
            note=f"abandoned: {reason}",
            run_id=run_id,
            state=TaskState.ABANDONED,
            outcome=AttemptOutcome.ABANDONED,
            reason=reason,
            now=self._now(),
        )
        for task in abandoned:
            self._settle_reservation(task)
        return self.add_many(run_id, tasks)

    @reads
    def attempts(self, task_id: str) -> list[Attempt]:
        """List the attempts at a task, oldest first, from the journal."""
        self._fetch(Task, task_id)
        sql = "select payload from entries where record_table = 'tasks' and record_id = :task_id order by seq"
        return build_attempts(from_json(row[0]) for row in self._db.rows(sql, {"task_id": task_id})[1])

    def attempts_in(self, images: Iterable[dict[str, Any]]) -> list[Attempt]:
        """Read the attempts from snapshots of tasks in their order; the earliest comes first."""
        return build_attempts(images)
