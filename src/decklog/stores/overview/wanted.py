"""Which runs a list is to have."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from decklog.core.clock import to_text
from decklog.core.errors import Invalid
from decklog.records.record import Page
from decklog.records.values import from_json
from decklog.stores.overview.run_facts import RunOverview
from decklog.stores.overview.status import Status

# What the words for runs that are over are recorded as; all others are made of what goes on.
STATES = {Status.DONE: "completed", Status.FAILED: "failed", Status.CANCELLED: "cancelled"}
# A part of a goal is looked for in so many runs, the newest first: no index has it.
MOST_LOOKED_AT = 5000
_NEWEST_FIRST = "order by started_at desc, id desc"
# So many runs that go on are looked at, the newest first; whoever has more of them reads them page by page.
MOST_GOING_ON = 200
_FIRST_GOING_ON = f"{_NEWEST_FIRST} limit {MOST_GOING_ON + 1}"
_GOING_ON = " union all ".join(
    f"select * from (select * from runs where status = '{state}' {_FIRST_GOING_ON}) {state}"
    for state in ("active", "planning", "paused")
)
# Going on as far as one page shows, and one more that says whether there are others: a log may have very many that nobody ended.
NEWEST_GOING_ON = f"select * from ({_GOING_ON}) r {_FIRST_GOING_ON}"


# A run may name one that this log does not have: it came from elsewhere.
NO_PARENT = "({run}.parent_run_id is null or not exists (select 1 from runs p where p.id = {run}.parent_run_id))"


@dataclass(frozen=True)
class RunFilter:
    """What is asked of runs; None asks nothing."""

    repo: str | None = None
    branch: str | None = None
    text: str | None = None
    parent_run_id: str | None = None
    since: datetime | None = None
    until: datetime | None = None

    def fits(self, run: RunOverview) -> bool:
        """Return whether a run is one of those."""
        same = all(getattr(self, name) in (None, getattr(run, name)) for name in ("repo", "branch", "parent_run_id"))
        is_in_time = (self.since is None or run.started_at >= self.since) and (self.until is None or run.started_at <= self.until)
        return same and is_in_time and (self.text is None or _lowered(self.text) in _lowered(run.goal))

    def sql(self, state: str | None, place: list[str] | None, most: int) -> tuple[str, dict[str, Any]]:
        """Write the statement that gives them, newest first, after a place in the list."""
        where, bound = self._where(state, place)
        if self.text is None:
            return f"select * from runs {where} {_NEWEST_FIRST} limit {most}", bound
        looked_at = f"select * from runs {where} {_NEWEST_FIRST} limit {MOST_LOOKED_AT}"
        condition, text = self._of_text()
        return f"select * from ({looked_at}) r where {condition} {_NEWEST_FIRST} limit {most}", {**bound, **text}

    def firsts(self, state: str | None, place: list[str] | None, most: int, among: str = "runs") -> tuple[str, dict[str, Any]]:
        """Write the statement that names those of them that came of no other run, newest first.

        It looks at the newest 5,000 at most: in a log of one run and its many forks all of them could be looked at in vain.
        """
        where, bound = self._where(state, place)
        condition, text = self._of_text()
        # In the order of the query inside: with one of its own, all of that would be read first.
        sql = f"""select id, started_at from (
          select id, goal, started_at, parent_run_id from {among} {where} {_NEWEST_FIRST} limit {MOST_LOOKED_AT}
        ) r where {condition} and {NO_PARENT.format(run="r")} limit {most}"""
        return sql, {**bound, **text}

    def end_of_look(self, state: str | None, place: list[str] | None) -> tuple[str, dict[str, Any]]:
        """Write the statement that says at which run such a look ended; none where it saw all of them."""
        where, bound = self._where(state, place)
        return f"select started_at, id from runs {where} {_NEWEST_FIRST} limit 1 offset {MOST_LOOKED_AT - 1}", bound

    def _where(self, state: str | None, place: list[str] | None) -> tuple[str, dict[str, Any]]:
        conditions, bound = self._conditions(state)
        if place is not None:
            conditions.append("(started_at, id) < (:started_at, :id)")
            bound |= {"started_at": place[0], "id": place[1]}
        return f"where {' and '.join(conditions)}" if conditions else "", bound

    def _of_text(self) -> tuple[str, dict[str, str]]:
        if self.text is None:
            return "1 = 1", {}
        pattern = _lowered(self.text).replace("!", "!!").replace("%", "!%").replace("_", "!_")
        return "lower(goal) like :text escape '!'", {"text": f"%{pattern}%"}

    def _conditions(self, state: str | None) -> tuple[list[str], dict[str, Any]]:
        given = {"status": state, "repo": self.repo, "branch": self.branch, "parent_run_id": self.parent_run_id}
        bound: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
        conditions = [f"{name} = :{name}" for name in bound]
        for name, sign, moment in (("since", ">=", self.since), ("until", "<=", self.until)):
            if moment is not None:
                conditions.append(f"started_at {sign} :{name}")
                bound[name] = to_text(moment)
        return conditions, bound


@dataclass(frozen=True)
class RunsTable:
    """A page of runs, how many decisions wait in the whole log, and how busy the last hour was of those that had one."""

    runs: "Page[RunOverview]"
    decisions: int
    pulse: dict[str, list[int]]


def place_of(run: RunOverview) -> tuple[str, str]:
    """Return where a run stands in the list of all."""
    return to_text(run.started_at), run.id


def place_in(text: str, parts: int) -> list[str]:
    """Read where a page of a list ended, which is told by so many texts."""
    try:
        place = from_json(text)
    except ValueError:
        place = None
    if not isinstance(place, list) or len(place) != parts or not all(isinstance(part, str) for part in place):
        raise Invalid(f"{text!r} is not a cursor; use the `next` of the page before", field="after")
    return place


def _lowered(text: str) -> str:
    """Write the letters of ASCII small, as both engines do."""
    return "".join(letter.lower() if letter.isascii() else letter for letter in text)
