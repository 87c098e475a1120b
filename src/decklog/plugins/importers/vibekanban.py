"""Import Vibe Kanban's database: each project is a run, its tasks are tasks, and agents' work becomes entries."""

import os
from typing import Any
from uuid import UUID

from decklog.core.errors import Invalid, NotFound
from decklog.importing.importer import Link
from decklog.importing.row import EPOCH, Row, parse_json, to_storable
from decklog.importing.source import SqliteSource
from decklog.importing.tracker import ITEM_COLUMN, LINKS, WAS_RUNNING, TableLayout, TableTracker, read_set_time
from decklog.importing.writer import PendingEntry, PendingRecord, pure_mapping
from decklog.stores.tasks.task import LinkKind, TaskState

_TIMES = "created_at updated_at"
_OF_TASK, _OF_WORKSPACE, _OF_ATTEMPT = "task_id=tasks", "workspace_id=workspaces", "task_attempt_id=task_attempts"
_OF_PROCESS = "execution_process_id=execution_processes"
LAYOUT = {
    "tasks": TableLayout(
        f"id project_id title description status parent_workspace_id parent_task_attempt image_ids shared_task_id {_TIMES}",
        clock="updated_at",
    ),
    "workspaces": TableLayout(
        f"id task_id branch container_ref archived pinned name worktree_deleted agent_working_dir setup_completed_at {_TIMES}",
        of=_OF_TASK,
    ),
    # Before December 2025 an attempt was one table, and so was a session.
    "task_attempts": TableLayout(
        "id task_id branch target_branch base_branch executor container_ref worktree_deleted setup_completed_at merge_commit"
        f" pr_url pr_number pr_status pr_merged_at {_TIMES}",
        of=_OF_TASK,
    ),
    "sessions": TableLayout(f"id workspace_id executor name agent_working_dir {_TIMES}", of=_OF_WORKSPACE),
    "execution_processes": TableLayout(
        "id session_id task_attempt_id run_reason executor_action status exit_code started_at completed_at dropped"
        f" after_head_commit before_head_commit {_TIMES}",
        at="started_at",
        of=f"session_id=sessions {_OF_ATTEMPT}",
    ),
    "coding_agent_turns": TableLayout(
        f"id execution_process_id agent_session_id agent_message_id prompt summary seen {_TIMES}", of=_OF_PROCESS
    ),
    "executor_sessions": TableLayout(
        f"id task_attempt_id execution_process_id session_id prompt summary {_TIMES}", of=f"{_OF_PROCESS} {_OF_ATTEMPT}"
    ),
    "execution_process_repo_states": TableLayout(
        f"id execution_process_id repo_id before_head_commit after_head_commit merge_commit {_TIMES}", of=_OF_PROCESS
    ),
    "execution_process_logs": TableLayout(
        "execution_id execution_process_id logs byte_size inserted_at",
        key=("execution_id", "execution_process_id", "inserted_at"),
        at="inserted_at",
        of=f"execution_id=execution_processes {_OF_PROCESS}",
    ),
    "merges": TableLayout(
        "id workspace_id task_attempt_id repo_id merge_type merge_commit target_branch_name pr_number pr_url pr_status"
        " pr_merged_at pr_merge_commit_sha created_at",
        of=f"{_OF_WORKSPACE} {_OF_ATTEMPT}",
    ),
    "pull_requests": TableLayout(
        f"id workspace_id repo_id pr_url pr_number pr_status target_branch_name merged_at merge_commit_sha synced_at {_TIMES}",
        of=_OF_WORKSPACE,
    ),
}
# Tables without facts about tasks, or with facts that the others repeat.
IGNORED = (
    *("_sqlx_migrations", "projects", "repos", "project_repos", "workspace_repos", "tags", "images", "task_images", "scratch"),
    *("batch", "follow_up_drafts", "task_templates", "shared_tasks", "shared_activity_cursors", "migration_state"),
)


FILES = ("db.v2.sqlite", "db.sqlite")
STATES = {
    "todo": TaskState.PENDING,
    "inprogress": TaskState.PAUSED,
    "inreview": TaskState.PAUSED,
    "done": TaskState.DONE,
    "cancelled": TaskState.ABANDONED,
}
_UUID_BYTES = 16
# The subtype of a row's entry, and the columns for its body.
_EVENTS_OF = {
    "workspaces": ("attempt", ("name", "branch")),
    "task_attempts": ("attempt", ("branch", "executor")),
    "sessions": ("session", ("name", "executor")),
    "execution_processes": ("process", ("run_reason", "status")),
    "coding_agent_turns": ("turn", ("summary", "prompt")),
    "executor_sessions": ("turn", ("summary", "prompt")),
    "execution_process_repo_states": ("commits", ("after_head_commit", "before_head_commit")),
    "execution_process_logs": ("log", ("logs",)),
    "merges": ("merge", ("merge_commit", "pr_url")),
    "pull_requests": ("pull request", ("pr_url",)),
}


class VibeKanbanImport(TableTracker):
    """Imports one database; its ids are UUIDs of 16 bytes."""

    system = "vibekanban"
    items = "tasks"
    goal = "A project of Vibe Kanban"
    layout = LAYOUT
    ignored = IGNORED

    def databases(self) -> dict[str, str]:
        """Find the database: the given path, or in the program's folder."""
        if not os.path.isdir(self.path):
            return {"": self.path}
        found = next((path for name in FILES if os.path.isfile(path := os.path.join(self.path, name))), None)
        if found is None:
            raise NotFound(f"there is no {FILES[0]} in {self.path}", hint="Name the file itself.", path=self.path)
        return {"": found}

    def check(self, source: SqliteSource) -> None:
        """Raise for a database that is not Vibe Kanban's; load the names of its projects."""
        missing = [table for table in ("projects", "tasks", "execution_processes") if table not in source]
        if missing:
            raise Invalid(f"{source.path} is no database of Vibe Kanban's: it has no {', '.join(missing)}", path=source.path)
        for row in source.rows("projects"):
            self.titles[str(self.spelled("id", row.get("id")))] = str(row.get("name") or self.goal)

    def spelled(self, _name: str, value: Any) -> Any:
        """Convert ids to their usual text form."""
        return str(UUID(bytes=value)) if isinstance(value, bytes) and len(value) == _UUID_BYTES else to_storable(value)

    def place_of(self, _table: str, columns: dict[str, Any], _database: str) -> str:
        """Return the project of a task, and record its run."""
        project = str(columns.get("project_id"))
        self.places[project] = f"{self.run_id}-{project[:8]}"
        return project

    def is_done(self, columns: dict[str, Any]) -> bool:
        return columns.get("status") == "done"

    @pure_mapping
    def item(self, row: Row) -> PendingRecord:
        """Build a task item; there are no priorities and no dependencies."""
        row.stream = self.run_of(row.id)
        row.ignore(("id", "project_id"))
        word = str(row.take("status", "todo")).lower()
        if word not in STATES:
            row.replace("status", "inprogress")
        state = STATES.get(word, TaskState.PAUSED)
        paused = WAS_RUNNING if word == "inprogress" else f"{word} in Vibe Kanban"
        return self.task(
            row,
            title=row.text("title", ""),
            objective=row.text("description", ""),
            state=state,
            reason=paused if state is TaskState.PAUSED else None,
            created_at=read_set_time(row, "created_at") or EPOCH,
            updated_at=read_set_time(row, "updated_at"),
        )

    def gather_parts(self, item: Row) -> None:
        """Collect the link to the task on which an agent worked when it created this one."""
        for name, table in (("parent_workspace_id", "workspaces"), ("parent_task_attempt", "task_attempts")):
            if (parent := item.columns.get(name)) is not None:
                columns = {ITEM_COLUMN: item.id, "other": self.owner(table, parent), name: parent}
                self.gathered.add(LINKS, f"{item.id}/{parent}", columns)

    def read_link(self, row: Row) -> Link:
        item, other = row.take(ITEM_COLUMN), row.take("other")
        if other is None:
            raise Invalid("the attempt that it came of is not in the source")
        return Link(item, other, LinkKind.DISCOVERED_FROM)

    @pure_mapping
    def map_event(self, row: Row) -> PendingEntry:
        """Build the entry for an attempt, a session, a process, a turn of an agent or a merge."""
        subtype, texts = _EVENTS_OF[row.table]
        if (parsed := parse_json(row.columns.get("executor_action"))) is not NotImplemented:
            row.leftovers["executor_action"] = parsed
        column = next((name for name in texts if isinstance(row.columns.get(name), str) and row.columns[name].strip()), None)
        body = row.text(column, "") if column else subtype
        when = next((name for name in ("started_at", "created_at", "inserted_at") if name in row.columns), "created_at")
        return self.event_entry(row, subtype=subtype, body=body, at=row.time(when), agent=row.text("executor"))
