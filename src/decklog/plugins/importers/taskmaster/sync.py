"""Keeps runs and Task Master's `tasks.json` in step.

A task is known there by its number, which another may get on the other side meanwhile: one that was made here is known by the id
that it has here, and gets a number that is free there.
"""

from typing import TYPE_CHECKING, ClassVar

from decklog.core.errors import Invalid
from decklog.importing.exports.texts import json_text
from decklog.importing.landing import run_below
from decklog.importing.syncing import FileSync
from decklog.importing.text_files import file_in, parsed
from decklog.plugins.importers.taskmaster.document import NEEDS, Document
from decklog.plugins.importers.taskmaster.export import TaskMasterExport
from decklog.plugins.importers.taskmaster.importer import TASKS, TaskMasterImport
from decklog.plugins.importers.taskmaster.words import MAIN, PLACES, SHOWN
from decklog.stores.intake import Intake
from decklog.stores.tasks.task import Task

if TYPE_CHECKING:
    from typing import Any

    from decklog.importing.syncing import Items

_FIELDS = ("title", "description", "status", "priority", "testStrategy", "acceptanceCriteria", "assignee", *SHOWN)


class TaskMasterSync(FileSync):
    """The document of all tags; their tasks and subtasks are items."""

    system = "taskmaster"
    file_name, exports, imports = "tasks.json", TaskMasterExport, TaskMasterImport
    fields = _FIELDS
    sets: ClassVar = {NEEDS: lambda name: name, "tags": lambda tag: tag if isinstance(tag, str) and tag.strip() else None}

    def __init__(self, log: "Any", path: str, **settings: "Any") -> None:
        super().__init__(log, file_in(path, PLACES, "Name the file itself."), **settings)

    def theirs(self) -> "Items":
        """Read the tasks of the file."""
        return self._there().items()

    def ours(self) -> "Items":
        """Write the runs as Task Master has them, and read that."""
        text = self.export_text()
        return self._read_document(text, self.file_name).items() if text is not None else {}

    def task_of(self, item: str) -> str:
        """Name the task of an item: by what it is called here, or by its run and its number."""
        tag, is_numbered, number = item.rpartition("/")
        return f"{self._run_of(tag)}-{number}" if is_numbered else item

    def take(self, items: "Items", ours: "Items") -> None:
        """Import the document with the tasks as they are to be here, as newer than all that is here."""
        document, at = self._there(), self.later()
        document.drop_doubles()
        for name, item in items.items():
            document.replace(name, {**item, "updatedAt": at})
        as_here = {"/".join(place): ours[name] for name, place in document.places.items() if name in ours}
        self.import_text(json_text(document.tags), as_here)

    def give(self, items: "Items") -> None:
        """Write the document with some tasks as they are to be there."""
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
        """Read a document as one of tags, which older ones have not."""
        found = parsed(text)
        if found is NotImplemented:
            hint = f"Mend it, or take what is whole: decklog import taskmaster {path}"
            raise Invalid(f"{path} is no JSON, or was not written to its end", hint=hint, path=path)
        if not isinstance(found, dict):
            raise Invalid(f"{path} holds no tasks of Task Master's", path=path)
        return Document({MAIN: found} if isinstance(found.get(TASKS), list) else found, self._run_of, self._run_here)

    def _run_of(self, tag: str) -> str:
        return self.run_id if tag == MAIN else run_below(self.run_id, tag)

    def _run_here(self, task_id: str) -> str | None:
        found = self.log.db.read(lambda: Intake(self.log.parts).seek(Task, task_id))
        return found.run_id if found else None
