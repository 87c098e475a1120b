"""The status of a run or a task, the same in all interfaces."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Literal

from decklog.core.clock import from_text
from decklog.stores.overview.task_counts import STATES


class Status(StrEnum):
    """The status of a run or a task, in the order of attention.

    A task's status is its state, unless a person has to act, its lease has ended, or no attempt is left.
    """

    NEEDS_ATTENTION = "needs attention"
    STALLED = "stalled"
    BLOCKED = "blocked"
    RUNNING = "running"
    IDLE = "idle"
    PENDING = "pending"
    WAITING = "waiting"
    PAUSED = "paused"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"
    ABANDONED = "abandoned"

    @property
    def shape(self) -> str:
        """A symbol for the status, so that nothing depends on colour alone."""
        return _SHAPES[self]


StatusLike = (
    Status
    | Literal[
        "needs attention",
        "stalled",
        "blocked",
        "running",
        "idle",
        "pending",
        "waiting",
        "paused",
        "done",
        "failed",
        "cancelled",
        "abandoned",
    ]
)


_SHAPES = {
    Status.NEEDS_ATTENTION: "▲",
    Status.STALLED: "✕",
    Status.BLOCKED: "■",
    Status.RUNNING: "▶",
    Status.IDLE: "○",
    Status.PENDING: "○",
    Status.WAITING: "‖",
    Status.PAUSED: "‖",
    Status.DONE: "✓",
    Status.FAILED: "⊗",
    Status.CANCELLED: "–",
    Status.ABANDONED: "–",
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
    needs_person: bool,
    leases: Sequence[datetime],
    counts: Mapping[str, int],
    silent: timedelta,
    gap: timedelta,
    steady_now: datetime,
) -> Status:
    """Return the status of a run by its record, waiting items, leases, tasks and last entry."""
    if state in _ENDED:
        return _ENDED[state]
    if needs_person:
        return Status.NEEDS_ATTENTION
    if state == "paused":
        return Status.PAUSED
    can_go_on = counts["pending"] + counts["running"] > 0 or not any(counts[name] for name in STATES)
    if any(until <= steady_now for until in leases) or (can_go_on and silent > silence_of(gap)):
        return Status.STALLED
    if leases or silent <= FRESH:
        return Status.RUNNING
    stopped = () if can_go_on else tuple(word for word in ("blocked", "waiting", "paused") if counts[word])
    return Status(stopped[0]) if stopped else Status.IDLE


# The columns of a task that determine its status.
TASK_FACTS = "select id, state, leased_until, failures, max_attempts from tasks where id in ({ids})"


def of_task(task: Mapping[str, Any], *, needs_person: bool, steady_now: datetime) -> Status:
    """Return the status of a task: its state, unless that leaves out what a reader has to know."""
    state, leased_until = task["state"], task["leased_until"]
    if state not in ("done", "abandoned") and needs_person:
        return Status.NEEDS_ATTENTION
    if state == "running" and (not leased_until or from_text(leased_until) <= steady_now):
        return Status.STALLED
    if state == "blocked" and task["failures"] >= task["max_attempts"]:
        return Status.FAILED
    return Status(state)
