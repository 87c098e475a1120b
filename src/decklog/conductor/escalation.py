"""The agents of a work item: one after the other by escalation levels, or several at once in a race.

After the same failure twice the next agent takes over, and after the last one a person. In a race each agent has its own tasks:
the first whose change passes the checks lands it. Agents that fail meanwhile drop out, and the last one continues alone.
"""

import hashlib
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from decklog.log import Decklog
from decklog.records.values import to_json
from decklog.stores.tasks.claim import Claim
from decklog.stores.tasks.task import Task

# How often an agent may fail in the same way: its second brief describes the first failure.
REPEATS = 2
# The fields that identify a finding; a check's output differs in every run.
_SAME = ("check", "kind", "tests", "paths")
# Inputs of every round: the rounds that a person added, and the agents that the plan names.
RACER = "racer"
_KEPT = ("more_rounds", "yeses", "wanted_agent", "wanted_model", RACER)
LOST_RACE = "another agent was faster"
_LOOK_SECONDS = 1.0
_PAGE = 200
_IN_RACE = ("pending", "running", "waiting", "paused")
START: Mapping[str, object] = {"rung": 0, "trouble": "", "repeats": 0}


def escalate(inputs: Mapping[str, object], trouble: str, levels: int, *, at_once: bool = False) -> dict[str, object] | None:
    """Return the escalation inputs of the next attempt after a failure; None after the last level.

    With `at_once` the next level follows without a second try, if there is one.
    """
    repeats = int(str(inputs.get("repeats", 0))) + 1 if trouble == inputs.get("trouble") else 1
    level = level_of(inputs) + 1
    if repeats < REPEATS and not (at_once and level < levels):
        return {"trouble": trouble, "repeats": repeats}
    return {**START, "rung": level} if level < levels else None


def level_of(inputs: Mapping[str, object]) -> int:
    """Return the escalation level of a work item."""
    return int(str(inputs.get("rung", 0)))


def digest_findings(findings: Sequence[Mapping[str, Any]]) -> str:
    """Return a digest that identifies the failure described by findings."""
    kept = [{name: finding.get(name) for name in _SAME} for finding in findings]
    return hashlib.sha256(to_json(kept).encode()).hexdigest()[:16]


def level_inputs(inputs: Mapping[str, object]) -> dict[str, object]:
    """Return the inputs that the next round keeps: the escalation, and the wanted agents."""
    return {name: inputs[name] for name in (*START, *_KEPT) if name in inputs}


# Races


def find_rivals(log: Decklog, task: Task) -> list[Task]:
    """List the tasks of other agents in the race of a task."""
    racer = task.inputs.get(RACER)
    if racer is None:
        return []
    tag = next(tag for tag in task.tags if tag.startswith("item:"))
    found = log.tasks.find(task.run_id, tag=tag, limit=_PAGE)
    return [
        one for one in found if one.inputs.get(RACER) not in (None, racer) and one.role != "land" and one.state.value in _IN_RACE
    ]


def end_race(log: Decklog, landing: Task, task: Task) -> None:
    """End a race that a task has won: drop the tasks of all other agents. Running agents then end themselves."""
    for other in find_rivals(log, task):
        log.tasks.undepend(landing.id, other.id)
        if other.state != "running":
            log.tasks.abandon(other.id, reason=LOST_RACE)


def leave_race(log: Decklog, claim: Claim, landing: Task, reason: str) -> None:
    """Take the task of an agent out of its race."""
    claim.release(reason)
    if landing.state.value not in ("done", "abandoned"):
        log.tasks.undepend(landing.id, claim.task.id)
    log.tasks.abandon(claim.task.id, reason=reason)


class RaceWatch:
    """Checks whether an agent has lost its race."""

    def __init__(self, log: Decklog, landing_of: Callable[[Task], Task], task: Task) -> None:
        self._log = log
        self._landing_of = landing_of
        self._task = task
        self._checked_at = -_LOOK_SECONDS
        self._is_lost = False

    def is_lost(self) -> bool:
        """Return whether another agent has won. The log is queried at most once a second."""
        racer = self._task.inputs.get(RACER)
        if racer is None or self._task.role == "land" or self._is_lost or time.monotonic() < self._checked_at + _LOOK_SECONDS:
            return self._is_lost
        self._checked_at = time.monotonic()
        winner = self._landing_of(self._task).inputs.get(RACER)
        self._is_lost = winner is not None and winner != racer
        return self._is_lost
