"""A run as it stands now, or as it stood when an entry had just been written: the same figures either way."""

from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import Any

from decklog import Status
from decklog.app import Decklog
from decklog.errors import NotFound

_ENDED = {"completed": Status.DONE, "failed": Status.FAILED, "cancelled": Status.CANCELLED}
TASKS = 50
STATES = ("pending", "running", "waiting", "paused", "blocked", "done", "abandoned")


@dataclass(frozen=True)
class RunMoment:
    """What the head of a run's page shows. `at` is the entry that it is as of; None is now."""

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
    tasks: dict[str, int]
    workers: list[str]
    waiting: int
    cost: int
    calls: int
    unpriced: int

    @property
    def planned(self) -> int:
        return sum(count for state, count in self.tasks.items() if state != "abandoned")

    def as_dict(self) -> dict[str, Any]:
        times = {name: value.isoformat() if isinstance(value, datetime) else value for name, value in vars(self).items()}
        return times | {"planned": self.planned}


def look(log: Decklog, run_id: str, at: int | None, newest: int) -> RunMoment:
    """Read a run's head, now or as of an entry; `newest` is its last one."""
    if at is None:
        return _now(log.overview.run(run_id))
    if not 1 <= at <= newest:
        raise NotFound(f"run {run_id} has entries 1 to {newest}; there is no {at}", run_id=run_id)
    return _past(log, run_id, at, newest)


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
        tasks={state: shown.tasks[state] for state in STATES},
        workers=list(dict.fromkeys(str(task["worker"]) for task in shown.working_on)),
        waiting=shown.waiting,
        cost=shown.cost_microdollars,
        calls=shown.calls,
        unpriced=shown.unpriced_calls,
    )


def _past(log: Decklog, run_id: str, at: int, newest: int) -> RunMoment:
    when = str(at)
    run: Any = log.runs.records_at(run_id, "runs", when, limit=1)[0]
    tallies = log.runs.tallies(run_id, at=when)
    under_way = log.runs.lanes(run_id, since=when, until=when, limit=20)["attempts"]
    waiting = _open_approvals(log, run_id, when)
    return RunMoment(
        id=run_id,
        goal=run.goal,
        word=_word(run.status.value, waiting),
        seq=at,
        newest=newest,
        at=at,
        moment=log.journal.get(run_id, at).at,
        started_at=run.started_at,
        ended_at=run.ended_at,
        repo=run.repo,
        branch=run.branch,
        parent=run.parent_run_id,
        tasks={state: tallies[state] for state in STATES},
        workers=list(dict.fromkeys(one["worker"] for one in under_way if one["outcome"] is None)),
        waiting=waiting,
        cost=tallies["cost_microdollars"],
        calls=tallies["calls"],
        unpriced=tallies["unpriced_calls"],
    )


def _open_approvals(log: Decklog, run_id: str, at: str) -> int:
    """Count the questions that were open, of the first thousand."""
    count, after = 0, None
    for _ in range(5):
        page = log.runs.records_at(run_id, "approvals", at, limit=200, after=after)
        count += sum(approval.state.value == "open" for approval in page)
        after = page.next
        if after is None:
            break
    return count


def _word(state: str, waiting: int) -> str:
    """Find the word for how a run stood when an entry had just been written: so it was neither quiet nor idle."""
    if state in _ENDED:
        return _ENDED[state].value
    return (Status.NEEDS_YOU if waiting else Status.HELD if state == "paused" else Status.RUNNING).value


def tasks(log: Decklog, run_id: str, at: int | None, after: str | None) -> tuple[list[Any], str | None]:
    """Read a page of a run's tasks, in the order they were added, now or as of an entry; and the cursor of the next."""
    page = log.tasks.find(run_id, limit=TASKS, after=after) if at is None else None
    if page is None:
        page = log.runs.records_at(run_id, "tasks", str(at), limit=TASKS, after=after)
    return list(page), page.next


def entries(log: Decklog, run_id: str, *, after: int, until: int) -> list[Any]:
    """Read the entries after one, up to another, oldest first."""
    most = max(0, until - after)
    return [entry for entry in islice(log.journal.tail(run_id, after=after, follow=False), most) if entry.seq <= until]


def entries_of_kind(log: Decklog, run_id: str, kind: str, *, until: RunMoment, limit: int) -> list[Any]:
    """Read the newest entries of a kind up to a moment, newest first."""
    found: list[Any] = []
    cursor = None
    while len(found) < limit:
        page = log.journal.find(run_id, kind=kind, until=until.moment, limit=limit, after=cursor)  # type: ignore[arg-type]
        found += [entry for entry in page if entry.seq <= until.seq]
        if page.next is None:
            break
        cursor = page.next
    return found[:limit]
