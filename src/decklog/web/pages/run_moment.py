"""A run's figures, now or as of an entry."""

from dataclasses import dataclass, field
from datetime import datetime
from itertools import islice
from typing import Any

from decklog import Run, Status
from decklog.log import Decklog

_ENDED = {"completed": Status.DONE, "failed": Status.FAILED, "cancelled": Status.CANCELLED}
STATES = ("pending", "running", "waiting", "paused", "blocked", "done", "abandoned")


@dataclass(frozen=True)
class RunMoment:
    """What the head of a run's page shows. `at` is the entry that it is as of; None means now."""

    id: str
    goal: str
    word: str
    seq: int
    newest: int
    at: int | None
    moment: datetime
    started_at: datetime
    ended_at: datetime | None
    repo: str | None
    branch: str | None
    parent: str | None
    parent_seq: int | None
    tasks: dict[str, int]
    workers: list[str]
    waiting: int
    cost: int
    calls: int
    unpriced: int
    summary: str | None = None
    working_on: list[dict[str, Any]] = field(default_factory=list)
    stalled_since: datetime | None = None

    @property
    def planned(self) -> int:
        return sum(count for state, count in self.tasks.items() if state != "abandoned")

    @property
    def stalled_tasks(self) -> set[str]:
        """The tasks whose lease has ended, which are shown as stalled."""
        return {task["task_id"] for task in self.working_on if task["lease_ended"]}

    def as_dict(self) -> dict[str, Any]:
        times = {name: value.isoformat() if isinstance(value, datetime) else value for name, value in vars(self).items()}
        return times | {"planned": self.planned}


def of(picture: Any) -> RunMoment:
    """Build the head of a run's page from its run view."""
    return _now(picture.overview) if picture.is_now else _past(picture)


def _now(shown: Any) -> RunMoment:
    return RunMoment(
        id=shown.id,
        goal=shown.goal,
        word=shown.status.value,
        seq=shown.entries,
        newest=shown.entries,
        at=None,
        moment=shown.last_at,
        started_at=shown.started_at,
        ended_at=shown.ended_at,
        repo=shown.repo,
        branch=shown.branch,
        parent=shown.parent_run_id,
        parent_seq=shown.parent_seq,
        tasks={state: shown.tasks[state] for state in STATES},
        workers=shown.agents,
        waiting=shown.waiting,
        cost=shown.cost_microdollars,
        calls=shown.calls,
        unpriced=shown.unpriced_calls,
        summary=shown.summary,
        working_on=shown.working_on,
        stalled_since=shown.stalled_since,
    )


def _past(picture: Any) -> RunMoment:
    run, totals = Run.from_image(picture.run), picture.totals
    under_way = [one for one in picture.lanes["attempts"] if one["outcome"] is None]
    return RunMoment(
        id=picture.run_id,
        goal=run.goal,
        word=_word(run.status.value, picture.waiting),
        seq=picture.seq,
        newest=picture.last,
        at=picture.seq,
        moment=picture.moment,
        started_at=run.started_at,
        ended_at=run.ended_at,
        repo=run.repo,
        branch=run.branch,
        parent=run.parent_run_id,
        parent_seq=run.parent_seq,
        tasks={state: totals[state] for state in STATES},
        workers=list(dict.fromkeys(one["worker"] for one in under_way)),
        waiting=picture.waiting,
        cost=totals["cost_microdollars"],
        calls=totals["calls"],
        unpriced=totals["unpriced_calls"],
        summary=run.summary,
    )


def _word(state: str, waiting: int) -> str:
    """Return a run's status as of an entry. It had just been written, so the run was neither stalled nor idle."""
    if state in _ENDED:
        return _ENDED[state].value
    return (Status.NEEDS_ATTENTION if waiting else Status.PAUSED if state == "paused" else Status.RUNNING).value


def entries(log: Decklog, run_id: str, *, after: int, until: int) -> list[Any]:
    """Load the entries after one entry and up to another, oldest first."""
    most = max(0, until - after)
    return [entry for entry in islice(log.journal.tail(run_id, after=after, follow=False), most) if entry.seq <= until]
