"""Writes a run's plan as Markdown that a person can read and edit."""

from typing import TYPE_CHECKING

from decklog.importing.exports.rows import each
from decklog.importing.exports.texts import TextExport
from decklog.journal.entry import EntryKind
from decklog.plugins.importers.markdown.items import item_of
from decklog.plugins.importers.markdown.plan_text import head, section
from decklog.stores.tasks.task import Dependency, Task

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from decklog.log import Decklog

_TASKS = "tasks"
_PLACED = (
    *("id", "run_id", "title", "objective", "state", "priority", "role", "tags", "acceptance", "verification", "assigned_to"),
    *("created_at", "updated_at", "open_dependencies", "attempts", "fence", "worker", "leased_at", "leased_until", "key"),
)


class MarkdownExport:
    """Writes tasks in the order in which they were made: a section each, with the entry that it is of."""

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
        self._run = log.runs.get(run_id)
        self._out = TextExport(log, path, "markdown", replace=replace, progress=progress)

    def run(self) -> "dict[str, Any]":
        """Write the plan as it is at one moment."""
        with self._out:
            self._log.db.read(self._write)
            return self._out.finish()

    def _write(self) -> None:
        self._out.write(head(self._run.goal, self._run.id))
        for task in each(self._log, Task, "created_at, id", "where run_id = :run_id", run_id=self._run.id):
            links = each(self._log, Dependency, "depends_on", "where task_id = :id", id=task.id)
            [newest] = self._log.journal.find(self._run.id, task_id=task.id, kind=EntryKind.CHANGE, limit=1)
            self._out.write(section(task.id, newest.seq, item_of(task, links)))
            self._out.report.count(_TASKS)
            self._out.report.leave_out_fields(_TASKS, task, _PLACED)
