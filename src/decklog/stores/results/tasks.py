"""What the verbs of tasks return."""

from typing import TypedDict

from decklog.records.record import RecordJson


class LinkedTask(TypedDict):
    """A task at the other end of a link."""

    id: str
    title: str
    state: str


class Subtask(TypedDict):
    """A part of a task, at any depth."""

    id: str
    title: str
    state: str
    parent_id: str
    worker: str | None


class TaskProgress(TypedDict):
    """The progress of a task's parts; `state` sums up theirs."""

    task_id: str
    state: str
    progress_percent: int
    done: int
    count: int
    subtasks: list[Subtask]


class BlockingTask(TypedDict):
    """A task that another one waits for, directly (depth 1) or indirectly."""

    id: str
    title: str
    state: str
    worker: str | None
    reason: str | None
    open_dependencies: int
    depth: int


class TaskExplanation(TypedDict):
    """Why a task is not being worked on, what it waits for, and who could claim it."""

    task_id: str
    run_id: str
    title: str
    state: str
    code: str
    why: str
    who: str
    waits_for: list[BlockingTask]
    first: list[str]
    is_cut: bool


class TaskLinks(TypedDict):
    """The links of a task by their kind, and the progress of its parts if it has any."""

    links: dict[str, list[LinkedTask]]
    progress: TaskProgress | None


class TaskDetails(TaskLinks):
    """A task with its explanation, links, attempts and latest comments."""

    task: RecordJson
    why: TaskExplanation
    attempts: list[RecordJson]
    comments: list[RecordJson]


class NotReadyTask(TypedDict):
    """A task that can't be claimed now, and why."""

    id: str
    title: str
    state: str
    why: str


class ReadyTasks(TypedDict):
    """The tasks of a run that can be claimed now, and the open ones that can't."""

    ready: list[RecordJson]
    not_ready: list[NotReadyTask]


class ClaimExplanation(TypedDict):
    """Why a claim gets no task, and what would help."""

    code: str
    message: str
    hint: str
