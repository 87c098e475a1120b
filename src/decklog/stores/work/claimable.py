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
  and leased_until < :now
returning *
"""


# A task's tags: the list without its brackets, a comma on either side. A tag stands between commas in it, as JSON spells it.
_TAGS = "(',' || substr(tags, 2, length(tags) - 2) || ',')"
TAGGED = f"replace({_TAGS}, :tag, '') <> {_TAGS}"
# A run that is paused or over gives out no work.
GOES_ON = "(status = 'planning' or status = 'active')"


def spelled_tag(tag: str) -> str:
    """Spell a tag as `TAGGED` looks for it."""
    return f",{to_json(tag)},"


def narrowed(wanted: "dict[str, str | None]") -> "dict[str, str]":
    """Give what a claim asks for, as it is bound."""
    return {name: spelled_tag(value) if name == "tag" else value for name, value in wanted.items() if value is not None}


def condition(name: str) -> str:
    return TAGGED if name == "tag" else f"{name} = :{name}"


@cache
def take_next(asked: "tuple[str, ...]") -> str:
    """Write the update that takes the most urgent, oldest task that is ready, of those with a group, role or tag."""
    more = "".join(f" and {condition(name)}" for name in asked)
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
