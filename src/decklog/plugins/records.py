"""Import what an importer plug-in yields, by the mechanism of our own trackers."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from decklog.core.clock import from_text, to_text
from decklog.core.errors import Invalid
from decklog.importing.row import Row
from decklog.importing.tracker import COMMENTS, LINKS, Link, Tracker
from decklog.importing.writer import Mapping, PendingEntry, PendingRecord, describes
from decklog.journal.entry import EntryKind
from decklog.log import Decklog
from decklog.plugins import ImportContext, Imported, ImportedComment, ImportedEvent, ImportedLink, ImportedTask, Importer
from decklog.records.values import to_json
from decklog.stores.tasks.task import LinkKind, TaskState

_TASKS, _EVENTS = "tasks", "events"


class RecordImport(Tracker):
    """Writes the tasks, links, comments and events of one source to one run."""

    items = _TASKS
    goal = "Imported tasks"

    def __init__(
        self,
        log: Decklog,
        path: str,
        importer: Importer,
        *,
        name: str,
        run_id: str,
        dry_run: bool = False,
        progress: Callable[[str, int, int], None] | None = None,
    ) -> None:
        # It names the keys of entries, so that two plug-ins never share one.
        self.system = name  # type: ignore[misc]
        super().__init__(log, path, run_id=run_id, dry_run=dry_run, progress=progress)
        self._importer = importer

    def gather(self) -> None:
        """Read everything that the plug-in yields."""
        path, context = Path(self.path), ImportContext(self.run_id)
        if not self._importer.detect(path):
            raise Invalid(f"{path} does not look like data of {self.system}", path=self.path)
        for record in self._importer.read(path, context):
            self._add(record)
        for note in context.notes:
            self.report.note(note)

    def _add(self, record: Imported) -> None:
        columns = {name: to_text(value) if hasattr(value, "tzinfo") else value for name, value in vars(record).items()}
        match record:
            case ImportedTask():
                clock = columns["updated_at"] or ""
                is_done = record.state is TaskState.DONE
                self.hold(record.id, columns, at=columns["created_at"], clock=clock, is_done=is_done)
            case ImportedLink():
                self.gathered.add(LINKS, f"{record.task_id}/{record.other_id}/{record.kind}", to_json(columns))
            case ImportedComment():
                self.gathered.add(COMMENTS, f"{record.task_id}#{record.id}", to_json(columns), at=columns["at"])
            case ImportedEvent():
                self.gathered.add(_EVENTS, f"{record.task_id}#{record.id}", to_json(columns), at=columns["at"])
            case _:
                raise Invalid(f"an importer yields tasks, links, comments and events, not {type(record).__name__}")

    def mappings(self) -> dict[str, Mapping]:
        return {**super().mappings(), _EVENTS: self.event}

    @describes
    def item(self, row: Row) -> PendingRecord:
        """Describe the task of an item."""
        row.left = {}
        given: dict[str, Any] = row.columns
        updated = given.get("updated_at")
        return self.task(
            row,
            title=given["title"],
            objective=given["objective"],
            state=TaskState(given["state"]),
            priority=given["priority"],
            tags=list(given["tags"]),
            inputs={self.system: given["more"]} if given["more"] else {},
            created_at=from_text(given["created_at"]),
            updated_at=from_text(updated) if updated else None,
        )

    def link_of(self, row: Row) -> Link:
        """Read a link."""
        return Link(row.take("task_id"), row.take("other_id"), LinkKind(row.take("kind")))

    @describes
    def comment(self, row: Row) -> PendingRecord:
        """Describe a comment."""
        given, row.left = row.columns, {}
        return self.said(row, given["task_id"], author=given["author"], body=given["body"], at=from_text(given["at"]))

    @describes
    def event(self, row: Row) -> PendingEntry:
        """Describe the entry of an event."""
        given, row.left, row.stream = row.columns, {}, self.run_id
        entry = {"kind": EntryKind.EVENT, "subtype": given["kind"], "body": given["body"], "payload": given["payload"] or None}
        return self.writer.entry(row, {**entry, "at": from_text(given["at"]), "task_id": given["task_id"]})
