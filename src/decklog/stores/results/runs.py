"""What the verbs of runs return."""

from typing import Any, Literal, TypedDict


class ActivityStep(TypedDict):
    """When an entry was written."""

    seq: int
    at: str


class ActivityMark(TypedDict):
    """An important entry: a failure, a question, a checkpoint or a pivot."""

    seq: int
    what: str
    record_id: str
    at: str


class RunActivity(TypedDict):
    """The times of a run's entries at even steps, and its marks."""

    run_id: str
    first: int
    last: int
    steps: list[ActivityStep]
    marks: list[ActivityMark]
    left_out: int


class RunAttempt(TypedDict):
    """An attempt at a task, as it was at the end of a range of entries."""

    started_seq: int
    task_id: str
    number: int
    worker: str
    started_at: str
    ended_seq: int | None
    ended_at: str | None
    outcome: str | None
    title: str
    summary: str | None
    blocker: str | None


class RunLanes(TypedDict):
    """The attempts that overlap a range of a run's entries."""

    run_id: str
    first: int
    last: int
    attempts: list[RunAttempt]
    left_out: int


class RecordDifference(TypedDict):
    """How a record differs between two moments; each field with its values before and after."""

    table: str
    record_id: str
    change: Literal["added", "removed", "changed"]
    fields: dict[str, list[Any]]
