"""Races: several agents work on one item, each in tasks of its own. The first whose change passes the checks lands it.

An agent that fails while others still work drops out; the last one goes on as if it had been alone. What the others cost stays on
record.
"""

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from decklog.conductor.ladder import RACER

if TYPE_CHECKING:
    from decklog.app import Decklog
    from decklog.stores.work.claim import Claim
    from decklog.stores.work.task import Task

OUTRUN = "another agent was faster"
_LOOK_SECONDS = 1.0
_PAGE = 200
_IN_IT = ("pending", "running", "waiting", "paused")


def others(log: "Decklog", task: "Task") -> "list[Task]":
    """List the tasks of other agents that still race with the one of a task."""
    racer = task.inputs.get(RACER)
    if racer is None:
        return []
    tag = next(tag for tag in task.tags if tag.startswith("piece:"))
    found = log.tasks.find(task.run_id, tag=tag, limit=_PAGE)
    return [
        one for one in found if one.inputs.get(RACER) not in (None, racer) and one.role != "land" and one.state.value in _IN_IT
    ]


def won(log: "Decklog", landing: "Task", task: "Task") -> None:
    """End a race: nobody waits for the others. Whoever still works finds out, and ends its agent."""
    for other in others(log, task):
        log.tasks.undepend(landing.id, other.id)
        if other.state != "running":
            log.tasks.abandon(other.id, reason=OUTRUN)


def drop_out(log: "Decklog", claim: "Claim", landing: "Task", reason: str) -> None:
    """Take the task of an agent out of its race."""
    claim.release(reason)
    if landing.state.value not in ("done", "abandoned"):
        log.tasks.undepend(landing.id, claim.task.id)
    log.tasks.abandon(claim.task.id, reason=reason)


class Watch:
    """Tells an agent that races whether another has won."""

    def __init__(self, log: "Decklog", landing_of: "Callable[[Task], Task]", task: "Task") -> None:
        self._log = log
        self._landing_of = landing_of
        self._task = task
        self._looked = -_LOOK_SECONDS
        self._is_lost = False

    def is_lost(self) -> bool:
        """Check whether another agent has won; the log is asked once a second."""
        racer = self._task.inputs.get(RACER)
        if racer is None or self._task.role == "land" or self._is_lost or time.monotonic() < self._looked + _LOOK_SECONDS:
            return self._is_lost
        self._looked = time.monotonic()
        winner = self._landing_of(self._task).inputs.get(RACER)
        self._is_lost = winner is not None and winner != racer
        return self._is_lost
