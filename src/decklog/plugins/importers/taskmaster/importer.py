"""Import Task Master's `tasks.json`: each tag becomes a run, with its tasks and subtasks as tasks."""

import re
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from decklog.core.clock import from_text
from decklog.core.errors import Invalid
from decklog.importing.files import find_file, json_values, read_complete_objects
from decklog.importing.importer import Link
from decklog.importing.row import EPOCH, Row, to_storable
from decklog.importing.tracker import LINKS, WAS_RUNNING, Tracker, read_set_time, sortable_time
from decklog.importing.writer import PendingRecord, child_run_id, pure_mapping
from decklog.log import Decklog
from decklog.records.values import to_json
from decklog.stores.intake import Intake
from decklog.stores.tasks.task import LinkKind, Task, TaskState

PLACES = (".taskmaster/tasks/tasks.json", "tasks/tasks.json", "tasks.json")
MAIN = "master"
# The metadata key with the id of a task that was created in Decklog.
OURS = "decklog"

STATES = {
    "pending": TaskState.PENDING,
    "in-progress": TaskState.PAUSED,
    "done": TaskState.DONE,
    "completed": TaskState.DONE,
    "review": TaskState.PAUSED,
    "deferred": TaskState.PAUSED,
    "cancelled": TaskState.ABANDONED,
    "blocked": TaskState.BLOCKED,
}
WORDS = {
    TaskState.PENDING: "pending",
    TaskState.RUNNING: "in-progress",
    TaskState.WAITING: "review",
    TaskState.BLOCKED: "blocked",
    TaskState.PAUSED: "deferred",
    TaskState.DONE: "done",
    TaskState.ABANDONED: "cancelled",
}
PRIORITIES = {"low": 30, "medium": 50, "high": 70, "critical": 90}

# Columns without a field here that workers need: stored as task inputs under the system's name.
SHOWN = ("details", "complexity", "recommendedSubtasks", "expansionPrompt", "previousStatus", "effort", "metadata")
PARENTS = ("parentTaskId", "parentId", "parentTask")


def priority_word(priority: int) -> str:
    """Return the nearest of Task Master's priorities."""
    return min(PRIORITIES, key=lambda word: abs(PRIORITIES[word] - priority))


_LONGEST = 16


def number_of(task: Any, above: str = "") -> str:
    """Return a task's number as text, without the parent's prefix of a subtask; empty if it has none."""
    name = str(task.get("id") or "").strip() if isinstance(task, dict) else ""
    return name and (f"{above}.{name.removeprefix(f'{above}.')}" if above else name)


def siblings_of(parts: Iterable[Any], above: str) -> set[str]:
    """Return the numbers of a task's subtasks."""
    return {number.removeprefix(f"{above}.") for part in parts if (number := number_of(part, above))}


def needed_number(word: object, above: str, siblings: Collection[str]) -> str:
    """Return the number of a dependency; in a subtask, a number that a sibling has means the sibling."""
    other = str(word).strip()
    return f"{above}.{other}" if above and other in siblings else other


def spelled_id(number: str) -> int | str:
    """Convert a number to an id; keep any other spelling as text."""
    is_number = number.isascii() and number.isdecimal() and len(number) < _LONGEST
    return int(number) if is_number and str(int(number)) == number else number


def ours_of(task: dict[str, Any]) -> str | None:
    """Return the Decklog id of a task, from its metadata."""
    facts = task.get("metadata")
    ours = facts.get(OURS) if isinstance(facts, dict) else None
    return ours if isinstance(ours, str) and ours.strip() else None


def run_of_tag(run_id: str, tag: str) -> str:
    """Return the run id of a tag; `run_id` is that of the main tag."""
    return run_id if tag == MAIN else child_run_id(run_id, tag)


@dataclass(frozen=True)
class NameClaims:
    """Decides which tasks of a document were created in Decklog, by the ids in their metadata."""

    _log: Decklog
    # The run of the main tag.
    _run_id: str
    # Returns whether a tag of the document has a number.
    _has: Callable[[str, str], bool]

    def settled(self, claims: Iterable[tuple[str, str, str]]) -> dict[tuple[str, str], str]:
        """Return the accepted names; each claim is a tag, a number and a name.

        A copied task or tag repeats these ids: one copy is the task, and the others are identified by their numbers.
        """
        named: dict[tuple[str, str], str] = {}
        taken = set[str]()
        for tag, number, ours in sorted(claims, key=lambda one: (self._is_known_by_number(*one[:2]), one[0] != MAIN, one)):
            if ours not in taken and self._can_be(tag, ours):
                named[tag, number] = ours
                taken.add(ours)
        return named

    def _is_known_by_number(self, tag: str, number: str) -> bool:
        return self._run_here(f"{run_of_tag(self._run_id, tag)}-{number}") is not None

    def _run_here(self, task_id: str) -> str | None:
        found = self._log.db.read(lambda: Intake(self._log.parts).seek(Task, task_id))
        return found.run_id if found else None

    def _can_be(self, tag: str, ours: str) -> bool:
        run_id, run_here = run_of_tag(self._run_id, tag), self._run_here(ours)
        if not ours.startswith(f"{run_id}-"):
            return run_here in (None, run_id)
        # Ids of this form belong to tasks with a number.
        return run_here == run_id and not self._has(tag, ours.removeprefix(f"{run_id}-"))


TASKS = "tasks"
_TAG = re.compile(r'"([^"\\]+)"\s*:\s*\{\s*"tasks"\s*:\s*\[')
_LEGACY = re.compile(r'\A\s*\{\s*"tasks"\s*:\s*\[')
PART_OF = "part of"


class TaskMasterImport(Tracker):
    """Imports one JSON document; ids are unique within a tag, and a subtask's within its task."""

    system = "taskmaster"
    items = TASKS
    goal = "What Task Master planned"

    def __init__(self, *words: Any, **settings: Any) -> None:
        super().__init__(*words, **settings)
        self.tags: dict[str, str] = {}
        self.begun: dict[str, str] = {}
        # Tasks that were created in Decklog and exported, by their names in the document.
        self.ours: dict[str, str] = {}
        self._claims: set[tuple[str, str, str]] = set()

    def gather(self) -> None:
        """Parse the document; read both sides of git conflicts, and the complete tasks of a truncated document."""
        path = find_file(self.path, PLACES, "Name the file itself.")
        self._add_documents(path)
        if not self.tags:
            raise Invalid(f"{path} holds no tasks of Task Master's", path=path)
        claims = NameClaims(self.log, self.run_id, lambda tag, number: self.gathered.has(TASKS, f"{tag}/{number}"))
        self.ours = {f"{tag}/{number}": ours for (tag, number), ours in claims.settled(self._claims).items()}

    def _add_documents(self, path: str) -> None:
        sides, broken = json_values(path)
        if len(sides) + len(broken) > 1:
            self.report.note(f"{path} has git conflict markers; of two versions of a task the newer one is taken")
        for side in sides:
            self._add_document(to_storable(side))
        for text in broken:
            self._add_complete_tasks(text)

    def _add_document(self, found: Any) -> None:
        if not isinstance(found, dict):
            raise Invalid(f"{self.path} is no JSON object, and so holds no tasks of Task Master's", path=self.path)
        if isinstance(found.get(TASKS), list):
            # The format before tags, which some versions still write.
            found = {MAIN: found}
        for tag, held in found.items():
            tasks = held.get(TASKS) if isinstance(held, dict) else None
            if isinstance(tasks, list):
                metadata = held.get("metadata")
                self._add_tag(tag, tasks, metadata if isinstance(metadata, dict) else {})
            else:
                self.add_line(to_json({tag: held}), "it is no tag with tasks")

    def _add_complete_tasks(self, text: str) -> None:
        """Add the complete tasks of a truncated document."""
        starts = [(found[1], found.end()) for found in _TAG.finditer(text)]
        starts += [(MAIN, found.end()) for found in _LEGACY.finditer(text)]
        for tag, start in starts:
            self._add_tag(tag, to_storable([*read_complete_objects(text, start)]), {})
        self.add_line(text, "the document was not written to its end; the tasks in it that are whole were taken")

    def _add_tag(self, tag: str, tasks: Iterable[Any], metadata: dict[str, Any]) -> None:
        run_id = run_of_tag(self.run_id, tag)
        self.tags[tag], self.begun[tag] = run_id, sortable_time(metadata.get("created"))
        self.facts[run_id] = {self.system: {"tag": tag, "metadata": metadata}}
        for task in tasks:
            subtasks = task.get("subtasks") if isinstance(task, dict) else None
            parts = subtasks if isinstance(subtasks, list) else []
            name = self._add_task(tag, "", task, parts)
            for part in parts if name else ():
                self._add_task(tag, name, part, parts)

    def _add_task(self, tag: str, above: str, task: Any, parts: list[Any]) -> str:
        """Add a task, or a subtask with its siblings' ids; return its name, or an empty text."""
        name = number_of(task, above)
        if not name:
            self.add_line(to_json({"tag": tag, "task": task}), "a task needs an id")
            return ""
        columns = {column: value for column, value in task.items() if column != "subtasks" or (value and not parts)}
        if above:
            columns["siblings"] = sorted(siblings_of(parts, above))
        if (ours := ours_of(task)) is not None:
            self._claims.add((tag, name, ours))
        is_done = STATES.get(str(task.get("status"))) is TaskState.DONE
        clock = sortable_time(task.get("updatedAt"))
        # Tasks are ordered by tag, then by number.
        at = f"{tag} {'.'.join(f'{part:>9}' for part in name.split('.'))}"
        self.gathered.add(TASKS, f"{tag}/{name}", columns, at=at, clock=clock, is_done=is_done)
        return name

    def goals(self) -> dict[str, str]:
        """Return a run for each tag."""
        return {run_id: self.goal if tag == MAIN else f"{self.goal}: {tag}" for tag, run_id in sorted(self.tags.items())}

    def earliest_time(self) -> str | None:
        """Return when the first tag was created."""
        return min(filter(None, self.begun.values()), default=None)

    def run_of(self, item: str) -> str:
        """Return the run of a task's tag."""
        return self.tags[item.rpartition("/")[0]]

    def task_of(self, item: str) -> str:
        """Return a task's id: its run and its number."""
        return self.ours.get(item) or f"{self.run_of(item)}-{item.rpartition('/')[2]}"

    def item_of(self, run_id: str, task_id: str) -> str:
        """Return the item name of a task: its tag and its number."""
        ours = next((item for item, its_task in self.ours.items() if its_task == task_id), None)
        tag = next(tag for tag, its_run in self.tags.items() if its_run == run_id)
        return ours or f"{tag}/{task_id.removeprefix(f'{run_id}-')}"

    def gather_parts(self, item: Row) -> None:
        """Collect a task's dependencies and its parent."""
        tag, _, name = item.id.rpartition("/")
        siblings = item.columns.get("siblings")
        # A top-level task's id may contain a point, too.
        above = name.rpartition(".")[0] if siblings is not None else ""
        if above:
            whole = {"task": item.id, "other": f"{tag}/{above}", "kind": PART_OF}
            self.gathered.add(LINKS, f"{item.id}/{above}/parent", whole)
        needed = item.columns.get("dependencies")
        for word in needed if isinstance(needed, list) else ():
            other = needed_number(word, above, siblings or ())
            self.gathered.add(LINKS, f"{item.id}/{other}", {"task": item.id, "other": f"{tag}/{other}", "kind": "needs"})

    def read_link(self, row: Row) -> Link:
        kind = LinkKind.PARENT if row.take("kind") == PART_OF else LinkKind.BLOCKS
        return Link(str(row.take("task")), str(row.take("other")), kind)

    @pure_mapping
    def item(self, row: Row) -> PendingRecord:
        """Build the task item of a task or a subtask."""
        row.stream = self.run_of(row.id)
        row.ignore(("id", "siblings", *PARENTS))
        row.value("dependencies", (list,), [])
        shown = row.non_empty(SHOWN)
        state, reason = self._state(row)
        checks = row.text("testStrategy", "")
        return self.task(
            row,
            title=row.text("title", ""),
            objective=self._objective(row),
            state=state,
            reason=reason,
            priority=self._priority(row),
            tags=row.tags("tags"),
            acceptance=_texts(row, "acceptanceCriteria"),
            verification=[checks] if checks else [],
            inputs={self.system: shown} if shown else {},
            assigned_to=row.text("assignee") or None,
            created_at=self._created(row),
            updated_at=read_set_time(row, "updatedAt"),
        )

    def _objective(self, row: Row) -> str:
        """Return the description; one that only repeats the title counts as none."""
        text = str(row.text("description", ""))
        # An export repeats the title for every task without an objective.
        return "" if text == row.columns.get("title") else text

    def _created(self, row: Row) -> datetime:
        """Return when a task was created: with its tag, and after those with lower numbers."""
        tag, _, name = row.id.rpartition("/")
        whole, _, part = name.partition(".")
        number = int(whole[:6]) * 1000 + int(part[:3] or 0) if whole.isdecimal() and (part or "0").isdecimal() else 0
        begun = self.begun.get(tag)
        return (from_text(begun) if begun else EPOCH) + timedelta(microseconds=number)

    def _state(self, row: Row) -> tuple[TaskState, str | None]:
        word = row.take("status", "pending")
        state = STATES.get(word, TaskState.PAUSED) if isinstance(word, str) else TaskState.PAUSED
        if word != WORDS[state]:
            row.replace("status", WORDS[state])
        if state is not TaskState.PAUSED:
            return state, None
        return state, WAS_RUNNING if word == "in-progress" else f"{word} in Task Master"

    def _priority(self, row: Row) -> int:
        word = row.take("priority", "medium")
        known = PRIORITIES.get(word) if isinstance(word, str) else None
        if known is None:
            row.replace("priority", "medium")
        return known or PRIORITIES["medium"]


def _texts(row: Row, name: str) -> list[str]:
    """Parse a text or a list of texts."""
    if isinstance(row.columns.get(name), str):
        text = row.text(name, "")
        row.replace(name, [text] if text else [])
        return [text] if text else []
    return row.text_list(name)
