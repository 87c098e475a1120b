"""Queries for claims: which tasks are ready, the statements that claim a task or take it back, and the table of tags."""

import random
import time
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from functools import cache
from math import inf
from typing import Any, NamedTuple

from decklog.core.clock import from_text
from decklog.db.base import Database
from decklog.records.values import from_json, to_json

EXPIRE_LEASES = """
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
  and leased_until < :steady_now
returning *
"""

# A clock that is set, or a lost notification, is noticed after this time.
_LONGEST_STEP_SECONDS = 15.0

# A task's tags as text: the JSON list without brackets, with a comma on both sides, so that every tag is between commas.
_TAGS = "(',' || substr(tags, 2, length(tags) - 2) || ',')"
HAS_TAG = f"replace({_TAGS}, :tag, '') <> {_TAGS}"
# A paused or finished run gives out no work.
RUN_IS_ACTIVE = "(status = 'planning' or status = 'active')"


_PENDING = "state = 'pending' and open_dependencies = 0"
_DUE = "(not_before is null or not_before <= :now)"
# An assigned task is only for that worker. Separate index ranges for unassigned and for the worker's tasks avoid a scan
# over tasks of others: a claim reads the first of each.
_ASSIGNEE = "coalesce(tasks.assigned_to, '')"
_UNASSIGNED, _TO_WORKER = "''", ":worker"
_FOR_WORKER = "coalesce(tasks.assigned_to, :worker) = :worker"
# What a claim checks first: expired leases, due schedules, and tasks assigned to this worker.
_PRECHECKS = (
    "exists (select 1 from tasks where run_id = :run_id and state = 'running' and leased_until < :steady_now)",
    "exists (select 1 from schedules where run_id = :run_id and next_at <= :now)",
    f"exists (select 1 from tasks where run_id = :run_id and {_PENDING} and {_ASSIGNEE} = :worker)",
)
PRECHECK_SQL = f"select {', '.join(_PRECHECKS)}"
_NO_PRECHECK_DUE = "".join(f" and not {found}" for found in _PRECHECKS)


# The first tasks to give out of each run. The index finds them independent of the number of tasks.
_FIRST_TASKS = ", ".join(
    f"""
    (select {column} from tasks
      where tasks.run_id = runs.id and {_PENDING} and {_ASSIGNEE} = {assignee}
      order by priority desc, tasks.created_at, tasks.id
      limit 1)
    """
    for assignee in (_UNASSIGNED, _TO_WORKER)
    for column in ("priority", "created_at")
)
_RUNS_WITH_WORK = f"""
select id, {_FIRST_TASKS}
  from runs
 where {RUN_IS_ACTIVE}
   and (exists (select 1 from tasks where run_id = runs.id and {_PENDING})
        or exists (select 1 from tasks where run_id = runs.id and state = 'running')
        or exists (select 1 from schedules where run_id = runs.id and next_at <= :now))
"""


def format_tag(tag: str) -> str:
    """Format a tag as `HAS_TAG` expects it."""
    return f",{to_json(tag)},"


def _ready_tasks_sql(filters: tuple[str, ...], in_run: str | None, *, assignee: str | None = None, due: str = _DUE) -> str:
    """Build the FROM and WHERE part that finds ready tasks, with the given filters.

    Each combination uses a separate index, in the order of claims. A tag filter uses `ready_tags`, which has the tags of
    all claimable tasks.
    """
    table = "ready_tags" if "tag" in filters else "tasks"
    more = "".join(f" and tasks.{name} = :{name}" for name in filters if name in ("id", "group_id", "role"))
    if assignee is not None:
        more += f" and {'ready_tags.assigned_to' if 'tag' in filters else _ASSIGNEE} = {assignee}"
    if in_run is not None:
        more += f" and {table}.run_id = {in_run}"
    if table == "tasks":
        return f"tasks where {_PENDING} and {due}{more}"
    # Cross join, so that SQLite always goes from the tags to the tasks.
    tagged = "ready_tags.tag = :tag and tasks.id = ready_tags.task_id"
    return f"ready_tags cross join tasks where {tagged} and {_PENDING} and {due}{more}"


@cache
def ready_check_sql(filters: tuple[str, ...]) -> str:
    """Build the query that checks whether a task can be claimed."""
    goes_on = f"exists (select 1 from runs where runs.id = tasks.run_id and {RUN_IS_ACTIVE})"
    in_run = ":run_id" if "run_id" in filters else None
    sides = (_UNASSIGNED, _TO_WORKER) if "worker" in filters else (None,)
    found = (f"select 1 from {_ready_tasks_sql(filters, in_run, assignee=assignee)} and {goes_on}" for assignee in sides)
    return f"{' union all '.join(found)} limit 1"


@cache
def later_tasks_sql(filters: tuple[str, ...]) -> str:
    """Build the query that counts a run's tasks with a later start time, up to 1,000, and returns the first time."""
    found = _ready_tasks_sql(filters, ":run_id", due="not_before > :now")
    return f"select count(*), min(not_before) from (select not_before from {found} limit 1000) as few"


@cache
def next_times_sql(filters: tuple[str, ...]) -> str:
    """Build the query for the first end of a lease, and the first time of a schedule and of a task that starts later."""
    more = "".join(f" and {HAS_TAG if name == 'tag' else f'tasks.{name} = :{name}'}" for name in filters if name != "worker")
    if "worker" in filters:
        more += f" and {_FOR_WORKER}"
    in_run = " and schedules.run_id = :run_id" if "run_id" in filters else ""
    of_task = f"from tasks join runs on runs.id = tasks.run_id and {RUN_IS_ACTIVE}"
    return f"""
    select (select min(leased_until) {of_task} where state = 'running'{more}),
           (select min(next_at) from schedules join runs on runs.id = schedules.run_id and {RUN_IS_ACTIVE} where true{in_run}),
           (select min(not_before) {of_task} where {_PENDING} and not_before > :now{more})
    """


@cache
def assigned_check_sql(filters: tuple[str, ...]) -> str:
    """Build the query that checks whether any task is assigned to a worker."""
    in_run = " and run_id = :run_id" if "run_id" in filters else ""
    return f"select 1 from tasks where assigned_to is not null{in_run} limit 1"


class Outlook(NamedTuple):
    """What a waiting worker finds: whether there may be a task, and in how many seconds one may become ready by time alone."""

    is_ready: bool
    # Whether no task is assigned to a worker.
    is_shared: bool
    seconds: float


def check_outlook(db: Database, filters: dict[str, str], times: dict[str, datetime]) -> Outlook:
    """Check whether there may be a task for the caller now, or when."""
    bound, _ = db.values.bind({**filters, **times})
    is_shared = db.one(assigned_check_sql(tuple(filters)), bound) is None
    if db.one(ready_check_sql(tuple(filters)), bound) is not None:
        return Outlook(is_ready=True, is_shared=is_shared, seconds=0.0)
    if "tag" in bound:
        bound["tag"] = format_tag(bound["tag"])
    found = db.one(next_times_sql(tuple(filters)), bound)
    assert found is not None
    # A lease is over when its end has passed, the others when their time has come.
    clocks = (times["steady_now"] - timedelta.resolution, times["now"], times["now"])
    left = [(from_text(time) - now).total_seconds() for time, now in zip(found, clocks, strict=True) if time is not None]
    seconds = min(left, default=inf)
    return Outlook(is_ready=seconds <= 0, is_shared=is_shared, seconds=seconds)


def list_runs_with_work(db: Database, worker: str, now: datetime) -> list[str]:
    """Return the active runs with ready, running or due tasks, ordered by the task that each would give out first."""
    bound, _ = db.values.bind({"worker": worker, "now": now})
    return [row[0] for row in sorted(db.rows(_RUNS_WITH_WORK, bound)[1], key=_urgency)]


def _urgency(row: Sequence[Any]) -> tuple[Any, ...]:
    """Return the sort key of a run: the more urgent of its two first tasks. Runs without any come last."""
    run_id, *firsts = row
    found = [(-priority, created_at) for priority, created_at in (firsts[:2], firsts[2:]) if priority is not None]
    return (0, *min(found), run_id) if found else (1, 0, "", run_id)


def _first_ready_sql(filters: tuple[str, ...], assignee: str, *more: str) -> str:
    """Build the query for the most urgent, oldest ready task of one worker or of anybody. `more` adds columns to its id."""
    found = _ready_tasks_sql(filters, f"(select id from runs where id = :run_id and {RUN_IS_ACTIVE})", assignee=assignee)
    order = "tasks.priority desc, tasks.created_at, tasks.id"
    if "tag" in filters:
        order = "ready_tags.rank, ready_tags.created_at, ready_tags.task_id"
    columns = ", ".join(f"tasks.{name}" for name in ("id", *more))
    return f"select {columns} from {found} order by {order} limit 1 for update skip locked"


@cache
def direct_claim_sql(filters: tuple[str, ...]) -> str:
    """Build the update that claims an unassigned task, as `claim_sql` does, if no other check is due first.

    It matches no task otherwise. Most claims have nothing to check, and so need only this statement.
    """
    return _claim_update_sql(_first_ready_sql(filters, _UNASSIGNED), _NO_PRECHECK_DUE)


# The worker and the run of the task that is about to be finished.
_OF_HOLDER = {name: f"(select {name} from holder)" for name in ("worker", "run_id")}


@cache
def claim_after_finish_sql(filters: tuple[str, ...]) -> str:
    """Build the update that claims a task as `direct_claim_sql` does, for the worker who is about to finish `finished`.

    It matches no task if others may depend on that one: their dependencies are resolved first.
    """
    sql = direct_claim_sql(filters)
    for name, found in _OF_HOLDER.items():
        sql = sql.replace(f":{name}", found)
    return f"""
    with holder as materialized (
      select worker, run_id from tasks
       where id = :finished and worker is not null and not exists (select 1 from dependencies where depends_on = :finished)
    )
    {sql}
    """


@cache
def claim_sql(filters: tuple[str, ...]) -> str:
    """Build the update that claims the most urgent, oldest ready task with these filters."""
    sides = {"anybodys": _UNASSIGNED, "own": _TO_WORKER}
    firsts = " union all ".join(
        f"select * from ({_first_ready_sql(filters, assignee, 'priority', 'created_at')}) {name}"
        for name, assignee in sides.items()
    )
    return _claim_update_sql(f"select id from ({firsts}) firsts order by priority desc, created_at, id limit 1")


def _claim_update_sql(found: str, more: str = "") -> str:
    """Build the update that gives the task of a query to a worker."""
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
    where id = ({found})
      and state = 'pending'{more}
    returning *
    """


# The worker of a task, with each linked task.
HOLDER_AND_LINKS = """
select t.worker, d.run_id, d.kind from tasks t left join dependencies d on d.depends_on = t.id where t.id = :id
"""


class Patience:
    """How long a claim may wait. A step ends when a task may become ready, and after a while in any case."""

    def __init__(self, seconds: float) -> None:
        self._end = time.monotonic() + seconds

    def step(self, seconds: float) -> float:
        return min(seconds, self.left(), _LONGEST_STEP_SECONDS * random.uniform(0.75, 1.25))

    def left(self) -> float:
        return max(0.0, self._end - time.monotonic())

    def over(self) -> bool:
        return time.monotonic() >= self._end


READY_TAGS = "ready_tags"
_TAG_COLUMNS = ("task_id", "tag", "run_id", "assigned_to", "rank", "created_at")
_STORED_TAGS = f"select {', '.join(_TAG_COLUMNS)} from {READY_TAGS} order by {', '.join(_TAG_COLUMNS)}"
_EXPECTED_TAGS = """
select id, tags, run_id, coalesce(assigned_to, ''), -priority, created_at
  from tasks
 where state = 'pending' and open_dependencies = 0 and tags <> '[]'
 order by id
"""


def audit_tags(db: Database) -> Iterator[dict[str, Any]]:
    """Yield a problem for each task whose indexed tags differ from its tags."""
    kept: dict[Any, list[tuple[Any, ...]]] = {}
    for task_id, *row in db.each_as_is(_STORED_TAGS, {}):
        kept.setdefault(task_id, []).append(tuple(row))
    yield from (_tags_problem(task_id) for task_id, true in _read_task_tags(db) if kept.pop(task_id, []) != true)
    yield from map(_tags_problem, kept)


def _read_task_tags(db: Database) -> Iterator[tuple[str, list[tuple[Any, ...]]]]:
    for task_id, tags, *place in db.each(_EXPECTED_TAGS, {}):
        yield task_id, [(tag, *place) for tag in sorted(_parse_tags(tags))]


def _parse_tags(tags: str) -> set[str]:
    try:
        found = from_json(tags)
    except ValueError:
        return set()
    return {tag for tag in found if isinstance(tag, str)} if isinstance(found, list) else set()


def _tags_problem(task_id: Any) -> dict[str, Any]:
    what = f"{READY_TAGS} of task {task_id} are not the tags that it can be claimed by"
    return {"what": what, "table": READY_TAGS, "record_id": str(task_id)}


def derive_tags(db: Database) -> None:
    """Rebuild the table from the tasks."""
    db.count(f"delete from {READY_TAGS}", {})
    batch: list[tuple[Any, ...]] = []
    for task_id, rows in list(_read_task_tags(db)):
        batch += [(task_id, *row) for row in rows]
    db.insert(READY_TAGS, _TAG_COLUMNS, batch)
