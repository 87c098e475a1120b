"""Tasks and attempts as RunStore has them: its attempts are rows, and here they are the history of their task."""

from typing import TYPE_CHECKING

from decklog.importing.exports.rows import Export, each, text_of
from decklog.importing.row import EPOCH
from decklog.plugins.importers.runstore.tasks import WAS_RUNNING
from decklog.stores.tasks.task import Attempt, AttemptOutcome, Task, TaskState, attempts_from

if TYPE_CHECKING:
    from typing import Any

    from decklog.journal.entry import Entry
    from decklog.log import Decklog

# A task that is paused or running is not to be given out, and there only a task in progress is neither given out nor over.
STATUS = {
    TaskState.PENDING: "pending",
    TaskState.RUNNING: "in_progress",
    TaskState.PAUSED: "in_progress",
    TaskState.WAITING: "blocked",
    TaskState.BLOCKED: "blocked",
    TaskState.DONE: "completed",
    TaskState.ABANDONED: "abandoned",
}
# Its program has one word of its own for an attempt's success; the others are whatever their caller says.
_OUTCOMES = {AttemptOutcome.DONE: "completed"}
# What has a column, and what says nothing where there are no leases.
_PLACED = (
    *("id", "run_id", "title", "objective", "state", "acceptance", "verification", "allowed_paths", "attempts", "summary"),
    *("blocker", "created_at", "updated_at", "result", "outcome", "worker", "leased_at", "leased_until", "fence", "failures"),
    *("open_dependencies", "blocker_repeats", "reservation_id"),
)


def write_tasks(log: "Decklog", out: Export, run_id: str, there: str) -> None:
    """Write a run's tasks; the run is called `there` in RunStore."""
    for task in each(log, Task, "created_at, id", "where run_id = :run_id", run_id=run_id):
        row: dict[str, Any] = {
            "id": task.id,
            "run_id": there,
            "title": task.title,
            "objective": task.objective,
            "acceptance_criteria_json": text_of(task.acceptance or None),
            "verification_steps_json": text_of(task.verification or None),
            "allowed_paths_json": text_of(task.allowed_paths or None),
            "status": STATUS[task.state],
            "attempt_count": task.attempts,
            "implementation_summary": task.summary,
            "blocker_signature": task.blocker,
            "created_at": None if task.created_at == EPOCH else task.created_at,
            "updated_at": None if task.updated_at == task.created_at else task.updated_at,
        }
        lists = dict.fromkeys(("acceptance_criteria_json", "verification_steps_json", "allowed_paths_json"), "[]")
        defaults = {**lists, "created_at": EPOCH, "updated_at": task.created_at}
        out.write("tasks", f"tasks {task.id}", row, defaults)
        known = (*_PLACED, "reason") if task.reason == WAS_RUNNING else _PLACED
        out.report.leave_out_fields("tasks", task, known)


class AttemptTrail:
    """Follows a run's entries in their order and gives each attempt when it ends; only open ones are remembered."""

    def __init__(self) -> None:
        self._open: dict[str, tuple[dict[str, Any], str | None]] = {}
        self._taken_over: str | None = None

    def follow(self, entry: "Entry") -> "tuple[Attempt, str | None] | None":
        """Look at the next entry; give the attempt that it ended and the id that it had where it was imported from."""
        if entry.record_table == Task.table:
            image: dict[str, Any] = entry.payload  # type: ignore[assignment]
            return self._version(image)
        if entry.subtype == "imported" and isinstance(entry.payload, dict) and entry.payload.get("table") == "task_attempts":
            # The import writes this mark directly before the version of the task in which the attempt begins.
            self._taken_over = entry.payload.get("id")
        return None

    def _version(self, image: "dict[str, Any]") -> "tuple[Attempt, str | None] | None":
        begun, name = self._open.get(image["id"], (None, None))
        if image["state"] == TaskState.RUNNING:
            self._open[image["id"]] = (image, self._taken_over or name)
            self._taken_over = None
            return None
        if begun is None:
            return None
        found = attempts_from([begun, image])
        if not found or found[0].ended_at is None:
            return None
        del self._open[image["id"]]
        return found[0], name


def write_attempt(out: Export, attempt: Attempt, name: str | None, there: str) -> None:
    """Write an attempt that has ended, under the id it had or one that it gets every time."""
    row: dict[str, Any] = {
        "id": name or f"{attempt.task_id}-attempt-{attempt.number}",
        "run_id": there,
        "task_id": attempt.task_id,
        "attempt_number": attempt.number,
        "status": attempt.outcome and _OUTCOMES.get(attempt.outcome, attempt.outcome.value),
        "summary": attempt.summary,
        "blocker_signature": attempt.blocker,
        "result_json": text_of(attempt.result),
        "created_at": attempt.ended_at,
    }
    out.write("task_attempts", f"task_attempts {name}", row, {"summary": "", "result_json": "{}"})
