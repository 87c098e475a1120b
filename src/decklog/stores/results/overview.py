"""Results of the verbs of the overview."""

from typing import NotRequired, TypedDict

from decklog.stores.results.money import SpendTotal


class TaskSummary(TypedDict):
    """A task with its status in one word."""

    id: str
    run_id: str
    title: str
    status: str
    state: str


class StatusWords(TypedDict):
    """The status of runs and tasks in one word, by their ids."""

    runs: dict[str, str]
    tasks: dict[str, str]


class DaySpending(SpendTotal):
    """What was spent on a day, by model, agent or run if asked for."""

    day: str
    model: NotRequired[str]
    agent: NotRequired[str]
    run_id: NotRequired[str]


class Workload(TypedDict):
    """How much work a role or worker has."""

    who: str | None
    to_do: int
    working: int
    blocked_or_paused: int
    failed: int
    groups: int
    failed_groups: int


class EndedRun(TypedDict):
    """A run that ended lately."""

    id: str
    goal: str
    status: str
    summary: str | None
    ended_at: str


class FailedTask(TypedDict):
    """A task that used up its attempts lately."""

    id: str
    run_id: str
    title: str
    reason: str | None
    failures: int
    updated_at: str
