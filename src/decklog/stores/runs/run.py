"""The run record, and agents of a run."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, Literal

from decklog.core.display import counted
from decklog.core.errors import Invalid
from decklog.records.fork_rules import FORK_RUN, FORK_TIME, Computed, ForkRule, Refer, Replace, Reset
from decklog.records.record import Record


class RunStatus(StrEnum):
    PLANNING = "planning"
    ACTIVE = "active"
    PAUSED = "paused"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"


RunStatusLike = RunStatus | Literal["planning", "active", "paused", "completed", "failed", "cancelled"]


class RunMode(StrEnum):
    SIMPLE = "simple"
    PARALLEL = "parallel"


RunModeLike = RunMode | Literal["simple", "parallel"]


ENDED = (RunStatus.COMPLETED, RunStatus.FAILED, RunStatus.CANCELLED)


@dataclass(frozen=True, kw_only=True)
class Run(Record):
    """One piece of agents' work, from its goal to its end; its journal is a separate stream."""

    table = "runs"
    stream_column = "id"
    undo_columns = ("goal", "summary", "repo", "branch", "worktree", "current_task_id", "metadata")
    fork = ForkRule(
        "A fork starts now and goes on; how its parent went is the parent's.",
        fields={
            "status": Replace(dict.fromkeys(ENDED, RunStatus.ACTIVE.value)),
            "started_at": FORK_TIME,
            "updated_at": FORK_TIME,
            "ended_at": Reset(),
            "summary": Reset(),
            "current_task_id": Refer("tasks"),
            # A key belongs to one run of the whole log.
            "key": Reset(),
            "parent_run_id": Computed("the parent"),
            "parent_seq": Computed("the parent's entry at which it was forked"),
            # The process that records the parent, and LangGraph's thread, which is the run.
            "metadata.process": Reset(),
            "metadata.langgraph.thread_id": FORK_RUN,
        },
    )

    id: str
    goal: str
    status: RunStatus
    started_at: datetime
    updated_at: datetime
    mode: RunMode | None = None
    repo: str | None = None
    branch: str | None = None
    worktree: str | None = None
    summary: str | None = None
    current_task_id: str | None = None
    cycles: int = 0
    replans: int = 0
    metadata: dict[str, object] = field(default_factory=dict)
    parent_run_id: str | None = None
    parent_seq: int | None = None
    key: str | None = None
    ended_at: datetime | None = None

    # Warnings for the caller, such as unfinished tasks of a completed run.
    warnings = ()  # type: tuple[str, ...]

    def warned(self, warnings: Sequence[str]) -> "Run":
        """Attach warnings to the run."""
        object.__setattr__(self, "warnings", tuple(warnings))
        return self


@dataclass(frozen=True, kw_only=True)
class Agent(Record):
    """An agent that was registered in a run. Workers that only claim tasks are in the attempts."""

    table = "agents"
    identity = ("run_id", "role")
    fork = ForkRule(
        "Two runs must not go on with one session.",
        fields={"session": Reset(), "turns": Reset(0)},
    )

    run_id: str
    role: str
    updated_at: datetime
    session: str | None = None
    turns: int = 0
    rotations: int = 0
    last_prompt_path: str | None = None
    last_response_path: str | None = None


def check_run_id(text: str, field: str = "run_id") -> None:
    """Raise Invalid for an id that can't name a stream, or could be confused with an entry id."""
    if not 0 < len(text) <= 200 or text[0] == "@" or ":" in text or any(character.isspace() for character in text):
        raise Invalid(f"{text!r} can't be a run's id: 1 to 200 characters, no blanks, colons or leading @", field=field)


def unfinished(db: Any, run: Run) -> list[str]:
    """Return a warning if a completed run has unfinished tasks."""
    if run.status != RunStatus.COMPLETED:
        return []
    sql = "select count(*) from tasks where run_id = :run_id and state not in ('done', 'abandoned')"
    count = db.one(sql, {"run_id": run.id})[0]
    return [f"run {run.id} is completed with {counted(count, 'unfinished task')}"] if count else []
