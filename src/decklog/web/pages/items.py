"""Work items of a conductor's run: the stage of each, and the merge queue."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

STAGES = {"work": "work", "check": "check", "land": "landing"}


@dataclass(frozen=True)
class WorkItemRow:
    """One work item: the newest task of each stage, by role. `place` is its position in the merge queue."""

    name: str
    stages: dict[str, Any]
    rounds: int
    place: int | None
    # Why it is red: its blocker, or the finding of its newest check.
    trouble: str | None = None

    @property
    def is_landed(self) -> bool:
        return self.landing is not None and self.landing.state.value == "done"

    @property
    def landing(self) -> Any:
        return self.stages.get("land")


def items_of(tasks: list[Any], verdicts: Iterable[Any] = ()) -> list[WorkItemRow]:
    """Return the work items among a run's tasks: those in trouble first, then as planned, landed ones last."""
    found: dict[str, list[Any]] = {}
    for task in tasks:
        # Check the role first: it avoids parsing the tags of tasks that are no stage of a work item.
        tags = (task.tags or ()) if task.role in STAGES else ()
        name = next((tag.removeprefix("item:") for tag in tags if tag.startswith("item:")), None)
        if name is not None:
            found.setdefault(name, []).append(task)
    queue = _queue([task for of_item in found.values() for task in of_item])
    # Verdicts are newest first; only the newest of a task counts.
    newest: dict[str, Any] = {}
    for verdict in verdicts:
        newest.setdefault(verdict.task_id or "", verdict)
    items = [_item(name, of_item, queue, newest) for name, of_item in found.items()]
    return sorted(items, key=lambda item: (item.trouble is None, item.is_landed))


def _queue(tasks: list[Any]) -> list[str]:
    """Return the tasks that can land next, in the order of the merge queue."""
    ready = [one for one in tasks if one.role == "land" and one.state.value == "pending" and not one.open_dependencies]
    return [one.id for one in sorted(ready, key=lambda one: (-one.priority, one.created_at, one.id))]


def _item(name: str, tasks: list[Any], queue: list[str], verdicts: Mapping[str, Any]) -> WorkItemRow:
    stages = {task.role: task for task in sorted(tasks, key=lambda task: task.created_at)}
    landing = stages.get("land")
    place = queue.index(landing.id) + 1 if landing is not None and landing.id in queue else None
    return WorkItemRow(name, stages, sum(task.role == "work" for task in tasks), place, _trouble(stages.values(), verdicts))


def _trouble(stages: Iterable[Any], verdicts: Mapping[str, Any]) -> str | None:
    for task in stages:
        verdict = verdicts.get(task.id)
        if task.state.value == "blocked":
            return task.blocker or task.reason or "blocked"
        if verdict is not None and verdict.outcome.value in ("fail", "error") and task.state.value not in ("done", "abandoned"):
            return finding_of(verdict)
    return None


def finding_of(verdict: Any) -> str:
    """Return the first finding of a failed check."""
    first = verdict.findings[0] if verdict.findings else None
    text = first.get("text") if isinstance(first, dict) else first
    return f"{verdict.name}: {text}" if isinstance(text, str) else f"{verdict.name} failed"
