"""Export runs as Task Master's `tasks.json`, and sync them with it."""

from collections.abc import Iterable, Iterator
from typing import Any, ClassVar

from decklog.core.errors import Invalid
from decklog.importing.exports import TASK_FIELDS, TextExport, each, json_text, short_time
from decklog.importing.files import find_file, parse_lenient_json
from decklog.importing.sync import FileSync, Items
from decklog.importing.tracker import LINES, LINKS, sortable_time
from decklog.log import Decklog
from decklog.plugins.importers.taskmaster.importer import (
    MAIN,
    OURS,
    PART_OF,
    PLACES,
    SHOWN,
    TASKS,
    WORDS,
    NameClaims,
    TaskMasterImport,
    needed_number,
    number_of,
    ours_of,
    priority_word,
    run_of_tag,
    siblings_of,
    spelled_id,
)
from decklog.stores.runs.run import Run
from decklog.stores.tasks.task import Dependency, LinkKind, Task

Place = tuple[str, str]

_PLACED = (
    *(*TASK_FIELDS, "priority", "tags", "verification", "inputs", "assigned_to", "reason", "outcome", "failures", "attempts"),
    *("blocker_repeats", "reservation_id", "max_attempts", "key"),
)
# Sorts after all numbers.
_LAST = 10**18
_ORDER = ("id", "title", "description", "status", "priority", "dependencies", "details", "testStrategy")


class TaskMasterExport(TextExport):
    """Exports a run as the tag `master`, and the runs of other tags."""

    system = "taskmaster"

    def write_all(self) -> None:
        self.runs = [run.id for run, _ in self._tags()]
        self.write(json_text(self._document(), indent=2) + "\n")

    def _document(self) -> dict[str, Any]:
        kept: dict[str, list[str]] = {}
        # The position of a subtask implies its parent.
        for row in (row for _, row in self.kept.rows(LINKS) if row.get("kind") != PART_OF):
            kept.setdefault(str(row.get("task")), []).append(str(row.get("other")).rpartition("/")[2])
        document = {}
        for run, values in self._tags():
            tag = values["tag"]
            document[tag] = {TASKS: _Tag(self, run.id, tag, kept).tasks(), "metadata": values.get("metadata") or {}}
        self.report.leave_out(LINES, sum(1 for _ in self.kept.rows(LINES)))
        return document

    def _tags(self) -> Iterator[tuple[Run, dict[str, Any]]]:
        """Yield the runs with the facts of their tags; skip runs of other documents with the same name prefix."""
        name = str(self.run_id)
        condition = f"where id = :id or substr(id, 1, {len(name) + 1}) = :start"
        for run in each(self.log, Run, "id", condition, id=name, start=f"{name}-"):
            facts = run.metadata.get(self.system)
            values: dict[str, Any] = facts if isinstance(facts, dict) else {}
            tag = values.get("tag")
            if run.id == name:
                yield run, {**values, "tag": tag if isinstance(tag, str) else MAIN}
            elif isinstance(tag, str) and tag != MAIN and run.id == run_of_tag(name, tag):
                yield run, values


class _Tag:
    def __init__(self, out: TaskMasterExport, run_id: str, tag: str, kept: dict[str, list[str]]) -> None:
        self._out, log = out, out.log
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

    def _numbered(self) -> dict[str, tuple[str, str]]:
        """Map every task to its original number, and its parent's; a task without one gets the next number."""
        by_number = {task_id.removeprefix(self._start): task_id for task_id in self._tasks if self._has_number(task_id)}
        names: dict[str, tuple[str, str]] = {}
        for number, task_id in by_number.items():
            whole, _, part = number.partition(".")
            names[task_id] = (whole, part) if part and whole in by_number else (number, "")
        for task_id in (name for name in self._tasks if name not in names and name not in self._above):
            names[task_id] = (_next(whole for whole, _ in names.values()), "")
        for task_id in (name for name in self._tasks if name not in names):
            whole = names[self._find_topmost_parent(task_id)][0]
            names[task_id] = (whole, _next(part for above, part in names.values() if above == whole))
        return names

    def _has_number(self, task_id: str) -> bool:
        """Return whether a task's id is the run's name with a number, which may be any text."""
        return task_id.startswith(self._start) and task_id != self._start

    def _find_topmost_parent(self, task_id: str) -> str:
        """Return the topmost parent of a task: Task Master has no nested subtasks."""
        seen = set[str]()
        while task_id in self._above and task_id not in seen:
            seen.add(task_id)
            task_id = self._above[task_id]
        return task_id

    def tasks(self) -> list[dict[str, Any]]:
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

    def _task(self, task: Task, whole: str, part: str) -> dict[str, Any]:
        shown = task.inputs.get(self._out.system)
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
        # Task Master rejects a task without a description.
        restored = self._out.kept.restored(f"{TASKS} {name}", row, {"description": task.title})
        names = (*_ORDER, *sorted(restored.keys() - {*_ORDER}))
        return {name: restored[name] for name in names if restored.get(name) is not None}

    def _needed(self, task_id: str, whole: str, part: str) -> list[int | str]:
        """Format a dependency: a sibling or a task by its number, any other subtask by both numbers."""
        spelled: list[int | str] = []
        needed = (self._names[other] for other in self._needs.get(task_id, ()))
        for other, of_it in sorted(needed, key=lambda name: [*map(_in_order, name)]):
            if part and not of_it and (whole, other) in self._taken:
                # The number alone would be read as the sibling.
                self._out.report.leave_out("dependencies of a subtask on a task with the number of a sibling")
            else:
                spelled.append(spelled_id(of_it if part and other == whole and of_it else f"{other}.{of_it}" if of_it else other))
        return spelled


def _next(numbers: Iterable[str]) -> str:
    """Return the number after all others; ignore ids that are not numbers."""
    return str(max((found for number in numbers if isinstance(found := spelled_id(number), int)), default=0) + 1)


def _in_order(number: str) -> tuple[int, str]:
    found = spelled_id(number) if number else -1
    return (found, "") if isinstance(found, int) else (_LAST, number)


NEEDS = "dependencies"
PLACE = "its place"
_PARTS = "subtasks"
_DEFAULTS = {"status": "pending", "priority": "medium"}


class Document:
    """The tags of a document; the main tag is synced with a run."""

    def __init__(self, tags: dict[str, Any], log: Decklog, run_id: str) -> None:
        self.tags = tags
        self._tasks: dict[Place, dict[str, Any]] = {}
        # For each subtask: the number of its parent, and the numbers of its siblings.
        self._wholes: dict[Place, tuple[str, set[str]]] = {}
        # Tasks with a duplicate number.
        self._doubles: list[dict[str, Any]] = []
        for tag, held in tags.items():
            for task in _get_list(held, TASKS):
                self._place(tag, task)
        values = [(*place, ours) for place, task in self._tasks.items() if (ours := ours_of(task)) is not None]
        self._names = NameClaims(log, run_id, lambda *place: place in self._tasks).settled(values)
        self.places = {self._names.get(place) or "/".join(place): place for place in self._tasks}

    def _place(self, tag: str, task: dict[str, Any]) -> None:
        """Store the position of a task and its subtasks."""
        number = number_of(task)
        if not self._is_taken((tag, number), task):
            return
        parts = _get_list(task, _PARTS)
        siblings = siblings_of(parts, number)
        for part in parts:
            place = (tag, number_of(part, number))
            if self._is_taken(place, part):
                self._wholes[place] = (number, siblings)

    def _is_taken(self, place: Place, task: dict[str, Any]) -> bool:
        """Store a task, and return True; of two with the same number, keep the newer, or the first."""
        held = self._tasks.get(place)
        if held is not None:
            is_older = sortable_time(held.get("updatedAt")) >= sortable_time(task.get("updatedAt"))
            self._doubles.append(task if is_older else held)
            if is_older:
                return False
        self._tasks[place] = task
        return True

    def drop_doubles(self) -> None:
        """Remove tasks with a duplicate number, so that an import reads the same tasks."""
        doubles = {id(task) for task in self._doubles}
        if doubles:
            for held in [*self.tags.values(), *self._tasks.values()]:
                for name in (TASKS, _PARTS):
                    if isinstance(held, dict) and isinstance(listed := held.get(name), list):
                        held[name] = [one for one in listed if id(one) not in doubles]

    def items(self) -> Items:
        """Return tasks and subtasks by name; dependencies are names, too."""
        return {name: self._item(place) for name, place in self.places.items()}

    def _item(self, place: Place) -> dict[str, Any]:
        tag, _ = place
        task = self._tasks[place]
        above, siblings = self._wholes.get(place, ("", set[str]()))
        needs = task.get(NEEDS)
        own = {name: value for name, value in task.items() if name not in (_PARTS, NEEDS) and value is not None}
        if own.get("description") == own.get("title"):
            # Task Master requires a description, so the title is repeated there.
            own.pop("description", None)
        if isinstance(needs, list):
            own[NEEDS] = [self._named(tag, needed_number(word, above, siblings)) for word in needs]
        elif needs:
            own[NEEDS] = needs
        return {"title": "/".join(place), **_DEFAULTS, **own, PLACE: place}

    def _named(self, tag: str, number: str) -> str:
        return self._names.get((tag, number)) or f"{tag}/{number}"

    def add(self, name: str, item: dict[str, Any]) -> None:
        """Add an empty task for one that was created here, with the next number of its tag or parent."""
        tag, number = item[PLACE]
        above, is_part, _ = number.partition(".")
        whole = self._tasks.get((tag, above)) if is_part else None
        beside = self.tags.setdefault(tag, {TASKS: [], "metadata": {}}) if whole is None else whole
        part_of = "" if whole is None else above
        listed = _list_in(beside, TASKS if whole is None else _PARTS)
        numbers = (spelled_id(one.removeprefix(f"{part_of}.")) for one in (number_of(task, part_of) for task in listed))
        own = max((found for found in numbers if isinstance(found, int)), default=0) + 1
        task = {"id": own}
        listed.append(task)
        place = (tag, number_of(task, part_of))
        self._tasks[place], self.places[name] = task, place
        if part_of:
            self._wholes[place] = (part_of, siblings_of(listed, part_of))

    def replace(self, name: str, item: dict[str, Any]) -> None:
        """Replace an item; rewrite its dependencies only if they differ."""
        place = self.places[name]
        task = self._tasks[place]
        needs = item.get(NEEDS) or []
        spelled = task.get(NEEDS)
        if isinstance(needs, list) and set(self._item(place).get(NEEDS) or ()) != set(needs):
            spelled = [*filter(None, (self._spelled(other, place) for other in needs))]
        kept = {name: value for name, value in task.items() if name in ("id", _PARTS)}
        values = {name: value for name, value in item.items() if name not in (PLACE, "id", NEEDS, _PARTS)}
        if described := values.get("description") or values.get("title"):
            values["description"] = described
        task.clear()
        task.update({**kept, **values, NEEDS: [] if spelled is None else spelled})

    def _spelled(self, name: str, place: Place) -> int | str | None:
        """Format a dependency: a sibling or a task by its number, any other subtask by both numbers."""
        other = self.places.get(name)
        above, siblings = self._wholes.get(place, ("", set[str]()))
        if other is None:
            return None
        whole, _ = self._wholes.get(other, ("", ()))
        if above and whole == above:
            return spelled_id(other[1].removeprefix(f"{above}."))
        # The number alone would be read as a sibling.
        return None if other[1] in siblings else spelled_id(other[1])


def _get_list(held: object, name: str) -> list[dict[str, Any]]:
    found = held.get(name) if isinstance(held, dict) else None
    return [one for one in found if number_of(one)] if isinstance(found, list) else []


def _list_in(held: dict[str, Any], name: str) -> list[Any]:
    """Return a list to add to; create it if it is missing."""
    if not isinstance(held.get(name), list):
        held[name] = []
    found: list[Any] = held[name]
    return found


_FIELDS = ("title", "description", "status", "priority", "testStrategy", "acceptanceCriteria", "assignee", *SHOWN)


class TaskMasterSync(FileSync):
    """Syncs the document of all tags; their tasks and subtasks are items."""

    system = "taskmaster"
    file_name, exports, imports = "tasks.json", TaskMasterExport, TaskMasterImport
    fields = _FIELDS
    sets: ClassVar = {NEEDS: lambda name: name, "tags": lambda tag: tag if isinstance(tag, str) and tag.strip() else None}

    def __init__(self, log: Any, path: str, **settings: Any) -> None:
        super().__init__(log, find_file(path, PLACES, "Name the file itself."), **settings)

    def theirs(self) -> Items:
        """Parse the tasks of the file."""
        return self._there().items()

    def ours(self) -> Items:
        """Export the runs in Task Master's format, and parse the result."""
        text = self.export_text()
        return self._read_document(text, self.file_name).items() if text is not None else {}

    def task_of(self, item: str) -> str:
        """Return the task id of an item: its Decklog id, or its run and number."""
        tag, is_numbered, number = item.rpartition("/")
        return f"{run_of_tag(self.run_id, tag)}-{number}" if is_numbered else item

    def take(self, items: Items, ours: Items) -> None:
        """Import the document with the merged tasks, as newer than all local changes."""
        document, at = self._there(), self.later()
        document.drop_doubles()
        for name, item in items.items():
            document.replace(name, {**item, "updatedAt": at})
        local_items = {"/".join(place): ours[name] for name, place in document.places.items() if name in ours}
        self.import_text(json_text(document.tags), local_items)

    def give(self, items: Items) -> None:
        """Write the document with the merged tasks."""
        document = self._there()
        for name, item in items.items():
            if name not in document.places:
                document.add(name, item)
        for name, item in items.items():
            document.replace(name, item)
        self.replace_file((json_text(document.tags, indent=2) + "\n").encode())

    def _there(self) -> Document:
        return self._read_document(self.read_file().decode("utf-8", "replace").lstrip("\ufeff"), self.path)

    def _read_document(self, text: str, path: str) -> Document:
        """Parse a document; older ones, which have no tags, become one with the main tag."""
        found = parse_lenient_json(text)
        if found is NotImplemented:
            hint = f"Mend it, or take what is whole: decklog import taskmaster {path}"
            raise Invalid(f"{path} is no JSON, or was not written to its end", hint=hint, path=path)
        if not isinstance(found, dict):
            raise Invalid(f"{path} holds no tasks of Task Master's", path=path)
        return Document({MAIN: found} if isinstance(found.get(TASKS), list) else found, self.log, self.run_id)
