"""The status of a run or a task, the same in all interfaces."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Literal

from decklog.core.clock import from_text


class Status(StrEnum):
    """The status of a run or a task, in the order of attention."""

    NEEDS_YOU = "needs you"
    QUIET = "quiet"
    RUNNING = "running"
    IDLE = "idle"
    HELD = "held"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"

    @property
    def shape(self) -> str:
        """A symbol for the status, so that nothing depends on colour alone."""
        return _SHAPES[self]


StatusLike = Status | Literal["needs you", "quiet", "running", "idle", "held", "done", "failed", "cancelled"]


_SHAPES = {
    Status.NEEDS_YOU: "▲",
    Status.QUIET: "✕",
    Status.RUNNING: "▶",
    Status.IDLE: "○",
    Status.HELD: "‖",
    Status.DONE: "✓",
    Status.FAILED: "⊗",
    Status.CANCELLED: "–",
}
_ENDED = {"completed": Status.DONE, "failed": Status.FAILED, "cancelled": Status.CANCELLED}
# An entry younger than this shows that somebody works.
FRESH = timedelta(minutes=2)
# A run is stalled after three times its usual gap between entries, and at least after this time.
SHORTEST_SILENCE = timedelta(minutes=10)
_GAPS = 3


def silence_of(gap: timedelta) -> timedelta:
    """Return how long a run with this gap between entries may be silent."""
    return max(SHORTEST_SILENCE, _GAPS * gap)


def of_run(
    state: str,
    *,
    needs_you: bool,
    leases: Sequence[datetime],
    counts: Mapping[str, int],
    silent: timedelta,
    gap: timedelta,
    steady_now: datetime,
) -> Status:
    """Return the status of a run by its record, waiting items, leases, tasks and last entry."""
    if state in _ENDED:
        return _ENDED[state]
    if needs_you:
        return Status.NEEDS_YOU
    if state == "paused":
        return Status.HELD
    can_go_on = counts["pending"] + counts["running"] > 0 or not any(counts[name] for name in _STATES)
    if any(until <= steady_now for until in leases) or (can_go_on and silent > silence_of(gap)):
        return Status.QUIET
    if leases or silent <= FRESH:
        return Status.RUNNING
    is_held = not can_go_on and counts["waiting"] + counts["blocked"] + counts["paused"] > 0
    return Status.HELD if is_held else Status.IDLE


_STATES = ("pending", "running", "waiting", "blocked", "paused", "done", "abandoned")


TASK_FACTS = """
select id, state, leased_until, not_before, open_dependencies, failures, max_attempts from tasks where id in ({ids})
"""


class TaskFacts:
    """The columns of a task that determine its status, without waiting items."""

    def __init__(self, task: Mapping[str, Any]) -> None:
        self.id, self.state = task["id"], task["state"]
        self.open_dependencies: int = task["open_dependencies"]
        self.failures, self.max_attempts = task["failures"], task["max_attempts"]
        self.leased_until = from_text(task["leased_until"]) if task["leased_until"] else None
        self.not_before = from_text(task["not_before"]) if task["not_before"] else None


def of_task(task: TaskFacts, *, needs_you: bool, now: datetime, steady_now: datetime) -> Status:
    """Return the status of a task. A claimable task is idle; a task without attempts left has failed."""
    match task.state:
        case "done":
            return Status.DONE
        case "abandoned":
            return Status.CANCELLED
    if needs_you:
        return Status.NEEDS_YOU
    match task.state:
        case "running":
            is_over = task.leased_until is None or task.leased_until <= steady_now
            return Status.QUIET if is_over else Status.RUNNING
        case "pending":
            waits = task.open_dependencies > 0 or (task.not_before is not None and task.not_before > now)
            return Status.HELD if waits else Status.IDLE
        case "blocked" if task.failures >= task.max_attempts:
            return Status.FAILED
    return Status.HELD
