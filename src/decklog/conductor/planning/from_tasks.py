"""A plan made of tasks that are in the log already, also of imported ones: each that is still to be done becomes a piece."""

import re
from typing import TYPE_CHECKING, Any

from decklog.conductor.settings.plan import LONGEST_GOAL, MOST_PIECES, Piece, Plan
from decklog.conductor.stages import all_tasks
from decklog.errors import Conflict

if TYPE_CHECKING:
    from decklog.app import Decklog

_NOT_IN_NAMES = re.compile(r"[^a-z0-9_-]+")


def plan_of(log: "Decklog", run_id: str) -> Plan:
    """Make a plan of a run's tasks that are still to be done; what they wait for and is to be done too comes first."""
    run = log.runs.get(run_id)
    tasks = [task for task in all_tasks(log, run_id) if task.state.value in ("pending", "blocked")]
    if not tasks:
        raise Conflict(f"run {run_id} has no task that is still to be done", hint=f"See: decklog tasks find {run_id}")
    if len(tasks) > MOST_PIECES:
        raise Conflict(f"run {run_id} has {len(tasks)} tasks to be done; a plan has at most {MOST_PIECES}")
    names, needs = _names([task.id for task in tasks]), _needs(log, run_id)
    pieces = tuple(
        Piece(
            name=names[task.id],
            title=task.title,
            objective=task.objective,
            paths=tuple(task.allowed_paths),
            needs=tuple(names[needed] for needed in needs.get(task.id, ()) if needed in names),
            acceptance=tuple(task.acceptance),
            priority=task.priority,
            source=task.id,
        )
        for task in tasks
    )
    return Plan(run.goal[:LONGEST_GOAL], pieces)


def _needs(log: "Decklog", run_id: str) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for link in log.runs.snapshot(run_id).records.get("dependencies", []):
        one: Any = link
        if one.kind == "blocks":
            found.setdefault(one.task_id, []).append(one.depends_on)
    return found


def _names(task_ids: list[str]) -> dict[str, str]:
    """Give each task a name that a piece can have, and no two the same."""
    found: dict[str, str] = {}
    for task_id in task_ids:
        plain = _NOT_IN_NAMES.sub("-", task_id.lower()).strip("-_")[:50] or "piece"
        name, number = plain, 2
        while name in found.values():
            name, number = f"{plain}-{number}", number + 1
        found[task_id] = name
    return found
