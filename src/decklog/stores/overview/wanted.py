"""Which runs a list is to have."""

from datetime import datetime

from decklog.clock import to_text
from decklog.dataclass import dataclass
from decklog.errors import Invalid
from decklog.values import from_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from decklog.records import Page
    from decklog.stores.overview.run_facts import RunOverview

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


@dataclass(frozen=True)
class Wanted:
    """What is asked of runs; None asks nothing."""

    repo: str | None = None
    branch: str | None = None
    text: str | None = None
    parent_run_id: str | None = None
    since: datetime | None = None
    until: datetime | None = None

    def fits(self, run: "RunOverview") -> bool:
        """Tell whether a run is one of those."""
        same = all(getattr(self, name) in (None, getattr(run, name)) for name in ("repo", "branch", "parent_run_id"))
        is_in_time = (self.since is None or run.started_at >= self.since) and (self.until is None or run.started_at <= self.until)
        return same and is_in_time and (self.text is None or _lowered(self.text) in _lowered(run.goal))

    def sql(self, state: str | None, place: "list[str] | None", most: int) -> "tuple[str, dict[str, Any]]":
        """Write the statement that gives them, newest first, after a place in the list."""
        conditions, bound = self._conditions(state)
        if place is not None:
            conditions.append("(started_at, id) < (:started_at, :id)")
            bound |= {"started_at": place[0], "id": place[1]}
        where = f"where {' and '.join(conditions)}" if conditions else ""
        if self.text is None:
            return f"select * from runs {where} {_NEWEST_FIRST} limit {most}", bound
        looked_at = f"select * from runs {where} {_NEWEST_FIRST} limit {MOST_LOOKED_AT}"
        pattern = _lowered(self.text).replace("!", "!!").replace("%", "!%").replace("_", "!_")
        sql = f"select * from ({looked_at}) r where lower(goal) like :text escape '!' {_NEWEST_FIRST} limit {most}"
        return sql, {**bound, "text": f"%{pattern}%"}

    def _conditions(self, state: str | None) -> "tuple[list[str], dict[str, Any]]":
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


def place_of(run: "RunOverview") -> "tuple[str, str]":
    """Say where a run stands in the list of all."""
    return to_text(run.started_at), run.id


def place_in(text: str, parts: int) -> "list[str]":
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
