"""RunStore's tasks and attempts: an attempt is two versions of its task, one with a worker and one in which it ended."""

from abc import ABC, abstractmethod
from datetime import timedelta
from typing import TYPE_CHECKING

from decklog.core.clock import to_text
from decklog.core.errors import NotFound
from decklog.importing.landing import RowWriter
from decklog.importing.report import Fate
from decklog.importing.row import EPOCH, Row
from decklog.stores.tasks.task import AttemptOutcome, Task, TaskState

if TYPE_CHECKING:
    from datetime import datetime
    from typing import Any

    from decklog.log import Decklog

# Nobody here holds a task that was in progress there, and it may still be worked on: it waits until someone resumes it.
STATES = {
    "pending": TaskState.PENDING,
    "in_progress": TaskState.PAUSED,
    "completed": TaskState.DONE,
    "blocked": TaskState.BLOCKED,
    "abandoned": TaskState.ABANDONED,
}
WAS_RUNNING = "it was in progress when it was imported, and nobody here holds it; resume it when nobody there does"
WORKER = "imported"
_OUTCOMES = {
    **dict.fromkeys(("completed", "complete", "done", "success", "succeeded", "passed"), AttemptOutcome.DONE),
    "blocked": AttemptOutcome.BLOCKED,
    "abandoned": AttemptOutcome.ABANDONED,
}
_JSON = (dict, list, str, int, float, bool)
# The finest time that RunStore writes.
_SHOWN = timedelta(milliseconds=1)
_LEASE = timedelta(minutes=1)


class TaskTables(ABC):
    """Mappings of the two tables, of which the second is written with the first."""

    log: "Decklog"
    landing: RowWriter
    attempts: dict[str, list[Row]]
    attempt_fates: dict[str, Fate]

    @abstractmethod
    def in_run(self, row: Row) -> str:
        """Place a row in its run."""

    def task(self, row: Row) -> Fate:
        """Take a task over, version by version as its attempts tell it."""
        fields = self._fields(row)
        attempts = self.attempts.get(fields["id"], [])
        present = self.landing.intake.seek(Task, fields["id"])
        if present is not None and present.run_id != fields["run_id"]:
            raise NotFound(f"task {fields['id']} belongs to run {present.run_id} here")
        if present is None and attempts:
            begun = {"state": TaskState.PENDING, "attempts": 0, "updated_at": fields["created_at"], "summary": None}
            self.log.tasks.add_record(**{**fields, **begun, "reason": None, "blocker": None, "outcome": None})
        fates = [self._attempted(attempt, number, fields) for number, attempt in enumerate(attempts, 1)]
        self.attempt_fates |= {attempt.id: fate for attempt, fate in zip(attempts, fates, strict=True)}
        if present is None and not attempts:
            self.log.tasks.add_record(**fields)
            return Fate.NEW
        if present is None or (Fate.NEW in fates and present.updated_at <= fields["updated_at"]):
            self.landing.change(Task, **fields)
            return Fate.NEW if present is None else Fate.CHANGED
        return self.landing.record(Task, clock="updated_at", **fields)

    def _fields(self, row: Row) -> "dict[str, Any]":
        run_id, created = self.in_run(row), self._created(row)
        word = row.take("status")
        state = STATES.get(word, TaskState.PAUSED)
        if word == "in_progress" or word not in STATES:
            row.replace("status", {state: name for name, state in STATES.items()}.get(state))
        return {
            "run_id": run_id,
            "id": row.text("id"),
            "title": row.text("title", ""),
            "objective": row.text("objective", ""),
            "state": state,
            "acceptance": row.texts("acceptance_criteria_json") or [],
            "verification": row.texts("verification_steps_json") or [],
            "allowed_paths": row.texts("allowed_paths_json") or [],
            "attempts": row.whole("attempt_count", 0),
            "summary": row.text("implementation_summary"),
            "blocker": row.text("blocker_signature"),
            "reason": WAS_RUNNING if state is TaskState.PAUSED else None,
            "created_at": created,
            "updated_at": max(created, row.time("updated_at", created)),
            **_FREE,
        }

    def _created(self, row: Row) -> "datetime":
        """Read when a task was made; a plan's tasks were all made at one time, and are done in the order of their rows."""
        there: datetime = row.time("created_at", EPOCH)
        created = self.landing.in_turn(row, there)
        if created - there >= _SHOWN or there == EPOCH != created:
            row.replace("created_at", to_text(created))
        return created

    def _attempted(self, row: Row, number: int, task: "dict[str, Any]") -> Fate:
        """Write an attempt as two versions of its task: begun and ended, both when it was recorded, the only time there is."""
        row.stream = task["run_id"]
        if not self.landing.first_time(row):
            return Fate.ALREADY
        at: datetime = row.time("created_at", task["updated_at"])
        shared: dict[str, Any] = {"id": task["id"], "attempts": number, "fence": number, "leased_at": at, "updated_at": at}
        running: dict[str, Any] = {"state": TaskState.RUNNING, "worker": WORKER, "leased_until": at + _LEASE, "outcome": None}
        self.landing.change(Task, **shared, **running)
        self.landing.change(
            Task,
            **shared,
            state=TaskState.PENDING,
            worker=None,
            leased_until=None,
            outcome=outcome_of(row.take("status")),
            summary=row.text("summary"),
            blocker=row.text("blocker_signature"),
            result=row.json("result_json", _JSON),
        )
        return Fate.NEW

    def attempt(self, row: Row) -> Fate:
        """Return what became of an attempt, which was written with its task; its own id, number and status stand beside it."""
        if row.id not in self.attempt_fates:
            self.in_run(row)
            raise NotFound(f"its task {row.columns.get('task_id')} is not in the file, or could not be taken")
        self.in_run(row)
        row.pass_over(("task_id", "summary", "created_at"))
        row.json("result_json", _JSON)
        if outcome_of(row.columns.get("status")) in (AttemptOutcome.FAILED, AttemptOutcome.BLOCKED):
            row.take("blocker_signature")
        return self.attempt_fates[row.id]


# What a task has while nobody holds it.
_FREE: "dict[str, Any]" = {"worker": None, "leased_until": None, "leased_at": None, "outcome": None, "result": None}


def outcome_of(word: object) -> AttemptOutcome:
    """Read an attempt's status, which is the caller's own word; what is no success counts as failed."""
    return _OUTCOMES.get(str(word).strip().casefold(), AttemptOutcome.FAILED)
