"""Takes over a RunStore database: runs and their agents, tasks with their attempts, events, artifacts, checkpoints, approvals."""

from typing import TYPE_CHECKING, ClassVar

from decklog.core.errors import Invalid, NotFound
from decklog.importing.draft import Draft, describes
from decklog.importing.importing import Import
from decklog.importing.landing import run_id_of, told
from decklog.importing.report import Fate
from decklog.importing.row import EPOCH, Row
from decklog.importing.source import SqliteSource
from decklog.journal.entry import EntryKind
from decklog.plugins.importers.runstore.tasks import TaskTables
from decklog.stores.artifacts.artifacts import Artifact, media_type_of
from decklog.stores.of_run import next_number
from decklog.stores.runs.run import ENDED, Agent, Run, RunStatus

if TYPE_CHECKING:
    from datetime import datetime
    from typing import Any

    from decklog.importing.landing import Mapping
    from decklog.log import Decklog

TABLES: dict[str, tuple[str, ...]] = {
    "runs": (
        *("id", "goal", "repo_path", "status", "summary", "cycle_count", "replan_count", "current_task_id"),
        *("created_at", "updated_at"),
    ),
    "agents": (
        *("run_id", "role", "session_id", "turns", "rotation_count", "last_prompt_path", "last_response_path", "updated_at"),
    ),
    "tasks": (
        *("id", "run_id", "title", "objective", "acceptance_criteria_json", "verification_steps_json", "allowed_paths_json"),
        *("status", "attempt_count", "implementation_summary", "blocker_signature", "created_at", "updated_at"),
    ),
    "task_attempts": (
        *("id", "run_id", "task_id", "attempt_number", "status", "summary", "blocker_signature", "result_json", "created_at"),
    ),
    "events": ("id", "run_id", "ts", "source", "kind", "message", "payload_json"),
    "artifacts": ("id", "run_id", "role", "kind", "path", "created_at", "metadata_json"),
    "checkpoints": ("id", "run_id", "status", "payload_json", "created_at"),
    "approvals": ("id", "run_id", "source", "verdict", "rationale", "payload_json", "created_at"),
}
_JSON = (dict, list, str, int, float, bool)


class RunStoreImport(Import, TaskTables):
    """One file with eight tables; it has no version, and nothing in it is bound to anything else."""

    system = "runstore"
    tables = TABLES
    keys: ClassVar = {"agents": ("run_id", "role")}

    def __init__(self, log: "Decklog", path: str, **settings: "Any") -> None:
        super().__init__(log, path, **settings)
        # The runs that are here, by their names there.
        self.runs: dict[str, str] = {}
        self.attempts: dict[str, list[Row]] = {}
        self.attempt_fates: dict[str, Fate] = {}

    def mappings(self) -> "dict[str, Mapping]":
        """Name the tables with their mappings."""
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
        """Refuse what is no RunStore."""
        missing = [table for table in ("runs", "tasks", "task_attempts") if table not in source]
        if missing:
            raise Invalid(f"{source.path} is no RunStore database: it has no {', '.join(missing)}")

    def take(self, source: SqliteSource) -> None:
        """Read the attempts before their tasks, because a task's versions tell them."""
        for row in self.rows_of("task_attempts", source.rows("task_attempts")):
            self.attempts.setdefault(str(row.columns.get("task_id")), []).append(row)
        super().take(source)

    def in_run(self, row: Row) -> str:
        """Place a row in its run; one whose run is gone can't be placed."""
        name = str(row.take("run_id"))
        run_id = row.stream = self.runs.get(name) or self._run_of(name)
        return run_id

    def _run_of(self, name: str) -> str:
        run_id = run_id_of(name)
        if not self.landing.has_run(run_id):
            raise NotFound(f"its run {name} is not in the file")
        self.runs[name] = run_id
        return run_id

    def run_row(self, row: Row) -> Fate:
        """Take a run over; a status of the caller's own becomes `active`."""
        run_id = row.stream = run_id_of(str(row.take("id")))
        if run_id != row.columns["id"]:
            row.replace("id", run_id)
        status = row.one_of("status", RunStatus, RunStatus.ACTIVE)
        created: datetime = row.time("created_at", EPOCH)
        updated: datetime = row.time("updated_at", created)
        return self.landing.record(
            Run,
            clock="updated_at",
            new_stream=True,
            id=run_id,
            goal=row.text("goal", ""),
            repo=row.text("repo_path"),
            status=status,
            summary=row.text("summary"),
            cycles=row.whole("cycle_count", 0),
            replans=row.whole("replan_count", 0),
            current_task_id=row.text("current_task_id"),
            started_at=created,
            updated_at=updated,
            ended_at=updated if status in ENDED else None,
        )

    def agent(self, row: Row) -> Fate:
        """Take an agent of a run over."""
        return self.landing.record(
            Agent,
            clock="updated_at",
            run_id=self.in_run(row),
            role=row.text("role"),
            session=row.text("session_id"),
            turns=row.whole("turns", 0),
            rotations=row.whole("rotation_count", 0),
            last_prompt_path=row.text("last_prompt_path"),
            last_response_path=row.text("last_response_path"),
            updated_at=row.time("updated_at", EPOCH),
        )

    @describes
    def event(self, row: Row) -> Draft:
        """Make an event an entry; its source is the agent."""
        self.in_run(row)
        row.take("id")
        entry = {
            "body": row.text("message", ""),
            "kind": EntryKind.EVENT,
            "subtype": row.text("kind"),
            "agent": row.text("source"),
            "payload": row.json("payload_json", (dict, list)),
            "at": row.time("ts"),
        }
        return self.landing.entry(row, entry)

    def artifact(self, row: Row) -> Fate:
        """Take over where an artifact is; its bytes are not in the file."""
        run_id, artifact_id, path = self.in_run(row), row.text("id"), row.text("path", "")
        present = self.landing.intake.seek(Artifact, artifact_id)
        return self.landing.record(
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

    def checkpoint(self, row: Row) -> Fate:
        """Take a checkpoint over; it marks the place that the journal has come to."""
        made = self.log.states.checkpoint(
            self.in_run(row),
            status=row.text("status"),
            payload=row.json("payload_json", _JSON, {}),
            checkpoint_id=row.text("id"),
            created_at=row.time("created_at"),
        )
        return told(made)

    def approval(self, row: Row) -> Fate:
        """Take a verdict over in its own words; it is bound to nothing, and lets nothing pass."""
        recorded = self.log.approvals.record(
            self.in_run(row),
            row.text("source", ""),
            row.text("verdict", ""),
            rationale=row.text("rationale"),
            payload=row.json("payload_json", (dict, list)),
            approval_id=row.text("id"),
            at=row.time("created_at"),
        )
        return told(recorded)
