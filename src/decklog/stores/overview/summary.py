"""The whole log in one sentence, with the facts behind it; and recent events."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from decklog.core.clock import from_text, to_text
from decklog.core.display import counted, dollars
from decklog.db.base import Database
from decklog.db.where import placed
from decklog.journal.rows import STREAM_SIZE
from decklog.stores.overview.run_facts import RunOverview
from decklog.stores.overview.spending import BudgetOverview, global_budget
from decklog.stores.overview.status import Status
from decklog.stores.overview.view import View
from decklog.stores.overview.waiting import WaitingItem
from decklog.stores.results.overview import EndedRun, FailedTask


@dataclass(frozen=True, kw_only=True)
class Summary(View):
    """The summary of a log. `waiting` and `runs` are the first of those that `decisions` and `counts` count.

    With `is_cut` there are more unfinished runs than checked; only the newest are counted.
    """

    at: datetime
    sentence: str
    decisions: int
    waiting: list[WaitingItem]
    counts: dict[str, int]
    agents: int
    runs: list[RunOverview]
    spent_today: int
    unpriced_today: int
    budgets: list[BudgetOverview]
    is_new: bool
    is_cut: bool = False


def sentence(
    decisions: int,
    counts: Mapping[str, int],
    at_work: tuple[int, int],
    today: int,
    budgets: Sequence[BudgetOverview],
    *,
    is_new: bool,
    is_cut: bool,
) -> str:
    """Build one to three sentences: what waits, how many agents work on how many runs, and the cost."""
    if is_new:
        return "Nothing has happened in this log yet."
    waits = f"{counted(decisions, 'decision')} {'waits' if decisions == 1 else 'wait'}" if decisions else "Nothing waits"
    parts = [f"{waits} for you.", _work(counts, *at_work)]
    if is_cut:
        parts.append(f"Only the {sum(counts.values()):,} newest runs under way are counted.")
    if cost := _cost(today, budgets):
        parts.append(cost)
    return " ".join(parts)


def by_status(runs: Iterable[RunOverview]) -> dict[str, int]:
    """Count runs by status."""
    counts: dict[str, int] = {}
    for run in runs:
        counts[run.status.value] = counts.get(run.status.value, 0) + 1
    return counts


def _work(counts: Mapping[str, int], agents: int, runs: int) -> str:
    """Count the distinct agents with a live lease and the runs that they work on."""
    stalled = counts.get(Status.STALLED, 0)
    idle = counts.get(Status.RUNNING, 0) + counts.get(Status.NEEDS_ATTENTION, 0) - runs
    parts = []
    if agents:
        parts.append(f"{counted(agents, 'agent')} {'works' if agents == 1 else 'work'} on {counted(runs, 'run')}")
    if idle:
        parts.append(f"{f'{idle:,} more' if agents else counted(idle, 'run')} {'is' if idle == 1 else 'are'} under way")
    if stalled:
        parts.append(f"{f'{stalled:,}' if parts else counted(stalled, 'run')} {'has' if stalled == 1 else 'have'} stalled")
    return f"{'; '.join(parts)}." if parts else "Nothing is running."


def _cost(today: int, budgets: Sequence[BudgetOverview]) -> str:
    budget = global_budget(budgets)
    if budget is None:
        return f"{dollars(today)} spent today." if today else ""
    if budget.period == "day":
        return f"{dollars(today)} spent today of {dollars(budget.ceiling)}."
    span = "in all" if budget.period == "forever" else f"this {budget.period}"
    return f"{dollars(today)} spent today, {dollars(budget.spent)} of {dollars(budget.ceiling)} {span}."


# Recent activity covers the last hour, in this many steps.
HOUR, STEPS = timedelta(hours=1), 24
_TIMES = f"""
select s.name, e.at
  from stream_heads s
  join entries e on e.pos > s.head_pos - 120 and e.pos >= s.no * {STREAM_SIZE} and e.pos < (s.no + 1) * {STREAM_SIZE}
 where s.name in ({{ids}}) and coalesce(e.at, '') >= :since
"""
_FAILED = """
select id, run_id, title, reason, failures, updated_at
  from tasks
 where state = 'blocked' and failures >= max_attempts and updated_at >= :since
 order by updated_at desc, id desc
 limit :most
"""
_ENDED = """
select id, goal, status, summary, ended_at
  from runs
 where ended_at is not null and ended_at >= :since
 order by ended_at desc, id desc
 limit :most
"""
_WORDS = {"completed": "done", "failed": "failed", "cancelled": "cancelled"}


@dataclass(frozen=True, kw_only=True)
class Recent(View):
    """Recent events, latest first. `activity` counts the entries of each run in 24 steps of the last hour."""

    activity: dict[str, list[int]]
    failed: list[FailedTask]
    ended: list[EndedRun]


def failed_tasks(db: Database, since: datetime, most: int) -> list[FailedTask]:
    """List the tasks that used up their attempts, the latest first."""
    return [
        {"id": task_id, "run_id": run_id, "title": title, "reason": reason, "failures": failures, "updated_at": at}
        for task_id, run_id, title, reason, failures, at in db.rows(_FAILED, {"since": to_text(since), "most": most})[1]
    ]


def ended_runs(db: Database, since: datetime, most: int) -> list[EndedRun]:
    """List the runs that ended, the latest first."""
    return [
        {"id": run_id, "goal": goal, "status": _WORDS[state], "summary": summary, "ended_at": at}
        for run_id, goal, state, summary, at in db.rows(_ENDED, {"since": to_text(since), "most": most})[1]
    ]


def activity(
    db: Database, run_ids: Sequence[str], now: datetime, span: timedelta = HOUR, buckets: int = STEPS
) -> dict[str, list[int]]:
    """Count the newest 120 entries of each run in equal steps of a span up to now."""
    counts = {run_id: [0] * buckets for run_id in run_ids}
    if run_ids:
        since, (marks, ids) = now - span, placed(run_ids)
        bound = {"since": to_text(since), **db.values.bind(ids)[0]}
        for run_id, at in db.rows(_TIMES.format(ids=marks), bound)[1]:
            counts[run_id][min((from_text(at) - since) // (span / buckets), buckets - 1)] += 1
    return counts


def last_hour(db: Database, runs: Iterable[RunOverview], now: datetime) -> dict[str, list[int]]:
    """Count the entries of the last hour by step, for runs that have any."""
    return activity(db, [run.id for run in runs if run.last_at >= now - HOUR], now)
