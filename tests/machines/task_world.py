"""What must be true of tasks: who has each, what came of its attempts, what a fork makes of it. It knows no database."""

from dataclasses import dataclass, field, replace
from datetime import datetime

HELD = "running"
ENDED_RUN = ("completed", "failed", "cancelled")
ENDED_TASK = ("done", "abandoned")


@dataclass(frozen=True)
class Try:
    """One attempt at a task; without an outcome it is under way."""

    number: int
    fence: int
    worker: str
    outcome: str | None = None


@dataclass(frozen=True)
class Work:
    """What a task must be."""

    id: str
    priority: int
    max_attempts: int
    needs: frozenset[str] = frozenset()
    not_before: datetime | None = None
    state: str = "pending"
    worker: str | None = None
    until: datetime | None = None
    fence: int = 0
    attempts: int = 0
    failures: int = 0
    blocker: str | None = None
    repeats: int = 0
    assigned: str | None = None
    tries: tuple[Try, ...] = ()

    def taken(self, worker: str, until: datetime) -> "Work":
        attempt = Try(self.attempts + 1, self.fence + 1, worker)
        return replace(
            self,
            state=HELD,
            worker=worker,
            until=until,
            fence=attempt.fence,
            attempts=attempt.number,
            tries=(*self.tries, attempt),
        )

    def ended(self, state: str, outcome: str) -> "Work":
        tries = self.tries
        if self.state == HELD:
            tries = (*tries[:-1], replace(tries[-1], outcome=outcome))
        return replace(self, state=state, worker=None, until=None, tries=tries)

    def failed(self, outcome: str) -> "Work":
        failures = self.failures + 1
        return replace(self.ended("blocked" if failures >= self.max_attempts else "pending", outcome), failures=failures)

    def met(self, blocker: str | None) -> "Work":
        repeats = 0 if blocker is None else self.repeats + 1 if blocker == self.blocker else 1
        return replace(self, blocker=blocker, repeats=repeats)

    def moved(self, state: str) -> "Work":
        return replace(self.ended(state, state), fence=self.fence + 1)

    def resumed(self) -> "Work":
        return replace(self, state="pending", not_before=None, failures=min(self.failures, self.max_attempts - 1))

    def forked(self, task_id: str) -> "Work":
        held = self.state == HELD
        return replace(
            self,
            id=task_id,
            state="pending" if held or self.state == "waiting" else self.state,
            attempts=self.attempts - held,
            worker=None,
            until=None,
            tries=(),
        )


@dataclass
class Run:
    """A run: its tasks by their titles, and what workers wrote in it."""

    status: str = "active"
    tasks: dict[str, Work] = field(default_factory=dict)
    # How many versions the workers' notes have, what they said, and what they spent (True: after the lease was lost).
    notes: int = 0
    bodies: list[str] = field(default_factory=list)
    spent: list[bool] = field(default_factory=list)
    # What it was after each step, by the number of its last entry then.
    past: "dict[int, Run]" = field(default_factory=dict)

    def copy(self) -> "Run":
        return Run(self.status, dict(self.tasks), self.notes, list(self.bodies), list(self.spent), dict(self.past))

    def forked(self, ids: dict[str, str]) -> "Run":
        """Give what a fork of it must be, whose tasks have these ids: nothing that was said or paid comes along."""
        status = "active" if self.status in ("completed", "failed", "cancelled") else self.status
        return Run(status, {title: work.forked(ids[title]) for title, work in self.tasks.items()}, self.notes)

    @property
    def goes_on(self) -> bool:
        return self.status in ("planning", "active")

    def open_needs(self, work: Work) -> int:
        return sum(self.tasks[title].state != "done" for title in work.needs)

    def ready(self, now: datetime, worker: str) -> list[str]:
        """Name the tasks that a worker can claim."""
        return [title for title, work in self.tasks.items() if self.is_ready(work, now, worker)]

    def is_ready(self, work: Work, now: datetime, worker: str) -> bool:
        waits = work.not_before is not None and work.not_before > now
        return self.goes_on and self.is_near(work, worker) and not waits

    def is_near(self, work: Work, worker: str | None) -> bool:
        """Tell whether a worker can claim a task, but for the time."""
        return work.state == "pending" and not self.open_needs(work) and work.assigned in (None, worker)

    def lapse(self, now: datetime) -> None:
        """Take expired leases back, as every claim does."""
        for title, work in self.tasks.items():
            if work.state == HELD and work.until is not None and work.until < now:
                self.tasks[title] = work.failed("expired")

    def leads_to(self, start: str, goal: str) -> bool:
        """Tell whether a task depends on another, over any number of others."""
        return start == goal or any(self.leads_to(title, goal) for title in self.tasks[start].needs)


@dataclass(frozen=True)
class Holder:
    """Somebody who was given a task. Void when that was undone: then nothing it says counts, whatever its fence."""

    run: str
    title: str
    fence: int
    is_void: bool = False
    is_over: bool = False


@dataclass
class TaskWorld:
    runs: dict[str, Run] = field(default_factory=dict)
    holders: dict[int, Holder] = field(default_factory=dict)

    def copy(self) -> "TaskWorld":
        return TaskWorld({name: run.copy() for name, run in self.runs.items()}, dict(self.holders))

    def holds(self, holder: Holder) -> bool:
        if holder.is_void:
            return False
        work = self.runs[holder.run].tasks[holder.title]
        return work.state == HELD and work.fence == holder.fence

    def runs_with_work(self, created: "dict[str, datetime]", worker: str) -> list[str]:
        """Name the runs that go on and have tasks that are ready or running, the most urgent for a worker first."""
        order = []
        for name, run in self.runs.items():
            tasks = run.tasks.values()
            if run.goes_on and any(run.is_near(work, work.assigned) or work.state == HELD for work in tasks):
                near = [(-work.priority, created[work.id], work.id) for work in tasks if run.is_near(work, worker)]
                order.append((not near, [first[:2] for first in sorted(near)[:1]], name))
        return [name for *_, name in sorted(order)]
