"""Whether a task is still held: the check of its fence, what is said once it is lost, and what a task becomes at its end."""

from collections.abc import Callable
from typing import Any

from decklog.core.errors import LeaseLost, NotFound
from decklog.db.base import Database
from decklog.stores.tasks.task import AttemptOutcome, Task, TaskState


def lease_check(task_id: str, fence: int) -> Callable[[Database], None]:
    """Make the check that a task is still held with a fence; whoever has lost it gets `LeaseLost`."""

    def check(db: Database) -> None:
        names, rows = db.rows("select * from tasks where id = :task_id", {"task_id": task_id})
        if not rows:
            raise NotFound(f"there is no task {task_id}", table=Task.table, id=task_id)
        task = Task.from_row(names, rows[0])
        if task.state != TaskState.RUNNING or task.fence != fence:
            raise lost(task, fence)

    return check


def ending(outcome: AttemptOutcome, state: TaskState, **fields: Any) -> dict[str, Any]:
    return {"state": state, "outcome": outcome, "worker": None, "leased_until": None, **fields}


def lost(task: Task, fence: int) -> LeaseLost:
    holder = f"; {task.worker} has it with fence {task.fence}" if task.worker else ""
    return LeaseLost(
        f"task {task.id} is no longer yours: it is {task.state}{holder}",
        hint="Stop working on it; claim another: decklog next",
        task_id=task.id,
        state=task.state.value,
        fence=task.fence,
        yours=fence,
    )
