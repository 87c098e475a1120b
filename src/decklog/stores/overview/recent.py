"""Recent events, loaded with one query: new entries of some runs, failed tasks and ended runs."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from decklog.core.clock import from_text, to_text
from decklog.db.base import Database, Row
from decklog.db.where import placed
from decklog.journal.rows import STREAM_SIZE
from decklog.stores.overview.run_facts import RunOverview
from decklog.stores.results.overview import EndedRun, FailedTask

# Recent activity covers the last hour, in this many steps.
HOUR, STEPS = timedelta(hours=1), 24
# Each part has the same columns: its name, four texts, a number and a time.
_TIMES = f"""
select 'time', s.name, null, null, null, cast(null as bigint), e.at
  from stream_heads s
  join entries e on e.pos > s.head_pos - 120 and e.pos >= s.no * {STREAM_SIZE} and e.pos < (s.no + 1) * {STREAM_SIZE}
 where s.name in ({{ids}}) and coalesce(e.at, '') >= :moved_since
"""
_FAILED = """
select * from (
  select 'failed', id, run_id, title, reason, cast(failures as bigint), updated_at
    from tasks
   where state = 'blocked' and failures >= max_attempts and updated_at >= :failed_since
   order by updated_at desc, id desc
   limit :most
) failed
"""
_ENDED = """
select * from (
  select 'ended', id, goal, status, summary, cast(null as bigint), ended_at
    from runs
   where ended_at is not null and ended_at >= :ended_since
   order by ended_at desc, id desc
   limit :most
) ended
"""
_WORDS = {"completed": "done", "failed": "failed", "cancelled": "cancelled"}


@dataclass(frozen=True, kw_only=True)
class Recent:
    """Recent events, latest first. `pulse` counts the entries of each run in 24 steps of the last hour."""

    activity: dict[str, list[int]]
    failed: list[FailedTask]
    ended: list[EndedRun]

    def as_dict(self) -> dict[str, Any]:
        return dict(vars(self))


@dataclass(frozen=True)
class RecentActivity:
    """The result of one query, with the times of entries by run."""

    times: list[tuple[str, str]]
    failed: list[FailedTask]
    ended: list[EndedRun]


def read(
    db: Database,
    *,
    run_ids: Sequence[str] = (),
    most: int = 0,
    moved_since: datetime | None = None,
    failed_since: datetime | None = None,
    ended_since: datetime | None = None,
) -> RecentActivity:
    """Load the parts that have a start time, with one statement."""
    given = {"moved_since": moved_since, "failed_since": failed_since, "ended_since": ended_since}
    bound: dict[str, Any] = {name: to_text(moment) for name, moment in given.items() if moment is not None}
    marks, ids = placed(run_ids)
    wanted = {"moved_since": _TIMES.format(ids=marks), "failed_since": _FAILED, "ended_since": _ENDED}
    sql = " union all ".join(wanted[name] for name in bound)
    if moved_since is not None:
        bound |= db.values.bind(ids)[0]
    if failed_since is not None or ended_since is not None:
        bound["most"] = most
    rows = db.rows(sql, bound)[1]
    return RecentActivity(
        [(row[1], row[6]) for row in rows if row[0] == "time"],
        [
            {"id": task_id, "run_id": run_id, "title": title, "reason": reason, "failures": failures, "updated_at": at}
            for _, task_id, run_id, title, reason, failures, at in _latest(rows, "failed")
        ],
        [
            {"id": run_id, "goal": goal, "status": _WORDS[state], "summary": summary, "ended_at": at}
            for _, run_id, goal, state, summary, _, at in _latest(rows, "ended")
        ],
    )


def _latest(rows: Sequence[Row], part: str) -> list[Row]:
    return sorted((row for row in rows if row[0] == part), key=lambda row: (row[-1], row[1]), reverse=True)


def steps(
    run_ids: Sequence[str], times: Sequence[tuple[str, str]], since: datetime, whole: timedelta, buckets: int
) -> dict[str, list[int]]:
    """Count the times of each run in equal steps."""
    counts = {run_id: [0] * buckets for run_id in run_ids}
    step, last = whole / buckets, buckets - 1
    for run_id, at in times:
        counts[run_id][min((from_text(at) - since) // step, last)] += 1
    return counts


def last_hour(db: Database, runs: Iterable[RunOverview], now: datetime) -> dict[str, list[int]]:
    """Count the entries of the last hour by step, for runs that have any."""
    since = now - HOUR
    ids = [run.id for run in runs if run.last_at >= since]
    times = read(db, run_ids=ids, moved_since=since).times if ids else []
    return steps(ids, times, since, HOUR, STEPS)
