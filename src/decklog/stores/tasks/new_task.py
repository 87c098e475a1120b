"""A task for `tasks.add_many`. Written by `make docs` from the signature of `tasks.add`; a test keeps it true."""

from datetime import datetime
from typing import Required, TypedDict


class NewTask(TypedDict, total=False):
    """The arguments of `tasks.add`, without the run."""

    title: Required[str]
    objective: str
    task_id: str | None
    group_id: str | None
    priority: int
    role: str | None
    tags: list[str] | None
    acceptance: list[str] | None
    verification: list[str] | None
    allowed_paths: list[str] | None
    inputs: dict[str, object] | None
    depends_on: list[str] | None
    not_before: datetime | None
    max_attempts: int
    stage: str | None
    state_name: str | None
    trace_file: str | None
    loop_version: int | None
    assigned_to: str | None
    parent_id: str | None
    key: str | None
