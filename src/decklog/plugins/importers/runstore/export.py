"""Export a log as a RunStore database, which its own program can open."""

from collections.abc import Callable
from datetime import datetime
from typing import Any

from decklog.core.errors import NotFound
from decklog.importing.exports import TASK_FIELDS, Export, ExportReport, columns_of, each, number_of, text_of
from decklog.importing.row import EPOCH
from decklog.journal.entry import Entry, EntryKind
from decklog.log import Decklog
from decklog.plugins.importers.runstore.importer import SCHEMA, TABLES, WAS_RUNNING
from decklog.records.record import find_all
from decklog.stores.approvals.approval import Approval
from decklog.stores.artifacts.checkpoints import Checkpoint
from decklog.stores.runs.run import Agent, Run
from decklog.stores.tasks.task import Attempt, AttemptOutcome, Task, TaskState, build_attempts

Columns = dict[str, Any]

# Paused and running tasks must not be assigned, and RunStore only leaves tasks in progress alone.
STATUS = {
    TaskState.PENDING: "pending",
    TaskState.RUNNING: "in_progress",
    TaskState.PAUSED: "in_progress",
    TaskState.WAITING: "blocked",
    TaskState.BLOCKED: "blocked",
    TaskState.DONE: "completed",
    TaskState.ABANDONED: "abandoned",
}
_TASK = (
    "id title objective attempt_count=attempts implementation_summary=summary blocker_signature=blocker created_at updated_at"
    " acceptance_criteria_json=acceptance verification_steps_json=verification allowed_paths_json=allowed_paths"
)
_LISTS = dict.fromkeys(("acceptance_criteria_json", "verification_steps_json", "allowed_paths_json"), "[]")
# RunStore defines one word for success; other words are the caller's.
_OUTCOMES = {AttemptOutcome.DONE: "completed"}
# Fields that other tables have, and fields without meaning where there are no leases.
_PLACED = (*TASK_FIELDS, "result", "outcome", "failures", "blocker_repeats", "reservation_id")


def write_tasks(out: Export, run_id: str, there: str) -> None:
    """Write a run's tasks; `there` is the run's id in RunStore."""
    for task in each(out.log, Task, "created_at, id", "where run_id = :run_id", run_id=run_id):
        defaults = {**_LISTS, "created_at": EPOCH, "updated_at": task.created_at}
        placed = (*_PLACED, "reason") if task.reason == WAS_RUNNING else _PLACED
        out.write_record("tasks", task, _TASK, defaults=defaults, placed=placed, run_id=there, status=STATUS[task.state])


class AttemptTrail:
    """Follows a run's entries in order and returns each attempt when it ends; only open ones are remembered."""

    def __init__(self) -> None:
        self._open: dict[str, tuple[dict[str, Any], str | None]] = {}
        self._taken_over: str | None = None

    def follow(self, entry: Entry) -> tuple[Attempt, str | None] | None:
        """Process the next entry; return the attempt that it ended, and the attempt's id in the source."""
        if entry.record_table == Task.table:
            image: dict[str, Any] = entry.payload  # type: ignore[assignment]
            return self._version(image)
        if entry.subtype == "imported" and isinstance(entry.payload, dict) and entry.payload.get("table") == "task_attempts":
            # The import writes this mark directly before the task version in which the attempt begins.
            self._taken_over = entry.payload.get("id")
        return None

    def _version(self, image: dict[str, Any]) -> tuple[Attempt, str | None] | None:
        begun, name = self._open.get(image["id"], (None, None))
        if image["state"] == TaskState.RUNNING:
            self._open[image["id"]] = (image, self._taken_over or name)
            self._taken_over = None
            return None
        if begun is None:
            return None
        found = build_attempts([begun, image])
        if not found or found[0].ended_at is None:
            return None
        del self._open[image["id"]]
        return found[0], name


def write_attempt(out: Export, attempt: Attempt, name: str | None, there: str) -> None:
    """Write an ended attempt, under its original id or one that is the same in every export."""
    row = columns_of(attempt, "task_id attempt_number=number summary blocker_signature=blocker created_at=ended_at")
    row |= {"id": name or f"{attempt.task_id}-attempt-{attempt.number}", "run_id": there, "result_json": text_of(attempt.result)}
    row["status"] = attempt.outcome and _OUTCOMES.get(attempt.outcome, attempt.outcome.value)
    out.write("task_attempts", f"task_attempts {name}", row, {"summary": "", "result_json": "{}"})


SYSTEM = "runstore"
# Record kinds that have a table in RunStore.
_TABLES = ("runs", "agents", "tasks", "artifacts", "checkpoints", "approvals")
_RUN = (
    "id goal repo_path=repo status summary cycle_count=cycles replan_count=replans current_task_id created_at=started_at"
    " updated_at"
)
_AGENT = "role session_id=session turns rotation_count=rotations last_prompt_path last_response_path updated_at"
_EVENT = ("agent_id", "group_id", "task_id", "iteration", "phase", "confidence", "refs")
_APPROVAL = ("id", "run_id", "source", "verdict", "rationale", "payload", "asked_at", "decided_at", "state", "number")


class RunStoreExport(Export):
    """Exports runs with their records. Unanswered approvals and records without a run have no table there."""

    def __init__(self, log: Decklog, path: str, progress: Callable[[str, int, int], None] | None = None) -> None:
        super().__init__(log, path, SYSTEM, report=ExportReport(path, progress), spell=time_text, wal=True)

    def run(self) -> dict[str, Any]:
        """Write a consistent snapshot; return the number of rows per table and the counts of records left out."""
        with self:
            return self.log.db.read(self._write)

    def _write(self) -> dict[str, Any]:
        SCHEMA.create(self.db)
        for run in each(self.log, Run, "started_at, id"):
            there = self._run(run)
            self._agents(run.id, there)
            write_tasks(self, run.id, there)
            self._journal(run.id, there)
            self._artifacts(run.id, there)
            self._checkpoints(run.id, there)
            self._approvals(run.id, there)
        self.write_kept(TABLES)
        self.insert_waiting("events")
        self._leave_out()
        return self.finish()

    def _run(self, run: Run) -> str:
        """Write a run; return its id in RunStore, which differs if Decklog could not use the original id."""
        defaults = {"repo_path": "", "created_at": EPOCH, "updated_at": run.started_at}
        return str(self.write_record("runs", run, _RUN, defaults=defaults, placed=("ended_at",))["id"])

    def _agents(self, run_id: str, there: str) -> None:
        for agent in each(self.log, Agent, "role", "where run_id = :run_id", run_id=run_id):
            name, defaults = f"{there}/{agent.role}", {"updated_at": EPOCH}
            self.write_record("agents", agent, _AGENT, name=name, defaults=defaults, placed=("run_id",), run_id=there)

    def _journal(self, run_id: str, there: str) -> None:
        """Write a run's events, and the attempts at its tasks from the same entries."""
        trail = AttemptTrail()
        for entry in find_all(self.log.journal.find, run_id, oldest_first=True):
            ended = trail.follow(entry)
            if ended is not None:
                write_attempt(self, *ended, there)
            elif entry.kind is not EntryKind.CHANGE and not (entry.subtype or "").startswith("imported"):
                self._event(entry, there)

    def _event(self, entry: Entry, there: str) -> None:
        row = columns_of(entry, "ts=at source=agent kind=subtype message=body")
        row |= {"run_id": there, "payload_json": text_of(entry.payload or None)}
        defaults = {"source": "system", "kind": entry.kind.value, "message": "", "payload_json": "{}"}
        self.insert_numbered("events", self.kept.restored(entry.id, row, defaults), number_of(entry.key, SYSTEM, "events"))
        for name in _EVENT:
            if getattr(entry, name) is not None:
                self.report.leave_out(f"entries.{name}")

    def _artifacts(self, run_id: str, there: str) -> None:
        for artifact in find_all(self.log.artifacts.find, run_id=run_id, oldest_first=True):
            columns, placed = "id role kind path created_at metadata_json=metadata", ("run_id", "number", "media_type")
            defaults = {"created_at": EPOCH, "metadata_json": "{}"}
            self.write_record("artifacts", artifact, columns, defaults=defaults, placed=placed, run_id=there)

    def _checkpoints(self, run_id: str, there: str) -> None:
        for found in each(self.log, Checkpoint, "number", "where run_id = :run_id", run_id=run_id):
            try:
                checkpoint = self.log.states.get_checkpoint(found.id)
            except NotFound as problem:
                self.report.refuse(f"checkpoints {found.id}", problem.message)
                continue
            more: Columns = {"run_id": there, "payload_json": text_of(checkpoint.payload)}
            defaults = {"status": checkpoint.name or "", "payload_json": "{}"}
            placed = ("run_id", "payload", "number", "digest", "seq", "redacted")
            self.write_record("checkpoints", found, "id status created_at", defaults=defaults, placed=placed, **more)

    def _approvals(self, run_id: str, there: str) -> None:
        for approval in find_all(self.log.approvals.find, run_id=run_id, oldest_first=True):
            if approval.verdict is None:
                # RunStore's approvals are verdicts: its program would read a newer question as the answer.
                self.report.leave_out("approvals without a verdict")
            else:
                self._verdict(approval, there)

    def _verdict(self, approval: Approval, there: str) -> None:
        row = columns_of(approval, "id source verdict rationale created_at=decided_at")
        row |= {"run_id": there, "payload_json": text_of(approval.payload or None)}
        source = approval.decided_by or approval.asked_of or "unknown"
        defaults = {"source": source, "rationale": "", "payload_json": "{}", "created_at": approval.asked_at}
        written = self.write("approvals", f"approvals {approval.id}", row, defaults)
        placed = (*_APPROVAL, "decided_by") if written["source"] == approval.decided_by else _APPROVAL
        self.report.leave_out_fields("approvals", approval, placed)

    def _leave_out(self) -> None:
        """Count the records without a run, and those of kinds that have no table."""
        sql = """
            select count(*) from entries
             where substr(stream, 1, 1) = '@' and kind <> 'change' and coalesce(substr(subtype, 1, 8), '') <> 'imported'
            """
        self.report.leave_out("entries of no run", self.log.db.rows(sql, {})[1][0][0])
        self.report.leave_out_kept(self.kept.of_others)
        self.report.leave_out_tables(self.log, _TABLES)


def time_text(moment: datetime) -> str:
    """Format a time with milliseconds and Z, as its program does, which sorts times as texts."""
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z"
