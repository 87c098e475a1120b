"""What can be claimed: which tasks are ready, and the statements that take one, end it and take it back."""

from functools import cache

from decklog.records import to_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from datetime import datetime

    from decklog.db.base import Database

EXPIRED = """
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


# A task's tags: the list without its brackets, a comma on either side. A tag stands between commas in it, as JSON spells it.
_TAGS = "(',' || substr(tags, 2, length(tags) - 2) || ',')"
TAGGED = f"replace({_TAGS}, :tag, '') <> {_TAGS}"
# A run that is paused or over gives out no work.
GOES_ON = "(status = 'planning' or status = 'active')"


_PENDING = "state = 'pending' and open_dependencies = 0"
_DUE = "(not_before is null or not_before <= :now)"
# A task that is assigned is for that worker alone.
FOR_WORKER = "coalesce(tasks.assigned_to, :worker) = :worker"
# What a claim of a run puts in order first, if there is any: leases that are over, and schedules whose time has come.
OVERDUE = """
select exists (select 1 from tasks where run_id = :run_id and state = 'running' and leased_until < :steady_now),
       exists (select 1 from schedules where run_id = :run_id and next_at <= :now)
"""


# The task of a run that is given out first. Each run is asked for its own by the index, however many tasks there are.
_FIRST = f"""
where tasks.run_id = runs.id and {_PENDING} and {FOR_WORKER}
order by priority desc, tasks.created_at, tasks.id
limit 1
"""
_RUNS_WITH_WORK = f"""
select id,
       (select priority from tasks {_FIRST}) as urgency,
       (select created_at from tasks {_FIRST}) as oldest
  from runs
 where {GOES_ON}
   and (exists (select 1 from tasks where run_id = runs.id and {_PENDING})
        or exists (select 1 from tasks where run_id = runs.id and state = 'running')
        or exists (select 1 from schedules where run_id = runs.id and next_at <= :now))
 order by urgency desc nulls last, oldest, id
"""


def spelled_tag(tag: str) -> str:
    """Spell a tag as `TAGGED` looks for it."""
    return f",{to_json(tag)},"


def narrowed(wanted: "dict[str, str | None]") -> "dict[str, str]":
    """Give what a claim asks for, as it is bound."""
    return {name: value for name, value in wanted.items() if value is not None}


def _ready(asked: "tuple[str, ...]", of_run: str | None, due: str = _DUE) -> str:
    """Write where to look for a ready task with an id, group, role or tag, for a worker or any, of a run or any.

    Each is found by an index of its own, in the order in which tasks are given out. With a tag it is that of `ready_tags`, in
    which the tags of each task that can be claimed stand.
    """
    more = "".join(f" and tasks.{name} = :{name}" for name in asked if name in ("id", "group_id", "role"))
    if "worker" in asked:
        more += f" and {FOR_WORKER}"
    table = "ready_tags" if "tag" in asked else "tasks"
    if of_run is not None:
        more += f" and {table}.run_id = {of_run}"
    if table == "tasks":
        return f"tasks where {_PENDING} and {due}{more}"
    # Crossed, so that SQLite goes from the tags to the tasks, and never the other way.
    tagged = "ready_tags.tag = :tag and tasks.id = ready_tags.task_id"
    return f"ready_tags cross join tasks where {tagged} and {_PENDING} and {due}{more}"


@cache
def is_ready(asked: "tuple[str, ...]") -> str:
    """Write the query that tells whether there is a task to claim."""
    goes_on = f"exists (select 1 from runs where runs.id = tasks.run_id and {GOES_ON})"
    return f"select 1 from {_ready(asked, ':run_id' if 'run_id' in asked else None)} and {goes_on} limit 1"


@cache
def first_later(asked: "tuple[str, ...]") -> str:
    """Write the query that counts a run's tasks which only wait for their time, a thousand at most, and gives the first time."""
    found = _ready(asked, ":run_id", due="not_before > :now")
    return f"select count(*), min(not_before) from (select not_before from {found} limit 1000) as few"


@cache
def is_overdue(asked: "tuple[str, ...]") -> str:
    """Write the query that tells whether there is a task whose lease is over, or a schedule whose time has come."""
    more = "".join(f" and {TAGGED if name == 'tag' else f'tasks.{name} = :{name}'}" for name in asked if name != "worker")
    if "worker" in asked:
        more += f" and {FOR_WORKER}"
    of_run = " and schedules.run_id = :run_id" if "run_id" in asked else ""
    return f"""
    select 1 from tasks join runs on runs.id = tasks.run_id and {GOES_ON}
     where state = 'running' and leased_until < :steady_now{more}
    union all
    select 1 from schedules join runs on runs.id = schedules.run_id and {GOES_ON} where next_at <= :now{of_run}
     limit 1
    """


@cache
def is_assigned(asked: "tuple[str, ...]") -> str:
    """Write the query that tells whether any task is meant for somebody."""
    of_run = " and run_id = :run_id" if "run_id" in asked else ""
    return f"select 1 from tasks where assigned_to is not null{of_run} limit 1"


def look(db: "Database", asked: "dict[str, str]", times: "dict[str, datetime]") -> tuple[bool, bool]:
    """Tell whether there may be a task for whoever asks, and whether whatever there is may be anybody's."""
    bound, _ = db.values.bind({**asked, **times})
    is_shared = db.one(is_assigned(tuple(asked)), bound) is None
    if db.one(is_ready(tuple(asked)), bound) is not None:
        return True, is_shared
    if "tag" in bound:
        bound["tag"] = spelled_tag(bound["tag"])
    return db.one(is_overdue(tuple(asked)), bound) is not None, is_shared


def runs_with_work(db: "Database", worker: str, now: "datetime") -> list[str]:
    """Name the runs that go on and have tasks that are ready, running or due, in order of what each would give out first."""
    bound, _ = db.values.bind({"worker": worker, "now": now})
    return [row[0] for row in db.rows(_RUNS_WITH_WORK, bound)[1]]


@cache
def take_next(asked: "tuple[str, ...]") -> str:
    """Write the update that takes the most urgent, oldest task that is ready, of those with a group, role or tag."""
    order = "priority desc, tasks.created_at, id"
    if "tag" in asked:
        order = "ready_tags.rank, ready_tags.created_at, ready_tags.task_id"
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
      select tasks.id from {_ready((*asked, "worker"), f"(select id from runs where id = :run_id and {GOES_ON})")}
       order by {order}
       limit 1 for update skip locked
    )
      and state = 'pending'
    returning *
    """


FINISH = """
update tasks set
  state = 'done',
  outcome = 'done',
  worker = null,
  leased_until = null,
  summary = :summary,
  result = :result,
  blocker = null,
  blocker_repeats = 0,
  updated_at = :now
where id = :id and fence = :fence and state = 'running'
returning *
"""


@cache
def held_update(names: "tuple[str, ...]") -> str:
    """Write the update that changes these fields of a task which is still the worker's own."""
    assignments = ", ".join(f"{name} = :new_{name}" for name in names)
    return f"""
    update tasks set {assignments}, updated_at = :now
     where id = :id and fence = :fence and state = 'running'
    returning *
    """


class Patience:
    """How long a claim may wait, in steps short enough to notice expired leases and start times."""

    def __init__(self, seconds: float) -> None:
        import time

        self._clock = time.monotonic
        self._end = self._clock() + seconds

    def left(self) -> float:
        return min(1.0, self.whole())

    def whole(self) -> float:
        return max(0.0, self._end - self._clock())

    def over(self) -> bool:
        return self._clock() >= self._end
