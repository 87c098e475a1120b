"""Writes runs as Task Master has them: a tag each, tasks with their subtasks by number, a field a line, so that git can merge."""

import json
import re

from decklog.importers.engine.exports.rows import each
from decklog.importers.engine.exports.texts import TextExport, short_time
from decklog.importers.engine.tracker import LINES, LINKS
from decklog.importers.taskmaster.importer import TASKS
from decklog.importers.taskmaster.words import MAIN, OURS, WORDS, priority_word
from decklog.stores.runs.run import Run
from decklog.stores.work.task import Dependency, LinkKind, Task

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from decklog.app import Decklog

_SYSTEM = "taskmaster"
_PLACED = (
    *("id", "run_id", "title", "objective", "state", "priority", "tags", "acceptance", "verification", "inputs", "assigned_to"),
    *("created_at", "updated_at", "reason", "open_dependencies", "outcome", "worker", "leased_at", "leased_until", "fence"),
    *("failures", "attempts", "blocker_repeats", "reservation_id", "max_attempts", "key"),
)
_ORDER = ("id", "title", "description", "status", "priority", "dependencies", "details", "testStrategy")
_NUMBERED = re.compile(r"-(\d+)(?:\.(\d+))?\Z")


class TaskMasterExport:
    """Writes a run as the tag `master`, and beside it the runs that were made of other tags."""

    def __init__(
        self,
        log: "Decklog",
        path: str,
        *,
        run_id: str,
        replace: bool = False,
        progress: "Callable[[str, int, int], None] | None" = None,
    ) -> None:
        self._log = log
        self._run_id = run_id
        self._out = TextExport(log, path, _SYSTEM, replace=replace, progress=progress)

    def run(self) -> "dict[str, Any]":
        """Write everything as it is at one moment."""
        self._log.runs.get(self._run_id)
        with self._out:
            document = self._log.db.read(self._document)
            self._out.write(json.dumps(document, ensure_ascii=False, indent=2) + "\n")
            return self._out.finish()

    def _document(self) -> "dict[str, Any]":
        kept = {str(row.get("task")): [] for _, row in self._out.kept.rows(LINKS)}  # type: dict[str, list[str]]
        for _, row in self._out.kept.rows(LINKS):
            kept[str(row.get("task"))].append(str(row.get("other")).rpartition("/")[2])
        document = {}
        for run in each(self._log, Run, "id", "where id = :id or substr(id, 1, :size) = :start", **self._named()):
            facts = run.metadata.get(_SYSTEM)
            if run.id != self._run_id and not isinstance(facts, dict):
                continue
            told: dict[str, Any] = facts if isinstance(facts, dict) else {}
            tag = str(told.get("tag") or MAIN)
            document[tag] = {TASKS: _Tag(self._log, self._out, run.id, tag, kept).tasks(), "metadata": told.get("metadata") or {}}
        self._out.report.leave_out(LINES, sum(1 for _ in self._out.kept.rows(LINES)))
        return document

    def _named(self) -> "dict[str, Any]":
        start = f"{self._run_id}-"
        return {"id": self._run_id, "start": start, "size": len(start)}


class _Tag:
    def __init__(self, log: "Decklog", out: TextExport, run_id: str, tag: str, kept: "dict[str, list[str]]") -> None:
        self._out = out
        self._tag = tag
        self._kept = kept
        self._tasks = {task.id: task for task in each(log, Task, "created_at, id", "where run_id = :run_id", run_id=run_id)}
        self._above: dict[str, str] = {}
        self._needs: dict[str, list[str]] = {}
        for link in each(log, Dependency, "task_id, depends_on", "where run_id = :run_id", run_id=run_id):
            if link.kind is LinkKind.PARENT:
                self._above[link.task_id] = link.depends_on
            elif link.kind is LinkKind.BLOCKS:
                self._needs.setdefault(link.task_id, []).append(link.depends_on)
            else:
                out.report.leave_out(f"links ({link.kind})")
        self._names = self._numbered(run_id)

    def _numbered(self, run_id: str) -> "dict[str, tuple[int, int]]":
        """Give every task the number that it had there; one that had none gets the next."""
        names: dict[str, tuple[int, int]] = {}
        for task_id in self._tasks:
            if task_id.startswith(run_id) and (found := _NUMBERED.match(task_id, len(run_id))):
                names[task_id] = (int(found[1]), int(found[2] or 0))
        for task_id in (name for name in self._tasks if name not in names and name not in self._above):
            names[task_id] = (max((whole for whole, _ in names.values()), default=0) + 1, 0)
        for task_id in (name for name in self._tasks if name not in names):
            whole = names[self._top(task_id)][0]
            names[task_id] = (whole, max(part for above, part in names.values() if above == whole) + 1)
        return names

    def _top(self, task_id: str) -> str:
        """Name the whole that a task is a part of: there are no parts of parts there."""
        seen = set[str]()
        while task_id in self._above and task_id not in seen:
            seen.add(task_id)
            task_id = self._above[task_id]
        return task_id

    def tasks(self) -> "list[dict[str, Any]]":
        """Give the tasks of the tag by number, each with its subtasks."""
        wholes: dict[int, dict[str, Any]] = {}
        for task_id, (whole, part) in sorted(self._names.items(), key=lambda named: named[1]):
            row = self._task(self._tasks[task_id], whole, part)
            if part == 0:
                wholes[whole] = {**row, "subtasks": []}
            elif whole in wholes:
                wholes[whole]["subtasks"].append(row)
            else:
                self._out.report.refuse(f"task {task_id}", "the task that it is a part of is not there")
                continue
            self._out.report.count(TASKS)
            self._out.report.leave_out_fields("tasks", self._tasks[task_id], _PLACED)
        return list(wholes.values())

    def _task(self, task: Task, whole: int, part: int) -> "dict[str, Any]":
        shown = task.inputs.get(_SYSTEM)
        facts: dict[str, Any] = dict(shown) if isinstance(shown, dict) else {}
        if _NUMBERED.search(task.id) is None:
            facts["metadata"] = {**(facts.get("metadata") or {}), OURS: task.id}
        name = f"{self._tag}/{whole}" + (f".{part}" if part else "")
        row = {
            **facts,
            "id": part or whole,
            "title": task.title,
            "description": task.objective or None,
            "status": WORDS[task.state],
            "priority": priority_word(task.priority),
            "dependencies": [*self._needed(task.id, whole, part), *self._kept.get(name, ())],
            "testStrategy": "\n".join(task.verification),
            "acceptanceCriteria": task.acceptance or None,
            "tags": task.tags or None,
            "assignee": task.assigned_to,
            "updatedAt": short_time(task.updated_at if task.updated_at != task.created_at else None),
        }
        # It reads no task without a description.
        restored = self._out.kept.restored(f"{TASKS} {name}", row, {"description": task.title})
        names = (*_ORDER, *sorted(restored.keys() - {*_ORDER}))
        return {name: restored[name] for name in names if restored.get(name) is not None}

    def _needed(self, task_id: str, whole: int, part: int) -> "list[int | str]":
        """Spell what a task waits for: a sibling by its number, another task by its, any other subtask by both."""
        spelled: list[int | str] = []
        for other, of_it in sorted(self._names[needed] for needed in self._needs.get(task_id, ())):
            is_sibling = part and other == whole and of_it
            spelled.append(of_it if is_sibling else f"{other}.{of_it}" if of_it else other)
        return spelled
