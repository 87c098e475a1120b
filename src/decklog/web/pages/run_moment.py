"""A run as it stands now, or as it stood when an entry had just been written: the same figures either way."""

from collections import Counter
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import Any

from decklog import Status
from decklog.app import Decklog
from decklog.errors import NotFound

_ENDED = {"completed": Status.DONE, "failed": Status.FAILED, "cancelled": Status.CANCELLED}
TASKS = 50
STATES = ("pending", "running", "paused", "blocked", "done", "abandoned")


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


def look(log: Decklog, run_id: str, at: int | None) -> RunMoment:
    """Read a run's head, now or as of an entry."""
    shown = log.overview.run(run_id)
    if at is not None and not 1 <= at <= shown.entries:
        raise NotFound(f"run {run_id} has entries 1 to {shown.entries}; there is no {at}", run_id=run_id)
    return _now(log, shown) if at is None else _past(log, shown, at)


def _now(log: Decklog, shown: Any) -> RunMoment:
    run = log.runs.get(shown.id)
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
        parent=f"{run.parent_run_id}:{run.parent_seq}" if run.parent_run_id else None,
        tasks={state: shown.tasks[state] for state in STATES},
        workers=list(dict.fromkeys(str(task["worker"]) for task in shown.working_on)),
        waiting=shown.waiting,
        cost=shown.cost_microdollars,
        calls=shown.calls,
        unpriced=shown.unpriced_calls,
    )


def _past(log: Decklog, shown: Any, at: int) -> RunMoment:
    snapshot = log.runs.snapshot(shown.id, at=str(at))
    run: Any = snapshot.run
    tasks: list[Any] = list(snapshot.records.get("tasks", []))
    counts = Counter(task.state.value for task in tasks)
    approvals: list[Any] = list(snapshot.records.get("approvals", []))
    waiting = sum(approval.state.value == "open" for approval in approvals)
    return RunMoment(
        id=shown.id,
        goal=run.goal,
        word=_word(run.status.value, waiting),
        seq=at,
        newest=shown.entries,
        at=at,
        moment=log.journal.get(shown.id, at).at,
        started_at=run.started_at,
        ended_at=run.ended_at,
        repo=run.repo,
        branch=run.branch,
        parent=f"{run.parent_run_id}:{run.parent_seq}" if run.parent_run_id else None,
        tasks={state: counts[state] for state in STATES},
        workers=list(dict.fromkeys(task.worker for task in tasks if task.state.value == "running"))[:3],
        waiting=waiting,
        cost=snapshot.spent["microdollars"],
        calls=snapshot.spent["calls"],
        unpriced=snapshot.spent["unpriced_calls"],
    )


def _word(state: str, waiting: int) -> str:
    """Find the word for how a run stood when an entry had just been written: so it was neither quiet nor idle."""
    if state in _ENDED:
        return _ENDED[state].value
    return (Status.NEEDS_YOU if waiting else Status.HELD if state == "paused" else Status.RUNNING).value


def tasks(log: Decklog, run_id: str, at: int | None, after: str | None) -> tuple[list[Any], str | None]:
    """Read a page of a run's tasks, in the order they were added, now or as of an entry; and the cursor of the next."""
    if at is None:
        page = log.tasks.find(run_id, limit=TASKS, after=after)
        return list(page), page.next
    found: list[Any] = list(log.runs.snapshot(run_id, at=str(at)).records.get("tasks", []))
    found.sort(key=lambda task: (task.created_at, task.id))
    start = int(after) if after and after.isdecimal() else 0
    return found[start : start + TASKS], str(start + TASKS) if len(found) > start + TASKS else None


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
