"""Recent events: new entries of some runs, failed tasks and ended runs."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from decklog.core.clock import from_text, to_text
from decklog.db.base import Database
from decklog.db.where import placed
from decklog.journal.rows import STREAM_SIZE
from decklog.stores.overview.run_facts import RunOverview
from decklog.stores.overview.view import View
from decklog.stores.results.overview import EndedRun, FailedTask

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
