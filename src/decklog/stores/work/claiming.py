"""Claiming: one worker gets a task for a while. Expired leases are taken back inside every claim, so no daemon is needed."""

from datetime import timedelta
from functools import cache

from decklog.errors import Invalid
from decklog.operations import writes, writes_in_steps
from decklog.records import to_json
from decklog.stores.numbers import check_run
from decklog.stores.work.claim import Claim
from decklog.stores.work.leases import DEFAULT_LEASE_SECONDS, Leases, check_span
from decklog.stores.work.task import Task

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Protocol

    class Recalling(Protocol):
        """A memory of what went wrong before."""

        def recall(self, query: str) -> list[Any]: ...


_EXPIRED = """
update tasks set
  state = case when failures + 1 >= max_attempts then 'blocked' else 'pending' end,
  reason = 'the lease of ' || worker || ' expired'
    || case when failures + 1 >= max_attempts then '; all ' || max_attempts || ' attempts are used' else '' end,
  failures = failures + 1,
  outcome = 'expired',
  summary = null,
  result = null,
  worker = null,
  leased_until = null,
  updated_at = :now
where run_id = :run_id
  and state = 'running'
  and leased_until < :now
returning *
"""


# Tags are a JSON list, and a tag that is bound as JSON has its quotes: a part of another tag is not met.
TAGGED = "replace(tags, :tag, '') <> tags"
# A run that is paused or over gives out no work.
GOES_ON = "(status = 'planning' or status = 'active')"


@cache
def _take_next(narrowed: "tuple[str, ...]") -> str:
    """Write the update that takes the most urgent, oldest task that is ready, of those with a group, role or tag."""
    more = "".join(f" and {TAGGED if name == 'tag' else f'{name} = :{name}'}" for name in narrowed)
    return f"""
    update tasks set
      state = 'running',
      worker = :worker,
      fence = fence + 1,
      attempts = attempts + 1,
      leased_at = :now,
      leased_until = :until,
      outcome = null,
      reason = null,
      reservation_id = null,
      updated_at = :now
    where id = (
      select id from tasks
       where run_id = (select id from runs where id = :run_id and {GOES_ON})
         and state = 'pending'
         and open_dependencies = 0
         and (not_before is null or not_before <= :now)
         {more}
       order by priority desc, created_at, id
       limit 1 for update skip locked
    )
      and state = 'pending'
    returning *
    """


class Claiming(Leases):
    """Gives tasks to workers, and takes them back from those who died."""

    lessons = None  # type: Recalling | None

    @writes_in_steps
    def claim(
        self,
        run_id: str | None = None,
        *,
        worker: str,
        group_id: str | None = None,
        role: str | None = None,
        tag: str | None = None,
        lease_seconds: float = DEFAULT_LEASE_SECONDS,
        wait_seconds: float = 0.0,
        reserve_microdollars: int | None = None,
        reserve_tokens: int | None = None,
        recall: bool = False,
    ) -> Claim | None:
        """Take the most urgent, oldest ready task; None when there is none.

        The task is yours until the lease ends: extend it, and show its fence with every later call. With `wait_seconds`, wait
        so long for a task to become ready.

        With `reserve_…`, that much of the budgets is reserved in the same transaction, or nothing is claimed; it is settled when
        the task ends and free again when the lease expires. With `recall`, lessons from work like this come along.
        """
        if not worker.strip():
            raise Invalid("a worker needs a name", field="worker")
        check_span(lease_seconds, "lease_seconds")
        wanted = {"group_id": group_id, "role": role, "tag": tag}
        amounts = {"microdollars": reserve_microdollars, "tokens": reserve_tokens}
        patience = _Patience(wait_seconds)
        while True:
            task = self.db.write(lambda: self._claim(run_id, worker, wanted, lease_seconds, amounts))
            if task is not None:
                claim = Claim(self, task, lease_seconds)
                if recall and self.lessons is not None:
                    claim.lessons = self.lessons.recall(f"{task.title} {task.objective}")
                return claim
            if patience.over():
                return None
            self.db.wait_for_change(patience.left())

    def _claim(
        self,
        run_id: str | None,
        worker: str,
        wanted: "dict[str, str | None]",
        lease_seconds: float,
        amounts: "dict[str, int | None] | None" = None,
    ) -> Task | None:
        for run in [run_id] if run_id is not None else self._runs_with_work():
            self._take_back(run)
            if (task := self._take(run, worker, wanted, lease_seconds)) is not None:
                return self._reserve(task, amounts) if amounts and any(amounts.values()) else task
        if run_id is not None:
            # An empty answer would be taken for a run with nothing left to do.
            check_run(self, run_id)
        return None

    def _reserve(self, task: Task, amounts: "dict[str, int | None]") -> Task:
        """Hold money for a task that was just taken; when a budget says no, the claim never happened."""
        if self.reservations is None or task.leased_until is None:
            raise Invalid("this log keeps no budgets to reserve from", field="reserve_microdollars")
        reservation = self.reservations.reserve(
            task.leased_until,
            amount_microdollars=amounts["microdollars"] or 0,
            tokens=amounts["tokens"] or 0,
            run_id=task.run_id,
            group_id=task.group_id,
            task_id=task.id,
            agent=task.worker,
            holder=f"{task.id}#{task.fence}",
        )
        return self._held(task.id, task.fence, {"reservation_id": reservation.id}, note=f"reserved {reservation.id}")

    def _runs_with_work(self) -> list[str]:
        """Name the runs that go on and have tasks that are ready or running, in order of urgency."""
        _, rows = self.db.rows(
            f"""
            select run_id, max(priority) as urgency, min(created_at) as oldest
              from tasks
             where ((state = 'pending' and open_dependencies = 0) or state = 'running')
               and run_id in (select id from runs where {GOES_ON})
             group by run_id
             order by urgency desc, oldest, run_id
            """,
            {},
        )
        return [row[0] for row in rows]

    def _take_back(self, run_id: str) -> None:
        now = self.now()
        bound, _ = self.db.values.bind({"run_id": run_id, "now": now})
        late = self.db.one(
            "select 1 from tasks where run_id = :run_id and state = 'running' and leased_until < :now limit 1", bound
        )
        if late is not None:
            self.change_all(Task, _EXPIRED, note="lease expired", run_id=run_id, now=now)

    def _take(self, run_id: str, worker: str, wanted: "dict[str, str | None]", lease_seconds: float) -> Task | None:
        """Take the next task that is ready; those that others are taking at this moment are passed over."""
        narrowed = {name: value for name, value in wanted.items() if value is not None}
        if "tag" in narrowed:
            narrowed["tag"] = to_json(narrowed["tag"])
        now = self.now()
        taken = self.change_all(
            Task,
            _take_next(tuple(narrowed)),
            note=f"claimed by {worker}",
            run_id=run_id,
            worker=worker,
            now=now,
            until=now + timedelta(seconds=lease_seconds),
            **narrowed,
        )
        return taken[0] if taken else None

    @writes
    def finish_and_claim(
        self,
        task_id: str,
        *,
        fence: int,
        summary: str | None = None,
        result: object = None,
        group_id: str | None = None,
        role: str | None = None,
        tag: str | None = None,
        lease_seconds: float = DEFAULT_LEASE_SECONDS,
        reserve_microdollars: int | None = None,
        reserve_tokens: int | None = None,
    ) -> Claim | None:
        """End a task as done and take the next of its run for the same worker, in one transaction.

        The next may be narrowed, and budget reserved for it, as in `claim`; when a budget says no, the first is not ended either.
        """
        check_span(lease_seconds, "lease_seconds")
        holder = self.db.one("select worker from tasks where id = :task_id", {"task_id": task_id})
        done = self._finish(task_id, fence, summary, result)
        worker = holder[0] if holder else ""
        wanted = {"group_id": group_id, "role": role, "tag": tag}
        amounts = {"microdollars": reserve_microdollars, "tokens": reserve_tokens}
        task = self._claim(done.run_id, worker or "", wanted, lease_seconds, amounts)
        return None if task is None else Claim(self, task, lease_seconds)


class _Patience:
    """How long a claim may wait, in steps short enough to notice expired leases and start times."""

    def __init__(self, seconds: float) -> None:
        import time

        self._clock = time.monotonic
        self._end = self._clock() + seconds

    def left(self) -> float:
        return min(1.0, max(0.0, self._end - self._clock()))

    def over(self) -> bool:
        return self._clock() >= self._end
