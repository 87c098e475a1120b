"""A task as a plan shows it, now and as it was when the plan was written."""

from typing import TYPE_CHECKING

from decklog.core.errors import NotFound
from decklog.importing.three_way import ThreeWay
from decklog.plugins.importers.markdown.plan_text import one_line, unix_lines
from decklog.records.values import to_json
from decklog.stores.tasks.task import Dependency, LinkKind, Task

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from decklog.importing.three_way import Base
    from decklog.log import Decklog

THREE_WAY = ThreeWay(
    ("title", "state", "priority", "role", "assigned to", "part of", "objective", "acceptance", "verification"),
    {"tags": lambda tag: tag, "needs": lambda task_id: task_id},
)


def item_of(task: Task, links: "Iterable[Dependency]") -> "dict[str, Any]":
    """Return a task with its links as a plan shows it; what a line holds has no line breaks there."""
    listed = list(links)
    return {
        "title": one_line(task.title),
        "state": task.state.value,
        "priority": task.priority,
        "role": one_line(task.role or "") or None,
        "assigned to": one_line(task.assigned_to or "") or None,
        "tags": [one_line(tag) for tag in task.tags],
        "needs": sorted(link.depends_on for link in listed if link.kind is LinkKind.BLOCKS),
        "part of": next((link.depends_on for link in listed if link.kind is LinkKind.PARENT), None),
        "objective": unix_lines(task.objective).strip(),
        "acceptance": [one_line(text) for text in task.acceptance],
        "verification": [one_line(text) for text in task.verification],
    }


def base_of(log: "Decklog", task_id: str, entry: int, others: "set[str]") -> "Base":
    """Return a task as it was at an entry, with the links of that moment to some others."""
    try:
        task = log.journal.at(Task, task_id, str(entry))
    except NotFound:
        return {}
    item = item_of(task, [link for other in sorted(others) if (link := _link_at(log, task_id, other, entry))])
    return THREE_WAY.agreed({}, item, item)


def _link_at(log: "Decklog", task_id: str, other: str, entry: int) -> Dependency | None:
    try:
        return log.journal.at(Dependency, to_json([task_id, other]), str(entry))
    except NotFound:
        return None
