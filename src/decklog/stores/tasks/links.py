"""Links between tasks: dependencies, parents, origins, and comments."""

from collections.abc import Iterator, Sequence

from decklog.core.errors import Conflict, Invalid
from decklog.db.base import Row
from decklog.db.where import Where, parse_enum
from decklog.journal.attribution import acting
from decklog.records.operations import reads, writes
from decklog.records.record import Page
from decklog.records.values import to_json
from decklog.stores.checks import check_filled
from decklog.stores.results.tasks import LinkedTask, TaskExplanation, TaskLinks, TaskProgress
from decklog.stores.tasks.leases import Leases
from decklog.stores.tasks.task import Dependency, LinkKind, LinkKindLike, Task, TaskComment, TaskState
from decklog.stores.tasks.why import explain_task

ENDED = (TaskState.DONE, TaskState.ABANDONED)
# A task shows the first of these states that one of its parts has.
_SHOWN = ("running", "blocked", "waiting", "paused", "pending")
_MOST_PARTS = 10_000
_WITH_PARTS = """
with recursive parts (id) as (
  select task_id from dependencies where depends_on = :task_id and kind = 'parent'
  union
  select d.task_id from parts p join dependencies d on d.depends_on = p.id and d.kind = 'parent'
)
"""
_PARTS = f"""
select t.id, t.title, t.state, d.depends_on, t.worker
  from parts p
  join tasks t on t.id = p.id
  join dependencies d on d.task_id = t.id and d.kind = 'parent'
 order by t.created_at, t.id
 limit {_MOST_PARTS}
"""
# The linked tasks with their direction; then all parts and their parts, in order.
_LINKED = f"""
{_WITH_PARTS}
select 'to' as way, d.kind, t.id, t.title, t.state, cast(null as text) as parent_id, cast(null as text) as worker
  from dependencies d join tasks t on t.id = d.depends_on where d.task_id = :task_id
union all
select 'from', d.kind, t.id, t.title, t.state, null, null
  from dependencies d join tasks t on t.id = d.task_id where d.depends_on = :task_id
union all
select 'part', '', p.* from ({_PARTS}) p
"""
# The name of a link from either end.
_READS = {
    ("to", "blocks"): "waits_for",
    ("from", "blocks"): "holds_back",
    ("to", "parent"): "part_of",
    ("from", "parent"): "subtasks",
    ("to", "related"): "related",
    ("from", "related"): "related",
    ("to", "discovered-from"): "discovered_from",
    ("from", "discovered-from"): "led_to",
}


class Links(Leases):
    """Links tasks with each other, and stores comments."""

    def _count_open(self, run_id: str, needed: list[str]) -> int:
        """Count the unfinished tasks that a task depends on. They must be of the same run, since runs are moved separately."""
        count = 0
        for task_id in needed:
            found = self._fetch_for_update(Task, task_id)
            if found.run_id != run_id:
                raise Invalid(
                    f"task {task_id} is of run {found.run_id}; a task depends only on tasks of its run, {run_id}",
                    hint="Wait for another run with not_before, or by parking the task until it is done.",
                    field="depends_on",
                )
            count += found.state != TaskState.DONE
        return count

    @writes
    def depend(self, task_id: str, depends_on: str, *, kind: LinkKindLike = LinkKind.BLOCKS) -> Task:
        """Link a task with another of its run: as a dependency (`blocks`), as a part of it (`parent`), or as related.

        Only a pending task can get a dependency. A task has one parent, which can't be done before its parts. Cycles are refused,
        and so is a second kind of link between the same two tasks.
        """
        kind = parse_enum(LinkKind, kind, "kind")
        task = self._lock_link(task_id, depends_on)
        present = self._seek(Dependency, (task_id, depends_on))
        if present is not None and present.kind != kind:
            raise Conflict(
                f"task {task_id} is already linked with {depends_on} as {present.kind}",
                hint=f"Remove that link first: decklog tasks undepend {task_id} {depends_on}",
                kind=present.kind.value,
            )
        if present is not None:
            return task.mark_already()
        if kind in (LinkKind.BLOCKS, LinkKind.PARENT):
            first, then = (task_id, depends_on) if kind == LinkKind.BLOCKS else (depends_on, task_id)
            if (path := self._find_path(then, first)) is not None:
                raise Conflict(f"this would be a cycle: {' -> '.join([first, *path])}", circle=[first, *path])
        still_open = self._count_open(task.run_id, [depends_on])
        if kind == LinkKind.PARENT:
            self._check_parent(task, depends_on)
        self._add(Dependency, run_id=task.run_id, task_id=task_id, depends_on=depends_on, kind=kind)
        if kind != LinkKind.BLOCKS:
            return task
        note, more = f"waits for {depends_on}", {"open_dependencies": still_open}
        return self._update(Task, task.id, {}, condition="state = 'pending'", adding=more, note=note)

    def _lock_link(self, task_id: str, other: str) -> Task:
        """Load a task whose links are about to change, and lock both ends of the link."""
        task = self._fetch(Task, task_id)
        # Lock the run's stream: two links that are added at once could form a cycle together.
        self._db.lock_stream(task.run_id)
        self._select(
            Task,
            "select * from tasks where id = :one or id = :other order by id for update",
            one=task_id,
            other=other,
            run_id=task.run_id,
        )
        return self._fetch(Task, task_id)

    def _check_parent(self, task: Task, parent_id: str) -> None:
        """Refuse a second parent, and a finished parent, which would be complete without this part."""
        row = self._db.one("select depends_on from dependencies where task_id = :id and kind = 'parent'", {"id": task.id})
        if row is not None:
            raise Conflict(
                f"task {task.id} already has the parent {row[0]}",
                hint=f"Remove it there first: decklog tasks undepend {task.id} {row[0]}",
                parent_id=row[0],
            )
        parent = self._fetch(Task, parent_id)
        if parent.state in ENDED and task.state not in ENDED:
            raise Conflict(
                f"task {parent_id} is {parent.state}; an open subtask can't be added to it",
                task_id=parent_id,
                state=parent.state.value,
            )

    def _find_path(self, start: str, goal: str) -> list[str] | None:
        """Return the path of dependencies from one task to another; None if there is none."""
        paths, seen = [[start]], {start}
        while paths:
            path = paths.pop()
            if path[-1] == goal:
                return path
            for needed in self._list_prerequisites(path[-1]):
                if needed not in seen:
                    seen.add(needed)
                    paths.append([*path, needed])
        return None

    def _list_prerequisites(self, task_id: str) -> list[str]:
        """Return what must be done before a task: its dependencies and its parts."""
        _, rows = self._db.rows(
            """
            select depends_on from dependencies where task_id = :task_id and kind = 'blocks'
            union
            select task_id from dependencies where depends_on = :task_id and kind = 'parent'
            order by 1
            """,
            {"task_id": task_id},
        )
        return [row[0] for row in rows]

    @writes
    def undepend(self, task_id: str, depends_on: str, *, reason: str | None = None) -> Task:
        """Remove the link between two tasks, of any kind. A task without other dependencies becomes ready.

        Links of done or abandoned tasks stay.
        """
        task = self._lock_link(task_id, depends_on)
        if self._seek(Dependency, (task_id, depends_on)) is None:
            self._fetch(Task, depends_on)
            return task.mark_already()
        if task.state in ENDED:
            raise Conflict(f"task {task_id} is {task.state} and can't be changed", task_id=task_id, state=task.state.value)
        note = f"no longer linked with {depends_on}" + (f": {reason}" if reason else "")
        link = self._remove_one(Dependency, (task_id, depends_on), note=note)
        if link.kind != LinkKind.BLOCKS or self._fetch(Task, depends_on).state == TaskState.DONE:
            return task
        return self._update(Task, task.id, {}, condition="open_dependencies > 0", adding={"open_dependencies": -1}, note=note)

    def _list_new_kinds(self, task_id: str, links: dict[str, LinkKind]) -> Iterator[LinkKind]:
        """Yield the kinds of those links that a task does not have and never had."""
        sql = "select 1 from entries where record_table = 'dependencies' and record_id = :link limit 1"
        for other, kind in links.items():
            if self._db.one(sql, {"link": to_json([task_id, other])}) is None:
                yield kind

    @reads
    def dependencies(self, task_id: str, *, kind: LinkKindLike = LinkKind.BLOCKS) -> list[str]:
        """List the tasks that a task waits for, or is linked with in another way."""
        _, rows = self._db.rows(
            "select depends_on from dependencies where task_id = :task_id and kind = :kind order by depends_on",
            {"task_id": task_id, "kind": parse_enum(LinkKind, kind, "kind").value},
        )
        return [row[0] for row in rows]

    @reads
    def subtasks(self, task_id: str) -> TaskProgress:
        """Return the progress of a task's subtasks, recursively: a state, a progress, and each of them.

        Progress counts the done tasks among those without parts; abandoned ones do not count. The task's state is independent: it
        is done when somebody finishes it, which is possible only after its parts.
        """
        return self._progress(self._fetch(Task, task_id), self._db.rows(_WITH_PARTS + _PARTS, {"task_id": task_id})[1])

    def _progress(self, task: Task, rows: Sequence[Row]) -> TaskProgress:
        parents = {parent for *_, parent, _ in rows}
        states = [state for name, _, state, _, _ in rows if name not in parents and state != TaskState.ABANDONED]
        done = states.count(TaskState.DONE)
        shown = next((state for state in _SHOWN if state in states), TaskState.DONE.value if states else task.state.value)
        return {
            "task_id": task.id,
            "state": shown,
            "progress_percent": done * 100 // len(states) if states else 100 if task.state == TaskState.DONE else 0,
            "done": done,
            "count": len(states),
            "subtasks": [
                {"id": name, "title": title, "state": state, "parent_id": parent, "worker": worker}
                for name, title, state, parent, worker in rows
            ],
        }

    @reads
    def why(self, task_id: str) -> TaskExplanation:
        """Explain why nobody works on a task, what it waits for, and who could claim it.

        Dependencies are listed nearest first, to a depth of 20; `first` names those without open dependencies.
        """
        return explain_task(self._db, self._fetch(Task, task_id), self._now(), self._steady_now())

    # Comments

    @writes
    def comment(self, task_id: str, body: str, *, author: str | None = None) -> TaskComment:
        """Comment on a task in any state; the author is the acting agent unless given."""
        task = self._fetch(Task, task_id)
        name = author if author is not None else (acting.get() or {}).get("agent")
        if name is None:
            raise Invalid("a comment needs an author", hint="Pass author, or set an agent with log.acting().", field="author")
        return self._add(
            TaskComment,
            note=f"{check_filled('author', name)}: {body}",
            id=self._ids.new("comment"),
            run_id=task.run_id,
            task_id=task_id,
            author=name,
            body=check_filled("body", body),
            created_at=self._now(),
        )

    @reads
    def comments(self, task_id: str, *, limit: int = 20, after: str | None = None) -> Page[TaskComment]:
        """List the comments on a task, oldest first."""
        self._fetch(Task, task_id)
        where = Where(TaskComment, task_id=task_id)
        return self._page(TaskComment, where, order=("created_at", "id"), limit=limit, after=after)

    def _describe_links(self, task: Task) -> TaskLinks:
        """Return the links of a task, by their name from its end, and the progress of its parts if it has any."""
        rows = self._db.rows(_LINKED, {"task_id": task.id})[1]
        links: dict[str, list[LinkedTask]] = {}
        for way, kind, name, title, state in sorted(row[:5] for row in rows if row[0] != "part"):
            links.setdefault(_READS[way, kind], []).append({"id": name, "title": title, "state": state})
        parts = [row[2:] for row in rows if row[0] == "part"]
        return {"links": links, "progress": self._progress(task, parts) if parts else None}
