"""What can be claimed: which tasks are ready, and the statements that take one and take it back."""

from functools import cache

from decklog.records import to_json

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


def spelled_tag(tag: str) -> str:
    """Spell a tag as `TAGGED` looks for it."""
    return f",{to_json(tag)},"


def narrowed(wanted: "dict[str, str | None]") -> "dict[str, str]":
    """Give what a claim asks for, as it is bound."""
    return {name: value for name, value in wanted.items() if value is not None}


def _ready(asked: "tuple[str, ...]", of_run: str | None, due: str = _DUE) -> str:
    """Write where to look for a ready task with a group, role or tag, of a run or of any, and on what conditions.

    Each is found by an index of its own, in the order in which tasks are given out. With a tag it is that of `ready_tags`, in
    which the tags of each task that can be claimed stand.
    """
    more = "".join(f" and tasks.{name} = :{name}" for name in asked if name in ("group_id", "role"))
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
def is_late(asked: "tuple[str, ...]") -> str:
    """Write the query that tells whether there is a task whose lease is over."""
    more = "".join(f" and {TAGGED if name == 'tag' else f'{name} = :{name}'}" for name in asked)
    goes_on = f"exists (select 1 from runs where runs.id = tasks.run_id and {GOES_ON})"
    return f"select 1 from tasks where state = 'running' and leased_until < :steady_now{more} and {goes_on} limit 1"


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
      select tasks.id from {_ready(asked, f"(select id from runs where id = :run_id and {GOES_ON})")}
       order by {order}
       limit 1 for update skip locked
    )
      and state = 'pending'
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
