"""A plan made of tasks that are in the log already, also of imported ones: each that is still to be done becomes a piece."""

import re
from typing import TYPE_CHECKING, Any

from decklog.conductor.settings.plan import LONGEST_GOAL, MOST_PIECES, WorkItem, WorkPlan
from decklog.conductor.stages import all_tasks
from decklog.core.errors import Conflict

if TYPE_CHECKING:
    from collections.abc import Callable

    from decklog.log import Decklog
    from decklog.stores.tasks.task import Task

_NOT_IN_NAMES = re.compile(r"[^a-z0-9_-]+")


def plan_of(log: "Decklog", run_id: str, is_wanted: "Callable[[Task], bool]" = lambda _: True) -> WorkPlan:
    """Make a plan of a run's tasks that are still to be done; what they wait for and is to be done too comes first.

    A task that has parts is no piece itself: it is done with its last part, and whoever waits for it waits for all of them. Of
    the others those that are wanted are planned, as such or by what they are a part of, and what those wait for.
    """
    run = log.runs.get(run_id)
    still_open = [task for task in all_tasks(log, run_id) if task.state.value in ("pending", "blocked")]
    links = _Links(log, run_id, {task.id for task in still_open})
    chosen = links.closure([task.id for task in still_open if is_wanted(task)])
    tasks = [task for task in still_open if task.id not in links.parts and task.id in chosen]
    if not tasks:
        raise Conflict(f"run {run_id} has no task that is still to be done", hint=f"See: decklog tasks find {run_id}")
    if len(tasks) > MOST_PIECES:
        raise Conflict(f"run {run_id} has {len(tasks)} tasks to be done; a plan has at most {MOST_PIECES}")
    names = _names([task.id for task in tasks])
    pieces = tuple(
        WorkItem(
            name=names[task.id],
            title=task.title,
            objective=task.objective,
            paths=tuple(task.allowed_paths),
            needs=tuple(names[needed] for needed in links.needs(task.id)),
            acceptance=tuple(task.acceptance),
            priority=task.priority,
            source=task.id,
        )
        for task in tasks
    )
    return WorkPlan(run.goal[:LONGEST_GOAL], pieces)


class _Links:
    """How the open tasks of a run hang together: which wait for which, and which are parts of which."""

    def __init__(self, log: "Decklog", run_id: str, still_open: set[str]) -> None:
        self._waits: dict[str, list[str]] = {}
        self._wholes: dict[str, list[str]] = {}
        self.parts: dict[str, list[str]] = {}
        for link in log.runs.snapshot(run_id).records.get("dependencies", []):
            one: Any = link
            if one.task_id not in still_open or one.depends_on not in still_open:
                continue
            if one.kind == "blocks":
                self._waits.setdefault(one.task_id, []).append(one.depends_on)
            elif one.kind == "parent":
                self.parts.setdefault(one.depends_on, []).append(one.task_id)
                self._wholes.setdefault(one.task_id, []).append(one.depends_on)

    def needs(self, task_id: str) -> list[str]:
        """List the tasks without parts that one waits for, by itself or as a part of something that waits."""
        own, left = [], [task_id]
        while left:
            one = left.pop()
            own += [leaf for needed in self._waits.get(one, ()) for leaf in self._leaves(needed)]
            left += self._wholes.get(one, ())
        return list(dict.fromkeys(own))

    def closure(self, task_ids: list[str]) -> set[str]:
        """Return the tasks without parts that some tasks are made of, and all that those wait for."""
        found: set[str] = set()
        left = [leaf for task_id in task_ids for leaf in self._leaves(task_id)]
        while left:
            if (one := left.pop()) not in found:
                found.add(one)
                left += self.needs(one)
        return found

    def _leaves(self, task_id: str) -> list[str]:
        if task_id not in self.parts:
            return [task_id]
        return [leaf for part in self.parts[task_id] for leaf in self._leaves(part)]


def _names(task_ids: list[str]) -> dict[str, str]:
    """Return each task a name that a piece can have, and no two the same."""
    found: dict[str, str] = {}
    for task_id in task_ids:
        plain = _NOT_IN_NAMES.sub("-", task_id.lower()).strip("-_")[:50] or "piece"
        name, number = plain, 2
        while name in found.values():
            name, number = f"{plain}-{number}", number + 1
        found[task_id] = name
    return found
