"""Keeps runs and Task Master's `tasks.json` in step.

A task is known there by its number, which another may get on the other side meanwhile: one that was made here is known by the id
that it has here, and gets a number that is free there.
"""

import json
from copy import deepcopy
from typing import ClassVar

from decklog.errors import Invalid
from decklog.importers.engine.landing import run_below
from decklog.importers.engine.row import parsed_json
from decklog.importers.engine.syncing import FileSync
from decklog.importers.engine.text_files import file_in
from decklog.importers.taskmaster.export import TaskMasterExport
from decklog.importers.taskmaster.importer import TASKS, TaskMasterImport
from decklog.importers.taskmaster.words import MAIN, OURS, PLACES, SHOWN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from decklog.importers.engine.syncing import Items

_NEEDS = "dependencies"
_PLACE = "its place"
_USUAL = {"status": "pending", "priority": "medium"}
_FIELDS = ("title", "description", "status", "priority", "testStrategy", "acceptanceCriteria", "assignee", *SHOWN)


class TaskMasterSync(FileSync):
    """The document of all tags; their tasks and subtasks are items."""

    system = "taskmaster"
    file_name, exports, imports = "tasks.json", TaskMasterExport, TaskMasterImport
    fields = _FIELDS
    sets: ClassVar = {_NEEDS: lambda name: name, "tags": lambda tag: tag}

    def __init__(self, log: "Any", path: str, **settings: "Any") -> None:
        super().__init__(log, file_in(path, PLACES, "Name the file itself."), **settings)

    def theirs(self) -> "Items":
        """Read the tasks of the file."""
        return _items(_document(self.read_file(), self.path))

    def ours(self) -> "Items":
        """Write the runs as Task Master has them, and read that."""
        text = self.export_text()
        return _items(_document(text, self.file_name)) if text is not None else {}

    def task_of(self, item: str) -> str:
        """Name the task of an item: by what it is called here, or by its run and its number."""
        tag, is_numbered, number = item.rpartition("/")
        if not is_numbered:
            return item
        return f"{self.run_id if tag == MAIN else run_below(self.run_id, tag)}-{number}"

    def take(self, items: "Items", ours: "Items") -> None:
        """Import the document with the tasks as they are to be here, as newer than all that is here."""
        document, at = _document(self.read_file(), self.path), self.later()
        named = _items(document)
        for name, item in items.items():
            _replace(document, named[name], {**item, "updatedAt": at}, named)
        self.import_text(json.dumps(document), {"/".join(named[name][_PLACE]): ours[name] for name in named if name in ours})

    def give(self, items: "Items") -> None:
        """Write the document with some tasks as they are to be there."""
        document = _document(self.read_file(), self.path)
        named = _items(document)
        for name, item in items.items():
            if name not in named:
                named[name] = {_PLACE: _added(document, item)}
        for name, item in items.items():
            _replace(document, named[name], item, named)
        self.replace_file(json.dumps(document, ensure_ascii=False, indent=2) + "\n")


def _document(text: str, path: str) -> "dict[str, Any]":
    """Read a document as one of tags, which older ones have not."""
    found = parsed_json(text)
    if not isinstance(found, dict):
        raise Invalid(f"{path} holds no tasks of Task Master's", path=path)
    return {MAIN: found} if isinstance(found.get(TASKS), list) else found


def _items(document: "dict[str, Any]") -> "Items":
    """Give tasks and subtasks by name, with what they wait for by name too."""
    places: dict[tuple[str, ...], dict[str, Any]] = {}
    for tag, held in document.items():
        for task in _listed(held, TASKS):
            places[tag, str(task.get("id"))] = task
            for part in _listed(task, "subtasks"):
                number = str(part.get("id"))
                places[tag, f"{task.get('id')}.{number.rpartition('.')[2]}"] = part
    names = {place: _name(place, task) for place, task in places.items()}
    return {names[place]: _item(place, task, names) for place, task in places.items()}


def _name(place: "tuple[str, ...]", task: "dict[str, Any]") -> str:
    facts = task.get("metadata")
    ours = facts.get(OURS) if isinstance(facts, dict) else None
    return ours if isinstance(ours, str) else "/".join(place)


def _item(place: "tuple[str, ...]", task: "dict[str, Any]", names: "dict[tuple[str, ...], str]") -> "dict[str, Any]":
    tag, number = place
    above, is_part, _ = number.rpartition(".")
    needs = []
    for word in map(str, task.get(_NEEDS) or ()):
        sibling = (tag, f"{above}.{word}")
        needs.append(names.get(sibling if is_part and sibling in names else (tag, word), f"{tag}/{word}"))
    own = {name: value for name, value in task.items() if name != "subtasks" and value is not None}
    if own.get("description") == own.get("title"):
        # It reads no task without one, and so has the title there.
        own.pop("description")
    return {**_USUAL, **own, _NEEDS: needs, _PLACE: place}


def _added(document: "dict[str, Any]", item: "dict[str, Any]") -> "tuple[str, str]":
    """Make room for a task that was made here: with the next number of its tag, or of its whole."""
    tag, number = item[_PLACE]
    above, is_part, _ = number.rpartition(".")
    held = document.setdefault(tag, {TASKS: [], "metadata": {}})
    whole = next((task for task in _listed(held, TASKS) if is_part and str(task.get("id")) == above), None)
    siblings = held[TASKS] if whole is None else whole.setdefault("subtasks", [])
    own = max((int(one["id"]) for one in siblings if str(one.get("id")).isdecimal()), default=0) + 1
    siblings.append({"id": own})
    return tag, str(own) if whole is None else f"{above}.{own}"


def _replace(document: "dict[str, Any]", known: "dict[str, Any]", item: "dict[str, Any]", named: "Items") -> None:
    """Write an item in its place; what it waits for is spelled anew only where that differs."""
    tag, number = known[_PLACE]
    whole, is_part, part = number.partition(".")
    task = next(one for one in _listed(document[tag], TASKS) if str(one.get("id")) == whole)
    if is_part:
        task = next(one for one in _listed(task, "subtasks") if str(one.get("id")).rpartition(".")[2] == part)
    spelled = task.get(_NEEDS) if set(known.get(_NEEDS, ())) == set(item.get(_NEEDS, ())) else None
    if spelled is None:
        spelled = [_spelled(named[name][_PLACE], number) for name in item.get(_NEEDS, ()) if name in named]
    kept = {name: value for name, value in task.items() if name in ("id", "subtasks")}
    told = {name: value for name, value in deepcopy(item).items() if name not in (_PLACE, "id")}
    task.clear()
    task.update({**kept, **told, "description": told.get("description") or told.get("title"), _NEEDS: spelled})


def _spelled(place: "tuple[str, str]", number: str) -> "int | str":
    """Spell what a task waits for: a sibling by its number, another task by its, any other subtask by both."""
    above, is_part, part = place[1].rpartition(".")
    if is_part and above == number.rpartition(".")[0]:
        return int(part) if part.isdecimal() else part
    return int(place[1]) if place[1].isdecimal() else place[1]


def _listed(held: object, name: str) -> "list[dict[str, Any]]":
    found = held.get(name) if isinstance(held, dict) else None
    return [one for one in found if isinstance(one, dict) and one.get("id")] if isinstance(found, list) else []
