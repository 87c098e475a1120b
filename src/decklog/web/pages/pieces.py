"""Work items that the conductor takes through a repository: at which stage each is, and what waits to land."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

STAGES = {"work": "work", "check": "check", "land": "landing"}


@dataclass(frozen=True)
class WorkItemRow:
    """One work item: the newest task of each stage, by the stage's role; `place` is its turn among those that wait to land."""

    name: str
    stages: dict[str, Any]
    rounds: int
    place: int | None
    # Why it is red: what blocks it, or what its newest check found.
    trouble: str | None = None

    @property
    def is_landed(self) -> bool:
        return self.landing is not None and self.landing.state.value == "done"

    @property
    def landing(self) -> Any:
        return self.stages.get("land")


def pieces_of(tasks: list[Any], verdicts: Iterable[Any] = ()) -> list[WorkItemRow]:
    """Find the work items among a run's tasks: those in trouble first, then as planned, what has landed last."""
    found: dict[str, list[Any]] = {}
    for task in tasks:
        # The role first: tags of tasks that are no stage of a piece need not be read.
        tags = (task.tags or ()) if task.role in STAGES else ()
        name = next((tag.removeprefix("piece:") for tag in tags if tag.startswith("piece:")), None)
        if name is not None:
            found.setdefault(name, []).append(task)
    queue = _queue([task for of_piece in found.values() for task in of_piece])
    # Verdicts come newest first; only the newest of a task counts.
    newest: dict[str, Any] = {}
    for verdict in verdicts:
        newest.setdefault(verdict.task_id or "", verdict)
    items = [_piece(name, of_piece, queue, newest) for name, of_piece in found.items()]
    return sorted(items, key=lambda item: (item.trouble is None, item.is_landed))


def _queue(tasks: list[Any]) -> list[str]:
    """Name what can land next, in the order of the lane."""
    ready = [one for one in tasks if one.role == "land" and one.state.value == "pending" and not one.open_dependencies]
    return [one.id for one in sorted(ready, key=lambda one: (-one.priority, one.created_at, one.id))]


def _piece(name: str, tasks: list[Any], queue: list[str], verdicts: Mapping[str, Any]) -> WorkItemRow:
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
    """Return what a failed check found first."""
    first = verdict.findings[0] if verdict.findings else None
    text = first.get("text") if isinstance(first, dict) else first
    return f"{verdict.name}: {text}" if isinstance(text, str) else f"{verdict.name} failed"
