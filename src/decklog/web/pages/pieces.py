"""Pieces of a plan that the conductor takes through a repository: at which stage each is, and what waits to land."""

from dataclasses import dataclass
from typing import Any

STAGES = {"work": "work", "check": "check", "land": "landing"}


@dataclass(frozen=True)
class WorkItemRow:
    """One piece: the newest task of each stage, by the stage's role; `place` is its turn among those that wait to land."""

    name: str
    stages: dict[str, Any]
    rounds: int
    place: int | None

    @property
    def landing(self) -> Any:
        return self.stages.get("land")


def pieces_of(tasks: list[Any]) -> list[WorkItemRow]:
    """Find the pieces among a run's tasks, in the order in which they were planned."""
    found: dict[str, list[Any]] = {}
    for task in tasks:
        # The role first: tags of tasks that are no stage of a piece need not be read.
        tags = (task.tags or ()) if task.role in STAGES else ()
        name = next((tag.removeprefix("piece:") for tag in tags if tag.startswith("piece:")), None)
        if name is not None:
            found.setdefault(name, []).append(task)
    queue = _queue([task for of_piece in found.values() for task in of_piece])
    return [_piece(name, of_piece, queue) for name, of_piece in found.items()]


def _queue(tasks: list[Any]) -> list[str]:
    """Name what can land next, in the order of the lane."""
    ready = [one for one in tasks if one.role == "land" and one.state.value == "pending" and not one.open_dependencies]
    return [one.id for one in sorted(ready, key=lambda one: (-one.priority, one.created_at, one.id))]


def _piece(name: str, tasks: list[Any], queue: list[str]) -> WorkItemRow:
    stages = {task.role: task for task in sorted(tasks, key=lambda task: task.created_at)}
    landing = stages.get("land")
    place = queue.index(landing.id) + 1 if landing is not None and landing.id in queue else None
    return WorkItemRow(name, stages, sum(task.role == "work" for task in tasks), place)
