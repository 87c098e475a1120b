"""The task record: one unit of work, its dependencies, its worker and its result."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from dataclasses import fields as dataclass_fields
from datetime import datetime
from enum import StrEnum
from functools import partial
from graphlib import CycleError, TopologicalSorter
from typing import TYPE_CHECKING, Any, Literal, TypedDict

from decklog.core.clock import from_text, to_text
from decklog.core.errors import Conflict, Invalid
from decklog.records.fork_rules import Computed, ForkRule, Refer, Replace, Reset
from decklog.records.record import Record, default_of
from decklog.records.values import from_json
from decklog.stores.checks import check_filled, check_integer, check_object, check_text, check_texts, check_time

if TYPE_CHECKING:
    from decklog.stores.tasks.new_task import NewTask

    NewTasks = Sequence[NewTask | Mapping[str, object]]
else:
    NewTasks = list[dict[str, object]]


class TaskState(StrEnum):
    PENDING = "pending"
    RUNNING = "running"
    WAITING = "waiting"
    BLOCKED = "blocked"
    PAUSED = "paused"
    DONE = "done"
    ABANDONED = "abandoned"


TaskStateLike = TaskState | Literal["pending", "running", "waiting", "blocked", "paused", "done", "abandoned"]


class LinkKind(StrEnum):
    """Kinds of links between tasks. Only `blocks` delays a task."""

    BLOCKS = "blocks"
    PARENT = "parent"
    RELATED = "related"
    DISCOVERED_FROM = "discovered-from"


LinkKindLike = LinkKind | Literal["blocks", "parent", "related", "discovered-from"]


class AttemptOutcome(StrEnum):
    """The result of an attempt."""

    DONE = "done"
    FAILED = "failed"
    EXPIRED = "expired"
    RELEASED = "released"
    BLOCKED = "blocked"
    PAUSED = "paused"
    PARKED = "parked"
    ABANDONED = "abandoned"


# Fields that `tasks.add` and `tasks.edit` accept, and those that may change while a worker has the task.
SETTABLE, SETTABLE_WHILE_RUNNING = {"settable": True}, {"settable": True, "while_running": True}
# These always have a value; every other settable field can be reset to its default.
_NEVER_CLEARED = ("title", "priority", "max_attempts")


_DONE_PARENT = """
select t.id from dependencies d join tasks t on t.id = d.depends_on
 where d.task_id = :id and d.kind = 'parent' and t.state = 'done'
"""


@dataclass(frozen=True, kw_only=True)
class Task(Record):
    """A unit of work of a run, with its worker, its lease and the result of its last attempt."""

    table = "tasks"
    task_column = "id"
    fork = ForkRule(
        "The worker has the parent's task, its money is the parent's, and it asks its questions again.",
        fields={
            "state": Replace({"running": "pending", "waiting": "pending"}),
            "attempts": Computed("one less if it was running"),
            "reason": Computed("empty if it waited for an answer"),
            "open_dependencies": Computed("those that are not done"),
            "worker": Reset(),
            "leased_at": Reset(),
            "leased_until": Reset(),
            "reservation_id": Reset(),
        },
        same_ids=("group_id",),
    )

    id: str
    run_id: str
    title: str
    state: TaskState
    created_at: datetime
    updated_at: datetime
    objective: str = field(default="", metadata=SETTABLE)
    group_id: str | None = field(default=None, metadata=SETTABLE)
    priority: int = field(default=50, metadata=SETTABLE_WHILE_RUNNING)
    role: str | None = field(default=None, metadata=SETTABLE_WHILE_RUNNING)
    tags: list[str] = field(default_factory=list, metadata=SETTABLE_WHILE_RUNNING)
    acceptance: list[str] = field(default_factory=list, metadata=SETTABLE)
    verification: list[str] = field(default_factory=list, metadata=SETTABLE)
    allowed_paths: list[str] = field(default_factory=list, metadata=SETTABLE)
    inputs: dict[str, object] = field(default_factory=dict, metadata=SETTABLE)
    not_before: datetime | None = field(default=None, metadata=SETTABLE_WHILE_RUNNING)
    open_dependencies: int = 0
    max_attempts: int = field(default=3, metadata=SETTABLE_WHILE_RUNNING)
    attempts: int = 0
    failures: int = 0
    fence: int = 0
    worker: str | None = None
    leased_at: datetime | None = None
    leased_until: datetime | None = None
    stage: str | None = field(default=None, metadata=SETTABLE)
    state_name: str | None = field(default=None, metadata=SETTABLE)
    trace_file: str | None = field(default=None, metadata=SETTABLE)
    loop_version: int | None = field(default=None, metadata=SETTABLE)
    outcome: AttemptOutcome | None = None
    summary: str | None = None
    result: object = None
    reason: str | None = None
    blocker: str | None = None
    blocker_repeats: int = 0
    snapshot: dict[str, object] | None = None
    reservation_id: str | None = None
    key: str | None = None
    assigned_to: str | None = None

    # Defaults that snapshots leave out, because they are the same in almost every entry of a task.
    omitted_values = (
        *(("objective", ""), ("inputs", "{}"), ("priority", 50), ("max_attempts", 3)),
        *((name, "[]") for name in ("tags", "acceptance", "verification", "allowed_paths")),
        *((name, 0) for name in ("open_dependencies", "attempts", "failures", "fence", "blocker_repeats")),
    )
    # A fencing token only grows, so that a worker with an older one is refused.
    undo_ignored_columns = ("fence", "updated_at")

    @classmethod
    def undo_refusal(cls, before: Mapping[str, Any], after: Mapping[str, Any], db: Any) -> str | None:
        """Return why a change can't be undone: it was work of a worker, or others relied on the end of the task."""
        if TaskState.RUNNING in (before["state"], after["state"]):
            changed = {name for name in before if before[name] != after.get(name)}
            if changed <= {*EDITABLE_WHILE_RUNNING, "assigned_to", "updated_at"}:
                return None
            return "it was a lease change, and leases are not restored"
        if TaskState.DONE in (before["state"], after["state"]):
            return "done tasks can't change"
        if after["state"] != TaskState.ABANDONED or before["state"] == TaskState.ABANDONED:
            return None
        row = db.one(_DONE_PARENT, {"id": after["id"]})
        return None if row is None else f"its parent task {row[0]} is done since"

    @classmethod
    def repair_fork(cls, images: list[dict[str, Any]], by_table: Mapping[str, list[dict[str, Any]]]) -> list[dict[str, Any]]:
        """Adjust copied tasks: count only unfinished dependencies as open, and drop running attempts and waiting reasons."""
        open_ones = {image["id"] for image in images if image["state"] != TaskState.DONE}
        links = [link for link in by_table.get(Dependency.table, ()) if link["kind"] == LinkKind.BLOCKS]
        waits = Counter(link["task_id"] for link in links if link["depends_on"] in open_ones)
        repaired = []
        for image in images:
            counts = {
                "open_dependencies": waits[image["id"]],
                "attempts": image["attempts"] - (image["state"] == TaskState.RUNNING),
                "reason": None if image["state"] == TaskState.WAITING else image["reason"],
            }
            repaired.append({**image, **counts})
        return repaired

    @property
    def warnings(self) -> list[str]:
        """Return warnings for a loop: the same blocker at least twice in a row."""
        if self.blocker_repeats < 2:
            return []
        return [f"task {self.id} met the same blocker {self.blocker_repeats} times in a row: {self.blocker}"]


# The fields that callers may set, and those of them that may change while a worker has the task.
_SETTABLE_FIELDS = {one.name: one for one in dataclass_fields(Task) if one.metadata.get("settable")}
EDITABLE = ("title", *_SETTABLE_FIELDS)
EDITABLE_WHILE_RUNNING = tuple(name for name, one in _SETTABLE_FIELDS.items() if one.metadata.get("while_running"))
CLEARABLE = tuple(name for name in EDITABLE if name not in _NEVER_CLEARED)
Task.undo_columns = (*EDITABLE, "assigned_to", "state", "reason", "snapshot", "failures")

if TYPE_CHECKING:
    from decklog.stores.tasks.new_task import TaskFields as TaskFields
else:
    TaskFields = TypedDict("TaskFields", {name: one.type for name, one in _SETTABLE_FIELDS.items()}, total=False)


@dataclass(frozen=True, kw_only=True)
class Dependency(Record):
    """A link between two tasks: a dependency, a parent, an origin, or a relation."""

    table = "dependencies"
    identity = ("task_id", "depends_on")
    fork = ForkRule("A link leads to the copies.", fields={"task_id": Refer("tasks"), "depends_on": Refer("tasks")})

    run_id: str
    task_id: str
    depends_on: str
    kind: LinkKind = LinkKind.BLOCKS


@dataclass(frozen=True, kw_only=True)
class TaskComment(Record):
    """A comment on a task."""

    table = "task_comments"
    fork = ForkRule("Comments on a task still apply.", fields={"task_id": Refer("tasks")})

    id: str
    run_id: str
    task_id: str
    author: str
    body: str
    created_at: datetime


@dataclass(frozen=True, kw_only=True)
class Attempt:
    """One attempt of a worker at a task, from the journal."""

    task_id: str
    number: int
    worker: str
    fence: int
    started_at: datetime
    ended_at: datetime | None = None
    outcome: AttemptOutcome | None = None
    summary: str | None = None
    blocker: str | None = None
    result: object = None

    def as_dict(self) -> dict[str, object]:
        return {name: to_text(value) if isinstance(value, datetime) else value for name, value in vars(self).items()}


def build_attempts(images: Iterable[Mapping[str, Any]]) -> list[Attempt]:
    """Read the attempts from snapshots of tasks in their order; the earliest attempt comes first."""
    # The snapshots at the start and the end of each attempt. No records are built, because a long run has very many.
    begun: dict[tuple[str, int], tuple[Mapping[str, Any], Mapping[str, Any] | None]] = {}
    for image in images:
        number = image.get("attempts")
        if not number or image.get("leased_at") is None:
            continue
        key = image["id"], number
        if image["state"] == TaskState.RUNNING and image.get("worker") is not None:
            begun[key] = image, None
        elif image.get("outcome") is not None and key in begun and begun[key][1] is None:
            begun[key] = begun[key][0], image
    attempts = [_build_attempt(*each) for each in begun.values()]
    return sorted(attempts, key=lambda attempt: (attempt.started_at, attempt.task_id))


def _build_attempt(begun: Mapping[str, Any], ended: Mapping[str, Any] | None) -> Attempt:
    attempt = {
        "task_id": begun["id"],
        "number": begun["attempts"],
        "worker": begun["worker"],
        "fence": begun.get("fence", 0),
        "started_at": from_text(begun["leased_at"]),
    }
    if ended is not None:
        outcome, result = AttemptOutcome(ended["outcome"]), ended.get("result")
        attempt |= {
            "ended_at": from_text(ended["updated_at"]),
            "outcome": outcome,
            "summary": ended.get("summary"),
            "blocker": ended.get("blocker") if outcome in (AttemptOutcome.FAILED, AttemptOutcome.BLOCKED) else None,
            "result": None if result is None else from_json(result),
        }
    return Attempt(**attempt)


def with_defaults(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a new task: what was given, and the defaults of the others."""
    return {**default_values(_SETTABLE_FIELDS), **fields}


def check_task_fields(fields: dict[str, Any]) -> dict[str, Any]:
    """Check the fields of a task, by their name or their type, and return them as stored."""
    checks = {name: _CHECKS.get(name) or _CHECKS_BY_TYPE[Task.__annotations__[name]] for name in fields}
    return {name: checks[name](name, value) for name, value in fields.items()}


def default_values(names: Iterable[str]) -> dict[str, Any]:
    """Return the default of each field, which is its value after clearing."""
    return {one.name: default_of(one) for one in dataclass_fields(Task) if one.name in names}


def _check_title(name: str, value: object) -> str:
    if not check_text(name, value).strip():
        raise Invalid("a task needs a title", field=name)
    return check_text(name, value)


def _check_list(name: str, value: object) -> list[str]:
    return list(dict.fromkeys(check_texts(name, value or [])))


def _allow_none(check: Callable[[str, Any], Any]) -> Callable[[str, Any], Any]:
    return lambda name, value: None if value is None else check(name, value)


_CHECKS: dict[str, Callable[[str, Any], Any]] = {
    "title": _check_title,
    "objective": check_text,
    "priority": partial(check_integer, high=100),
    "max_attempts": partial(check_integer, low=1),
    "inputs": lambda name, value: {} if value is None else check_object(name, value),
    # Arguments that are not fields.
    "depends_on": _check_list,
    **dict.fromkeys(("task_id", "parent_id"), _allow_none(check_filled)),
}
_CHECKS_BY_TYPE: dict[Any, Callable[[str, Any], Any]] = {
    str | None: _allow_none(check_filled),
    int | None: _allow_none(check_integer),
    datetime | None: _allow_none(check_time),
    list[str]: _check_list,
}


def check_task_list(tasks: object) -> list[dict[str, Any]]:
    """Check a list of tasks, each given as the arguments of `add` without the run."""
    if not isinstance(tasks, (list, tuple)):
        raise Invalid(f"tasks must be a list of objects with titles; got {type(tasks).__name__}", field="tasks")
    for number, task in enumerate(tasks, 1):
        check_object(f"task {number}", task)
        check_filled(f"the title of task {number}", task.get("title"))
        check_texts(f"depends_on of task {number}", task.get("depends_on") or [])
        if "run_id" in task:
            raise Invalid(f"task {number} has a run_id; all tasks belong to the run of the call", field="run_id")
    return list(tasks)


def sort_by_dependencies(tasks: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Order tasks so that each follows its dependencies in the list. Raise Conflict for a cycle."""
    named = {str(task["task_id"]): task for task in tasks if task.get("task_id")}
    try:
        TopologicalSorter({name: task.get("depends_on") or [] for name, task in named.items()}).prepare()
    except CycleError as problem:
        circle = problem.args[1][::-1]
        raise Conflict(f"these tasks depend on each other in a circle: {' -> '.join(circle)}", circle=circle) from None
    ordered: dict[int, dict[str, Any]] = {}
    # The sorter does not keep the given order, so the tasks are visited depth-first.
    stack = tasks[::-1]
    while stack:
        task = stack[-1]
        needed = [named[name] for name in task.get("depends_on") or [] if name in named]
        if first := [other for other in needed if id(other) not in ordered]:
            stack += first[::-1]
        else:
            ordered[id(stack.pop())] = task
    return list(ordered.values())


# Few tasks have these states at a time, so they can be listed over all runs.
_RARE_STATES = (TaskState.RUNNING, TaskState.WAITING, TaskState.BLOCKED, TaskState.PAUSED)


def all_runs_condition(state: str | None) -> str:
    """Build the condition for tasks of all runs with a state. The literal state selects its partial index."""
    if state not in _RARE_STATES:
        raise Invalid(f"without a run, give one of these states: {', '.join(_RARE_STATES)}", field="state")
    return f"state = '{TaskState(state).value}'"


def not_editable(task: Task, relied_on: list[str]) -> Conflict:
    """Return the error for a task that can't be edited."""
    if task.state != TaskState.RUNNING:
        return Conflict(f"task {task.id} is {task.state} and can't be changed", task_id=task.id, state=task.state.value)
    return Conflict(
        f"{task.worker} works on task {task.id} and relies on its {', '.join(relied_on)}",
        hint=f"Take it back first: decklog tasks pause {task.id} --reason WHY, then edit and resume it.",
        task_id=task.id,
        state=task.state.value,
        fields=relied_on,
    )
