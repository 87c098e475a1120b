"""The task: one piece of work, what it needs, who has it, and what came of it."""

from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from decklog.clock import to_text
from decklog.errors import Invalid
from decklog.records import Record
from decklog.stores.checks import filled, mapping, moment, text, texts, whole

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any


class TaskState(StrEnum):
    PENDING = "pending"
    RUNNING = "running"
    WAITING = "waiting"
    BLOCKED = "blocked"
    PAUSED = "paused"
    DONE = "done"
    ABANDONED = "abandoned"


class AttemptOutcome(StrEnum):
    """How an attempt ended."""

    DONE = "done"
    FAILED = "failed"
    EXPIRED = "expired"
    RELEASED = "released"
    BLOCKED = "blocked"
    PAUSED = "paused"
    PARKED = "parked"
    ABANDONED = "abandoned"


@dataclass(frozen=True, kw_only=True)
class Task(Record):
    """A piece of work of a run, as it stands: who has it, until when, and how its last attempt ended."""

    table = "tasks"

    id: str
    run_id: str
    title: str
    state: TaskState
    created_at: datetime
    updated_at: datetime
    group_id: str | None = None
    objective: str = ""
    priority: int = 50
    role: str | None = None
    tags: list[str] = field(default_factory=list)
    acceptance: list[str] = field(default_factory=list)
    verification: list[str] = field(default_factory=list)
    allowed_paths: list[str] = field(default_factory=list)
    inputs: dict[str, object] = field(default_factory=dict)
    not_before: datetime | None = None
    open_dependencies: int = 0
    max_attempts: int = 3
    attempts: int = 0
    failures: int = 0
    fence: int = 0
    worker: str | None = None
    leased_at: datetime | None = None
    leased_until: datetime | None = None
    stage: str | None = None
    state_name: str | None = None
    trace_file: str | None = None
    loop_version: int | None = None
    outcome: AttemptOutcome | None = None
    summary: str | None = None
    result: object = None
    reason: str | None = None
    blocker: str | None = None
    blocker_repeats: int = 0
    snapshot: dict[str, object] | None = None
    reservation_id: str | None = None
    key: str | None = None

    @classmethod
    def task_of(cls, values: "Mapping[str, Any]") -> str | None:
        return str(values["id"])

    @classmethod
    def forked(cls, image: "dict[str, Any]", _db: "Any") -> "dict[str, Any]":
        """Give nobody the copy: the worker has the parent's task, and its money is the parent's to settle."""
        free: dict[str, Any] = {"reservation_id": None, "worker": None, "leased_at": None, "leased_until": None}
        if image["state"] == TaskState.RUNNING:
            free |= {"state": TaskState.PENDING.value, "attempts": image["attempts"] - 1}
        return {**image, **free}

    @classmethod
    def fitted(cls, images: "list[dict[str, Any]]", told: "Mapping[str, list[dict[str, Any]]]") -> "list[dict[str, Any]]":
        """Let each wait for just those that are not done: nobody will say so again of one that is."""
        open_ones = {image["id"] for image in images if image["state"] != TaskState.DONE}
        waits = Counter(link["task_id"] for link in told.get(Dependency.table, ()) if link["depends_on"] in open_ones)
        return [{**image, "open_dependencies": waits[image["id"]]} for image in images]

    @property
    def warnings(self) -> list[str]:
        """Say what a loop should stop for: the same blocker, twice in a row or more."""
        if self.blocker_repeats < 2:
            return []
        return [f"task {self.id} met the same blocker {self.blocker_repeats} times in a row: {self.blocker}"]


@dataclass(frozen=True, kw_only=True)
class Dependency(Record):
    """One task waits for another to be done."""

    table = "dependencies"
    identity = ("task_id", "depends_on")
    references = (("task_id", "tasks"), ("depends_on", "tasks"))

    run_id: str
    task_id: str
    depends_on: str


@dataclass(frozen=True, kw_only=True)
class Attempt:
    """One time a worker had a task, as the journal tells it."""

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


def attempts_from(versions: list[Task]) -> list[Attempt]:
    """Read the attempts from what a task became, version by version."""
    attempts: dict[int, Attempt] = {}
    for task in versions:
        if task.attempts == 0 or task.leased_at is None:
            continue
        open_one = attempts.get(task.attempts)
        if task.state == TaskState.RUNNING and task.worker is not None:
            attempts[task.attempts] = Attempt(
                task_id=task.id, number=task.attempts, worker=task.worker, fence=task.fence, started_at=task.leased_at
            )
        elif open_one is not None and open_one.ended_at is None and task.outcome is not None:
            attempts[task.attempts] = Attempt(
                **{
                    **vars(open_one),
                    "ended_at": task.updated_at,
                    "outcome": task.outcome,
                    "summary": task.summary,
                    "blocker": task.blocker if task.outcome in (AttemptOutcome.FAILED, AttemptOutcome.BLOCKED) else None,
                    "result": task.result,
                }
            )
    return list(attempts.values())


_LISTS = ("tags", "acceptance", "verification", "allowed_paths", "depends_on")
_NAMES = ("task_id", "group_id", "role", "stage", "state_name", "trace_file", "key")


def checked(fields: "dict[str, Any]") -> "dict[str, Any]":
    """Check the fields of one task; give them as they are kept."""
    if not text("title", fields["title"]).strip():
        raise Invalid("a task needs a title", field="title")
    text("objective", fields["objective"])
    _number("priority", fields["priority"], "it goes from 0 to 100", 0, 100)
    _number("max_attempts", fields["max_attempts"], "a task needs at least one", 1)
    lists = {name: list(dict.fromkeys(texts(name, fields[name] or []))) for name in _LISTS}
    for name in _NAMES:
        if fields[name] is not None:
            filled(name, fields[name])
    if fields["loop_version"] is not None:
        whole("loop_version", fields["loop_version"])
    inputs = mapping("inputs", fields["inputs"]) if fields["inputs"] is not None else {}
    start = fields["not_before"]
    return {**fields, **lists, "inputs": inputs, "not_before": None if start is None else moment("not_before", start)}


def _number(name: str, value: object, bounds: str, low: int, high: int | None = None) -> None:
    if type(value) is not int or value < low or (high is not None and value > high):
        raise Invalid(f"{name} is {value!r}; {bounds}", field=name)


def listed(tasks: object) -> "list[dict[str, Any]]":
    """Check a list of tasks, each given as the arguments of `add` without the run."""
    if not isinstance(tasks, list):
        raise Invalid(f"tasks is a list of objects, each with a title; got {type(tasks).__name__}", field="tasks")
    for number, task in enumerate(tasks, 1):
        mapping(f"task {number}", task)
        filled(f"the title of task {number}", task.get("title"))
        texts(f"depends_on of task {number}", task.get("depends_on") or [])
        if "run_id" in task:
            raise Invalid(f"task {number} names a run; all tasks are of the run that is given once", field="run_id")
    return tasks
