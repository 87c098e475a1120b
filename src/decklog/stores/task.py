"""The task: one piece of work, what it needs, who has it, and what came of it."""

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from decklog.records import Record


class TaskState(StrEnum):
    PENDING = "pending"
    RUNNING = "running"
    WAITING = "waiting"
    BLOCKED = "blocked"
    PAUSED = "paused"
    DONE = "done"
    ABANDONED = "abandoned"


class Outcome(StrEnum):
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
    outcome: Outcome | None = None
    summary: str | None = None
    result: object = None
    reason: str | None = None
    blocker: str | None = None
    blocker_repeats: int = 0
    snapshot: dict[str, object] | None = None
    key: str | None = None


@dataclass(frozen=True, kw_only=True)
class Dependency(Record):
    """One task waits for another to be done."""

    table = "dependencies"
    identity = ("task_id", "depends_on")

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
    outcome: Outcome | None = None
    summary: str | None = None
    blocker: str | None = None
    result: object = None

    def as_dict(self) -> dict[str, object]:
        from decklog.clock import to_text

        return {name: to_text(value) if isinstance(value, datetime) else value for name, value in vars(self).items()}
