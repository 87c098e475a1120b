"""Import Hermes Kanban boards: tasks, links, comments, events and the runs of workers."""

import os
from datetime import UTC, datetime
from typing import Any, ClassVar

from decklog.core.clock import to_text
from decklog.core.errors import Invalid, NotFound
from decklog.importing.importer import Link
from decklog.importing.row import EPOCH, Row, parse_json, to_storable
from decklog.importing.source import SqliteSource
from decklog.importing.tracker import COMMENTS, ITEM_COLUMN, LINKS, WAS_RUNNING, TableLayout, TableTracker
from decklog.importing.writer import PendingEntry, PendingRecord, child_run_id, pure_mapping
from decklog.stores.tasks.task import LinkKind, TaskState

DEFAULT = "default"
FILE = "kanban.db"
STATES = {
    "triage": TaskState.PAUSED,
    "todo": TaskState.PENDING,
    "scheduled": TaskState.PAUSED,
    "ready": TaskState.PENDING,
    "running": TaskState.PAUSED,
    "blocked": TaskState.BLOCKED,
    "review": TaskState.PAUSED,
    "done": TaskState.DONE,
    "archived": TaskState.ABANDONED,
}
_TASK = (
    "id title body assignee status priority created_by created_at started_at completed_at workspace_kind workspace_path"
    " branch_name project_id claim_lock claim_expires tenant result idempotency_key consecutive_failures worker_pid"
    " last_failure_error max_runtime_seconds last_heartbeat_at current_run_id skills model_override reasoning_effort max_retries"
    " goal_mode session_id block_kind block_recurrences"
)
# Columns of the worker of a task, which does not exist here.
_WORKER_COLUMNS = ("claim_lock", "claim_expires", "worker_pid", "last_heartbeat_at", "current_run_id")
_IMPORTED = ("id", "title", "body", "assignee", "status", "priority", "created_at", "result", *_WORKER_COLUMNS)
_SHOWN = tuple(name for name in _TASK.split() if name not in _IMPORTED)
_OF_TASK = "task_id=tasks"
_WHEN = ("created_at", "started_at", "ended_at", "completed_at", "last_heartbeat_at", "claim_expires")
_LATEST = 253_402_300_799
_DEFAULT_PRIORITY = 50


class HermesImport(TableTracker):
    """Imports boards. Each is a database; its tables gained columns over time."""

    system = "hermes"
    items = "tasks"
    goal = "A board of Hermes Kanban"
    layout: ClassVar = {
        "tasks": TableLayout(_TASK),
        "task_links": TableLayout("parent_id child_id", key=("child_id", "parent_id"), of="child_id=tasks", kind=LINKS),
        "task_comments": TableLayout("id task_id author body created_at", of=_OF_TASK, kind=COMMENTS),
        "task_runs": TableLayout(
            "id task_id profile status outcome started_at ended_at summary metadata error claim_lock worker_pid session_id"
            " step_key max_runtime_seconds last_heartbeat_at",
            at="started_at",
            of=_OF_TASK,
        ),
        "task_events": TableLayout("id task_id run_id kind payload created_at", of=_OF_TASK),
        "task_attachments": TableLayout("id task_id filename path size created_at", of=_OF_TASK),
    }

    def databases(self) -> dict[str, str]:
        """Find the boards: a file, or those below the program's folder."""
        if not os.path.isdir(self.path):
            # With several boards, each has the name of its folder.
            folder, board = os.path.split(os.path.dirname(os.path.abspath(self.path)))
            return {board if os.path.basename(folder) == "boards" else DEFAULT: self.path}
        boards = os.path.join(self.path, "kanban", "boards")
        found = {DEFAULT: os.path.join(self.path, FILE)}
        found |= {slug: os.path.join(boards, slug, FILE) for slug in sorted(os.listdir(boards) if os.path.isdir(boards) else ())}
        there = {board: path for board, path in found.items() if os.path.isfile(path)}
        if not there:
            raise NotFound(f"there is no {FILE} in {self.path}", hint="Name the folder of Hermes, or the file.", path=self.path)
        return there

    def check(self, source: SqliteSource) -> None:
        """Raise for a database that is not a board."""
        if "tasks" not in source or "task_events" not in source:
            raise Invalid(f"{source.path} is no board of Hermes Kanban: it has no tasks or no task_events", path=source.path)

    def place_of(self, _table: str, _columns: dict[str, Any], database: str) -> str:
        """Return the board of a task, and record its run."""
        self.places[database] = self.run_id if database == DEFAULT else child_run_id(self.run_id, database)
        self.titles[database] = self.goal if database == DEFAULT else f"{self.goal}: {database}"
        return database

    def spelled(self, name: str, value: Any) -> Any:
        """Convert times from seconds since 1970 to text."""
        is_time = name in _WHEN and isinstance(value, (int, float)) and 0 < value < _LATEST
        return to_text(datetime.fromtimestamp(value, UTC)) if is_time else to_storable(value)

    def is_done(self, columns: dict[str, Any]) -> bool:
        """Return whether a task is done; an archived task may be done, too."""
        return columns.get("status") == "done" or (columns.get("status") == "archived" and "completed_at" in columns)

    @pure_mapping
    def item(self, row: Row) -> PendingRecord:
        """Build a task item; columns of its worker are not imported."""
        state, reason = self._state(row)
        shown = {name: self._shown(row, name) for name in _SHOWN if row.columns.get(name) not in (None, "", 0)}
        row.ignore(("id", *_WORKER_COLUMNS, *_SHOWN))
        # There is no column for the time of the last change.
        return self.task(
            row,
            title=row.text("title", ""),
            objective=row.text("body", ""),
            state=state,
            reason=reason,
            priority=self._priority(row),
            inputs={self.system: shown} if shown else {},
            assigned_to=row.text("assignee") or None,
            summary=row.text("result") or None,
            created_at=row.time("created_at", EPOCH),
            updated_at=None,
        )

    def _shown(self, row: Row, name: str) -> Any:
        parsed = parse_json(row.columns[name]) if name == "skills" else NotImplemented
        return row.columns[name] if parsed is NotImplemented else parsed

    def _state(self, row: Row) -> tuple[TaskState, str | None]:
        word = str(row.columns.get("status") or "todo")
        if self.is_done(row.columns):
            row.take("status")
            return TaskState.DONE, None
        if word in STATES:
            row.take("status")
        else:
            row.replace("status", "paused")
        state = STATES.get(word, TaskState.PAUSED)
        if state is TaskState.ABANDONED:
            return state, "archived in Hermes"
        if state is not TaskState.PAUSED:
            return state, None
        return state, WAS_RUNNING if word == "running" else f"{word} in Hermes"

    def _priority(self, row: Row) -> int:
        """Convert a priority: 0 is the default, and higher is more urgent."""
        given = row.integer("priority", 0, low=-1000, high=1000)
        priority = min(100, max(0, _DEFAULT_PRIORITY + 10 * int(given)))
        if priority != _DEFAULT_PRIORITY + 10 * int(given):
            row.replace("priority", priority)
        return priority

    def read_link(self, row: Row) -> Link:
        """Parse a link: the child depends on its parent."""
        item = row.take(ITEM_COLUMN)
        child, parent = row.take("child_id"), row.take("parent_id")
        if item is None:
            raise Invalid(f"{child} is not in the source")
        return Link(item, f"{item.rpartition('/')[0]}/{parent}", LinkKind.BLOCKS)

    @pure_mapping
    def comment(self, row: Row) -> PendingRecord:
        item, body = self.take_item(row), row.text("body", "")
        row.ignore(("id", "task_id"))
        return self.comment_record(row, item, author=row.text("author", ""), body=body, at=row.time("created_at", EPOCH))

    @pure_mapping
    def map_event(self, row: Row) -> PendingEntry:
        """Build the entry for an event, a worker's run or an attachment."""
        row.ignore(("id", "task_id", "claim_lock", "worker_pid"))
        for name in ("payload", "metadata"):
            if (parsed := parse_json(row.columns.get(name))) is not NotImplemented:
                row.leftovers[name] = parsed
        if row.table == "task_runs":
            body = row.text("summary") or row.text("error") or str(row.columns.get("outcome") or row.columns.get("status"))
            return self.event_entry(row, subtype="attempt", body=body, at=row.time("started_at"), agent=row.text("profile"))
        if row.table == "task_events":
            word = row.text("kind", "event")
            return self.event_entry(row, subtype=word, body=word, at=row.time("created_at"))
        name = row.text("filename", "") or row.text("path", "")
        return self.event_entry(row, subtype="attachment", body=name, at=row.time("created_at"))
