"""Writes runs as Task Master has them: a tag each, tasks with their subtasks by number, a field a line, so that git can merge."""

from typing import TYPE_CHECKING

from decklog.importing.exports.rows import each
from decklog.importing.exports.texts import TextExport, json_text, short_time
from decklog.importing.landing import run_below
from decklog.importing.tracker import LINES, LINKS
from decklog.plugins.importers.taskmaster.importer import PART_OF, TASKS
from decklog.plugins.importers.taskmaster.naming import spelled_id
from decklog.plugins.importers.taskmaster.words import MAIN, OURS, WORDS, priority_word
from decklog.stores.runs.run import Run
from decklog.stores.tasks.task import Dependency, LinkKind, Task

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import Any

    from decklog.log import Decklog

_SYSTEM = "taskmaster"
_PLACED = (
    *("id", "run_id", "title", "objective", "state", "priority", "tags", "acceptance", "verification", "inputs", "assigned_to"),
    *("created_at", "updated_at", "reason", "open_dependencies", "outcome", "worker", "leased_at", "leased_until", "fence"),
    *("failures", "attempts", "blocker_repeats", "reservation_id", "max_attempts", "key"),
)
# Behind all that are numbers.
_LAST = 10**18
_ORDER = ("id", "title", "description", "status", "priority", "dependencies", "details", "testStrategy")


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
        self._out.runs = self._log.db.read(lambda: [run.id for run, _ in self._tags()])
        with self._out:
            document = self._log.db.read(self._document)
            self._out.write(json_text(document, indent=2) + "\n")
            return self._out.finish()

    def _document(self) -> "dict[str, Any]":
        kept: dict[str, list[str]] = {}
        # What a part is a part of, it says by its place.
        for row in (row for _, row in self._out.kept.rows(LINKS) if row.get("kind") != PART_OF):
            kept.setdefault(str(row.get("task")), []).append(str(row.get("other")).rpartition("/")[2])
        document = {}
        for run, told in self._tags():
            tag = told["tag"]
            document[tag] = {TASKS: _Tag(self._log, self._out, run.id, tag, kept).tasks(), "metadata": told.get("metadata") or {}}
        self._out.report.leave_out(LINES, sum(1 for _ in self._out.kept.rows(LINES)))
        return document

    def _tags(self) -> "Iterator[tuple[Run, dict[str, Any]]]":
        """Yield the runs with what is known of their tags; one of another document may have a name that begins the same."""
        for run in each(self._log, Run, "id", "where id = :id or substr(id, 1, :size) = :start", **self._named()):
            facts = run.metadata.get(_SYSTEM)
            told: dict[str, Any] = facts if isinstance(facts, dict) else {}
            tag = told.get("tag")
            if run.id == self._run_id:
                yield run, {**told, "tag": tag if isinstance(tag, str) else MAIN}
            elif isinstance(tag, str) and tag != MAIN and run.id == run_below(self._run_id, tag):
                yield run, told

    def _named(self) -> "dict[str, Any]":
        start = f"{self._run_id}-"
        return {"id": self._run_id, "start": start, "size": len(start)}


class _Tag:
    def __init__(self, log: "Decklog", out: TextExport, run_id: str, tag: str, kept: "dict[str, list[str]]") -> None:
        self._out = out
        self._tag = tag
        self._start = f"{run_id}-"
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
        self._names = self._numbered()
        self._taken = set(self._names.values())

    def _numbered(self) -> "dict[str, tuple[str, str]]":
        """Return every task the number that it had there, and its part's; one that had none gets the next."""
        by_number = {task_id.removeprefix(self._start): task_id for task_id in self._tasks if self._has_number(task_id)}
        names: dict[str, tuple[str, str]] = {}
        for number, task_id in by_number.items():
            whole, _, part = number.partition(".")
            names[task_id] = (whole, part) if part and whole in by_number else (number, "")
        for task_id in (name for name in self._tasks if name not in names and name not in self._above):
            names[task_id] = (_next(whole for whole, _ in names.values()), "")
        for task_id in (name for name in self._tasks if name not in names):
            whole = names[self._top(task_id)][0]
            names[task_id] = (whole, _next(part for above, part in names.values() if above == whole))
        return names

    def _has_number(self, task_id: str) -> bool:
        """Return whether a task is called by its number there: any text that follows the run's name."""
        return task_id.startswith(self._start) and task_id != self._start

    def _top(self, task_id: str) -> str:
        """Name the whole that a task is a part of: there are no parts of parts there."""
        seen = set[str]()
        while task_id in self._above and task_id not in seen:
            seen.add(task_id)
            task_id = self._above[task_id]
        return task_id

    def tasks(self) -> "list[dict[str, Any]]":
        """Return the tasks of the tag by number, each with its subtasks."""
        wholes: dict[str, dict[str, Any]] = {}
        for task_id, (whole, part) in sorted(self._names.items(), key=lambda named: [*map(_in_order, named[1])]):
            row = self._task(self._tasks[task_id], whole, part)
            if part:
                wholes[whole]["subtasks"].append(row)
            else:
                wholes[whole] = {**row, "subtasks": []}
            self._out.report.count(TASKS)
            self._out.report.leave_out_fields("tasks", self._tasks[task_id], _PLACED)
        return list(wholes.values())

    def _task(self, task: Task, whole: str, part: str) -> "dict[str, Any]":
        shown = task.inputs.get(_SYSTEM)
        facts: dict[str, Any] = dict(shown) if isinstance(shown, dict) else {}
        if not self._has_number(task.id):
            held = facts.get("metadata")
            facts["metadata"] = {**(held if isinstance(held, dict) else {}), OURS: task.id}
        name = f"{self._tag}/{whole}" + (f".{part}" if part else "")
        row = {
            **facts,
            "id": spelled_id(part or whole),
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

    def _needed(self, task_id: str, whole: str, part: str) -> "list[int | str]":
        """Spell what a task waits for: a sibling by its number, another task by its, any other subtask by both."""
        spelled: list[int | str] = []
        needed = (self._names[other] for other in self._needs.get(task_id, ()))
        for other, of_it in sorted(needed, key=lambda name: [*map(_in_order, name)]):
            if part and not of_it and (whole, other) in self._taken:
                # It would be read as the sibling.
                self._out.report.leave_out("dependencies of a subtask on a task with the number of a sibling")
            else:
                spelled.append(spelled_id(of_it if part and other == whole and of_it else f"{other}.{of_it}" if of_it else other))
        return spelled


def _next(numbers: "Iterable[str]") -> str:
    """Return the number after all others; those that are none count for nothing."""
    return str(max((found for number in numbers if isinstance(found := spelled_id(number), int)), default=0) + 1)


def _in_order(number: str) -> "tuple[int, str]":
    found = spelled_id(number) if number else -1
    return (found, "") if isinstance(found, int) else (_LAST, number)
