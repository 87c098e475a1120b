"""Takes over Vibe Kanban's database: each project is a run, its tasks are tasks, and what agents did are entries of it."""

import os
from typing import TYPE_CHECKING, ClassVar
from uuid import UUID

from decklog.core.errors import Invalid, NotFound
from decklog.importing.draft import Draft, RecordDraft, describes
from decklog.importing.row import EPOCH, Row, parsed_json, plain
from decklog.importing.source import SqliteSource
from decklog.importing.table_tracker import ITEM, Table, TableTracker
from decklog.importing.tracker import LINKS, WAS_RUNNING, Link, NestedRow, set_time
from decklog.plugins.importers.vibekanban.layout import ELSEWHERE, IGNORED, LAYOUT
from decklog.stores.tasks.task import LinkKind, TaskState

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

FILES = ("db.v2.sqlite", "db.sqlite")
STATES = {
    "todo": TaskState.PENDING,
    "inprogress": TaskState.PAUSED,
    "inreview": TaskState.PAUSED,
    "done": TaskState.DONE,
    "cancelled": TaskState.ABANDONED,
}
_UUID_BYTES = 16
# What a row becomes, and the column that says it best.
_TOLD = {
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
    """One database; its ids are UUIDs of 16 bytes."""

    system = "vibekanban"
    items = "tasks"
    goal = "A project of Vibe Kanban"
    layout: ClassVar[dict[str, Table]] = LAYOUT
    led_to_otherwise = frozenset(("workspaces", "task_attempts", *(table for _, table in ELSEWHERE.values())))
    tables: ClassVar = {name: table.columns for name, table in LAYOUT.items()}
    ignored = IGNORED

    def databases(self) -> "dict[str, str]":
        """Find the database: as it is named, or in the program's folder."""
        if not os.path.isdir(self.path):
            return {"": self.path}
        found = next((path for name in FILES if os.path.isfile(path := os.path.join(self.path, name))), None)
        if found is None:
            raise NotFound(f"there is no {FILES[0]} in {self.path}", hint="Name the file itself.", path=self.path)
        return {"": found}

    def check(self, source: SqliteSource) -> None:
        """Refuse what is not Vibe Kanban's; read what its projects are called."""
        missing = [table for table in ("projects", "tasks", "execution_processes") if table not in source]
        if missing:
            raise Invalid(f"{source.path} is no database of Vibe Kanban's: it has no {', '.join(missing)}", path=source.path)
        for row in source.rows("projects"):
            self.titles[str(self.spelled("id", row.get("id")))] = str(row.get("name") or self.goal)

    def spelled(self, _name: str, value: "Any") -> "Any":
        """Spell ids as people do."""
        return str(UUID(bytes=value)) if isinstance(value, bytes) and len(value) == _UUID_BYTES else plain(value)

    def place_of(self, _table: str, columns: "dict[str, Any]", _database: str) -> str:
        """Name the project of a task, and its run."""
        project = str(columns.get("project_id"))
        self.places[project] = f"{self.run_id}-{project[:8]}"
        return project

    def _owner(self, layout: Table, columns: "dict[str, Any]") -> str | None:
        """Name the task that a row belongs to, whichever version wrote it."""
        found = super()._owner(layout, columns)
        other = next((ELSEWHERE[table] for table, its in LAYOUT.items() if its is layout and table in ELSEWHERE), None)
        return found if found or other is None else self.owner(other[1], columns.get(other[0]))

    def is_done(self, columns: "dict[str, Any]") -> bool:
        """Return whether a task is done."""
        return columns.get("status") == "done"

    @describes
    def item(self, row: Row) -> RecordDraft:
        """Describe a task; there are no priorities and no dependencies."""
        row.stream = self.run_of(row.id)
        row.pass_over(("id", "project_id"))
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
            created_at=set_time(row, "created_at") or EPOCH,
            updated_at=set_time(row, "updated_at"),
        )

    def parts_of(self, item: Row) -> "Iterator[NestedRow]":
        """Yield what a task came of: an agent made it while it worked on another."""
        for name, table in (("parent_workspace_id", "workspaces"), ("parent_task_attempt", "task_attempts")):
            if (parent := item.columns.get(name)) is not None:
                columns = {ITEM: item.id, "other": self.owner(table, parent), name: parent}
                yield NestedRow(LINKS, f"{item.id}/{parent}", columns)

    def link_of(self, row: Row) -> Link:
        """Read a link."""
        item, other = row.take(ITEM), row.take("other")
        if other is None:
            raise Invalid("the attempt that it came of is not in the source")
        return Link(item, other, LinkKind.DISCOVERED_FROM)

    def comment(self, row: Row) -> "Any":
        """Refuse: nothing is said of tasks there."""
        raise Invalid(f"{row} has no place")

    @describes
    def happened(self, row: Row) -> Draft:
        """Describe the entry that an attempt, a session, a process, a turn of an agent or a merge becomes."""
        subtype, telling = _TOLD[row.table]
        if (parsed := parsed_json(row.columns.get("executor_action"))) is not NotImplemented:
            row.left["executor_action"] = parsed
        said = next((name for name in telling if isinstance(row.columns.get(name), str) and row.columns[name].strip()), None)
        body = row.text(said, "") if said else subtype
        when = next((name for name in ("started_at", "created_at", "inserted_at") if name in row.columns), "created_at")
        return self.told(row, subtype=subtype, body=body, at=row.time(when), agent=row.text("executor"))
