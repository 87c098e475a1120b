"""What a task may be given. Written by `make docs` from `Task` and `tasks.add`; a test keeps it true."""

from datetime import datetime
from typing import Required, TypedDict


class TaskFields(TypedDict, total=False):
    """What `tasks.add` and `tasks.edit` take besides a title."""

    objective: str
    group_id: str | None
    priority: int
    role: str | None
    tags: list[str] | None
    acceptance: list[str] | None
    verification: list[str] | None
    allowed_paths: list[str] | None
    inputs: dict[str, object] | None
    not_before: datetime | None
    max_attempts: int
    stage: str | None
    state_name: str | None
    trace_file: str | None
    loop_version: int | None


class NewTask(TaskFields, total=False):
    """The arguments of `tasks.add`, without the run."""

    title: Required[str]
    task_id: str | None
    depends_on: list[str] | None
    assigned_to: str | None
    parent_id: str | None
    key: str | None
