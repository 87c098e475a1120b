"""Import RunStore's databases."""

from datetime import datetime, timedelta
from typing import Any, ClassVar

from decklog.core.clock import to_text
from decklog.core.errors import Invalid, NotFound
from decklog.importing.exports import Schema
from decklog.importing.importer import Import
from decklog.importing.report import Outcome
from decklog.importing.row import EPOCH, Row
from decklog.importing.source import SqliteSource
from decklog.importing.writer import Mapping, PendingEntry, pure_mapping, run_id_of, saved_outcome
from decklog.journal.entry import EntryKind
from decklog.log import Decklog
from decklog.stores.artifacts.artifacts import Artifact, media_type_of
from decklog.stores.of_run import next_number
from decklog.stores.runs.run import ENDED, Agent, Run, RunStatus
from decklog.stores.tasks.task import AttemptOutcome, Task, TaskState

SCHEMA = Schema(__file__)
TABLES = SCHEMA.tables
# A task in progress has no worker here, and may still have one there: it is paused until someone resumes it.
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
# The precision of RunStore's times.
_SHOWN = timedelta(milliseconds=1)
_LEASE = timedelta(minutes=1)
# The fields of a task without a worker.
_FREE: dict[str, Any] = {"worker": None, "leased_until": None, "leased_at": None, "outcome": None, "result": None}


class RunStoreImport(Import):
    """Imports one file with eight tables; it has no version."""

    system = "runstore"
    tables = TABLES
    keys: ClassVar = {"agents": ("run_id", "role")}

    def __init__(self, log: Decklog, path: str, **settings: Any) -> None:
        super().__init__(log, path, **settings)
        self.attempts: dict[str, list[Row]] = {}
        self.attempt_outcomes: dict[str, Outcome] = {}

    def mappings(self) -> dict[str, Mapping]:
        return {
            "runs": self.run_row,
            "agents": self.agent,
            "tasks": self.task,
            "task_attempts": self.attempt,
            "events": self.event,
            "artifacts": self.artifact,
            "checkpoints": self.checkpoint,
            "approvals": self.approval,
        }

    def check(self, source: SqliteSource) -> None:
        """Raise for a database that is not RunStore's."""
        missing = [table for table in ("runs", "tasks", "task_attempts") if table not in source]
        if missing:
            raise Invalid(f"{source.path} is no RunStore database: it has no {', '.join(missing)}")

    def take(self, source: SqliteSource) -> None:
        """Import the attempts before their tasks, because they are versions of the task."""
        for row in self.rows_of(source, "task_attempts"):
            self.attempts.setdefault(str(row.columns.get("task_id")), []).append(row)
        super().take(source)

    def in_run(self, row: Row) -> str:
        """Assign a row to its run; raise if the run is missing."""
        return self.place_in_run(row, str(row.take("run_id")), "run")

    def run_row(self, row: Row) -> Outcome:
        """Import a run; a custom status becomes `active`."""
        run_id = row.stream = run_id_of(str(row.take("id")))
        if run_id != row.columns["id"]:
            row.replace("id", run_id)
        status = row.one_of("status", RunStatus, RunStatus.ACTIVE)
        created: datetime = row.time("created_at", EPOCH)
        updated: datetime = row.time("updated_at", created)
        return self.writer.record(
            Run,
            clock="updated_at",
            new_stream=True,
            id=run_id,
            goal=row.text("goal", ""),
            **row.fields(row.text, "repo=repo_path summary current_task_id"),
            status=status,
            **row.fields(row.integer, "cycles=cycle_count replans=replan_count", 0),
            started_at=created,
            updated_at=updated,
            ended_at=updated if status in ENDED else None,
        )

    def agent(self, row: Row) -> Outcome:
        """Import an agent of a run."""
        return self.writer.record(
            Agent,
            clock="updated_at",
            run_id=self.in_run(row),
            **row.fields(row.text, "role session=session_id last_prompt_path last_response_path"),
            **row.fields(row.integer, "turns rotations=rotation_count", 0),
            updated_at=row.time("updated_at", EPOCH),
        )

    @pure_mapping
    def event(self, row: Row) -> PendingEntry:
        """Convert an event to an entry; its source is the agent."""
        self.in_run(row)
        row.take("id")
        entry = {
            "body": row.text("message", ""),
            "kind": EntryKind.EVENT,
            **row.fields(row.text, "subtype=kind agent=source"),
            "payload": row.json("payload_json", (dict, list)),
            "at": row.time("ts"),
        }
        return self.writer.entry(row, entry)

    def artifact(self, row: Row) -> Outcome:
        """Import the location of an artifact; its bytes are not in the file."""
        run_id, artifact_id, path = self.in_run(row), row.text("id"), row.text("path", "")
        present = self.writer.intake.seek(Artifact, artifact_id)
        return self.writer.record(
            Artifact,
            id=artifact_id,
            run_id=run_id,
            number=present.number if present else next_number(self.log.db, Artifact, run_id),
            kind=row.text("kind", ""),
            path=path,
            role=row.text("role"),
            media_type=media_type_of(path, is_text=False),
            metadata=row.json("metadata_json", (dict,), {}),
            created_at=row.time("created_at", EPOCH),
        )

    def checkpoint(self, row: Row) -> Outcome:
        """Import a checkpoint; it marks the current position of the journal."""
        made = self.log.states.checkpoint(
            self.in_run(row),
            status=row.text("status"),
            payload=row.json("payload_json", _JSON, {}),
            checkpoint_id=row.text("id"),
            created_at=row.time("created_at"),
        )
        return saved_outcome(made)

    def approval(self, row: Row) -> Outcome:
        """Import a verdict with its own wording; it refers to no action and permits nothing."""
        recorded = self.log.approvals.record(
            self.in_run(row),
            row.text("source", ""),
            row.text("verdict", ""),
            rationale=row.text("rationale"),
            payload=row.json("payload_json", (dict, list)),
            approval_id=row.text("id"),
            at=row.time("created_at"),
        )
        return saved_outcome(recorded)

    def task(self, row: Row) -> Outcome:
        """Import a task; each attempt makes versions of it."""
        fields = self._fields(row)
        attempts = self.attempts.get(fields["id"], [])
        present = self.writer.intake.seek(Task, fields["id"])
        if present is not None and present.run_id != fields["run_id"]:
            raise NotFound(f"task {fields['id']} belongs to run {present.run_id} here")
        if present is None and attempts:
            begun = {"state": TaskState.PENDING, "attempts": 0, "updated_at": fields["created_at"], "summary": None}
            self.log.tasks.add_record(**{**fields, **begun, "reason": None, "blocker": None, "outcome": None})
        outcomes = [self._write_attempt(attempt, number, fields) for number, attempt in enumerate(attempts, 1)]
        self.attempt_outcomes |= {attempt.id: outcome for attempt, outcome in zip(attempts, outcomes, strict=True)}
        if present is None and not attempts:
            self.log.tasks.add_record(**fields)
            return Outcome.NEW
        if present is None or (Outcome.NEW in outcomes and present.updated_at <= fields["updated_at"]):
            self.writer.change(Task, **fields)
            return Outcome.NEW if present is None else Outcome.CHANGED
        return self.writer.record(Task, clock="updated_at", **fields)

    def _fields(self, row: Row) -> dict[str, Any]:
        run_id, created = self.in_run(row), self._created(row)
        word = row.take("status")
        state = STATES.get(word, TaskState.PAUSED)
        if word == "in_progress" or word not in STATES:
            row.replace("status", {state: name for name, state in STATES.items()}.get(state))
        return {
            "run_id": run_id,
            "id": row.text("id"),
            **row.fields(row.text, "title objective", ""),
            "state": state,
            "acceptance": row.json_texts("acceptance_criteria_json") or [],
            "verification": row.json_texts("verification_steps_json") or [],
            "allowed_paths": row.json_texts("allowed_paths_json") or [],
            "attempts": row.integer("attempt_count", 0),
            **row.fields(row.text, "summary=implementation_summary blocker=blocker_signature"),
            "reason": WAS_RUNNING if state is TaskState.PAUSED else None,
            "created_at": created,
            "updated_at": max(created, row.time("updated_at", created)),
            **_FREE,
        }

    def _created(self, row: Row) -> datetime:
        """Return when a task was created; order tasks of the same time by their rows, as a plan does."""
        there: datetime = row.time("created_at", EPOCH)
        created = self.writer.spread_time(row, there)
        if created - there >= _SHOWN or there == EPOCH != created:
            row.replace("created_at", to_text(created))
        return created

    def _write_attempt(self, row: Row, number: int, task: dict[str, Any]) -> Outcome:
        """Write an attempt as two versions of its task, begun and ended, both at its only recorded time."""
        row.stream = task["run_id"]
        if not self.writer.mark_imported(row):
            return Outcome.ALREADY
        at: datetime = row.time("created_at", task["updated_at"])
        shared: dict[str, Any] = {"id": task["id"], "attempts": number, "fence": number, "leased_at": at, "updated_at": at}
        running: dict[str, Any] = {"state": TaskState.RUNNING, "worker": WORKER, "leased_until": at + _LEASE, "outcome": None}
        self.writer.change(Task, **shared, **running)
        self.writer.change(
            Task,
            **shared,
            state=TaskState.PENDING,
            worker=None,
            leased_until=None,
            outcome=outcome_of(row.take("status")),
            **row.fields(row.text, "summary blocker=blocker_signature"),
            result=row.json("result_json", _JSON),
        )
        return Outcome.NEW

    def attempt(self, row: Row) -> Outcome:
        """Return the outcome of an attempt, which was written with its task; its id, number and status are kept."""
        if row.id not in self.attempt_outcomes:
            self.in_run(row)
            raise NotFound(f"its task {row.columns.get('task_id')} is not in the file, or could not be taken")
        self.in_run(row)
        row.ignore(("task_id", "summary", "created_at"))
        row.json("result_json", _JSON)
        if outcome_of(row.columns.get("status")) in (AttemptOutcome.FAILED, AttemptOutcome.BLOCKED):
            row.take("blocker_signature")
        return self.attempt_outcomes[row.id]


def outcome_of(word: object) -> AttemptOutcome:
    """Convert an attempt's status, which is the caller's own word; any other than success counts as failed."""
    return _OUTCOMES.get(str(word).strip().casefold(), AttemptOutcome.FAILED)
