"""Lists of runs: their filter, their order by attention or by a column, and their counts."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from decklog.core.clock import to_text
from decklog.core.errors import Invalid
from decklog.db.base import Database
from decklog.records.record import Page
from decklog.records.values import from_json, to_json
from decklog.stores.overview.run_facts import RunOverview
from decklog.stores.overview.status import Status
from decklog.stores.overview.summary import by_status

# The recorded status of finished runs; any other status is derived.
STATES = {Status.DONE: "completed", Status.FAILED: "failed", Status.CANCELLED: "cancelled"}
# The number of runs that are searched for a part of a goal, newest first: no index has it.
MOST_LOOKED_AT = 5000
_NEWEST_FIRST = "order by started_at desc, id desc"
_LATEST_END = "order by ended_at desc, id desc"
# The number of unfinished runs that are checked, newest first. Further ones are shown page by page.
MOST_GOING_ON = 200
_FIRST_GOING_ON = f"{_NEWEST_FIRST} limit {MOST_GOING_ON + 1}"
_GOING_ON = " union all ".join(
    f"select * from (select * from runs where status = '{state}' {_FIRST_GOING_ON}) {state}"
    for state in ("active", "planning", "paused")
)
# One more than a page shows, to see whether there are others: a log may have very many runs that nobody ended.
NEWEST_GOING_ON = f"select * from ({_GOING_ON}) r {_FIRST_GOING_ON}"


# A run's parent may be missing in this log if the run was imported.
NO_PARENT = "({run}.parent_run_id is null or not exists (select 1 from runs p where p.id = {run}.parent_run_id))"


@dataclass(frozen=True)
class RunFilter:
    """A filter of runs; None matches all."""

    repo: str | None = None
    branch: str | None = None
    text: str | None = None
    parent_run_id: str | None = None
    since: datetime | None = None
    until: datetime | None = None

    def fits(self, run: RunOverview) -> bool:
        """Return whether a run matches."""
        same = all(getattr(self, name) in (None, getattr(run, name)) for name in ("repo", "branch", "parent_run_id"))
        is_in_time = (self.since is None or run.started_at >= self.since) and (self.until is None or run.started_at <= self.until)
        return same and is_in_time and (self.text is None or _lowered(self.text) in _lowered(run.goal))

    def sql(self, state: str | None, place: list[str] | None, most: int) -> tuple[str, dict[str, Any]]:
        """Build the statement for matching runs, newest first, after a cursor."""
        where, bound = self._where(state, place)
        if self.text is None:
            return f"select * from runs {where} {_NEWEST_FIRST} limit {most}", bound
        looked_at = f"select * from runs {where} {_NEWEST_FIRST} limit {MOST_LOOKED_AT}"
        condition, text = self._of_text()
        return f"select * from ({looked_at}) r where {condition} {_NEWEST_FIRST} limit {most}", {**bound, **text}

    def ended(self, state: str | None, place: list[str] | None, most: int) -> tuple[str, dict[str, Any]]:
        """Build the statement for ended runs, the latest end first, after a cursor."""
        where, bound = self._where(state, place, "ended_at")
        condition, text = self._of_text()
        looked_at = f"select * from runs {where} {_LATEST_END} limit {MOST_LOOKED_AT}"
        return f"select * from ({looked_at}) r where {condition} {_LATEST_END} limit {most}", {**bound, **text}

    def counted(self) -> tuple[str, dict[str, Any]]:
        """Build the statement that counts ended runs by status, among the latest 5,000."""
        sql, bound = self.ended(None, None, MOST_LOOKED_AT)
        return f"select status, count(*) from ({sql}) c group by status", bound

    def firsts(self, state: str | None, place: list[str] | None, most: int, among: str = "runs") -> tuple[str, dict[str, Any]]:
        """Build the statement for matching runs without a parent, newest first.

        It checks at most the newest 5,000: in a log of one run with many forks the search would scan all of them.
        """
        where, bound = self._where(state, place)
        condition, text = self._of_text()
        # In the order of the inner query: another order would read all of it first.
        sql = f"""select id, started_at from (
          select id, goal, started_at, parent_run_id from {among} {where} {_NEWEST_FIRST} limit {MOST_LOOKED_AT}
        ) r where {condition} and {NO_PARENT.format(run="r")} limit {most}"""
        return sql, {**bound, **text}

    def end_of_look(self, state: str | None, place: list[str] | None) -> tuple[str, dict[str, Any]]:
        """Build the statement for the run at which such a search stopped. It returns nothing if all runs were checked."""
        where, bound = self._where(state, place)
        return f"select started_at, id from runs {where} {_NEWEST_FIRST} limit 1 offset {MOST_LOOKED_AT - 1}", bound

    def _where(self, state: str | None, place: list[str] | None, by: str = "started_at") -> tuple[str, dict[str, Any]]:
        """Build the condition for runs after a cursor, which has a time and an id."""
        given = {"status": state, "repo": self.repo, "branch": self.branch, "parent_run_id": self.parent_run_id}
        bound: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
        conditions = [f"{name} = :{name}" for name in bound]
        for name, sign, moment in (("since", ">=", self.since), ("until", "<=", self.until)):
            if moment is not None:
                conditions.append(f"started_at {sign} :{name}")
                bound[name] = to_text(moment)
        if by == "ended_at":
            conditions.append("ended_at is not null")
        if place is not None:
            conditions.append(f"({by}, id) < (:{by}, :id)")
            bound |= {by: place[0], "id": place[1]}
        return f"where {' and '.join(conditions)}" if conditions else "", bound

    def _of_text(self) -> tuple[str, dict[str, str]]:
        if self.text is None:
            return "1 = 1", {}
        pattern = _lowered(self.text).replace("!", "!!").replace("%", "!%").replace("_", "!_")
        return "lower(goal) like :text escape '!'", {"text": f"%{pattern}%"}


class RunSort(StrEnum):
    """The order of the list of runs; `attention` puts runs that need a person first."""

    ATTENTION = "attention"
    RUN = "run"
    TASKS = "tasks"
    SPENT = "spent"
    TOOK = "took"
    LAST = "last"
    STARTED = "started"


@dataclass(frozen=True)
class RunsTable:
    """A page of runs, the number of open decisions in the whole log, and the activity of the last hour by run.

    `counts` counts all matching runs by status. `is_cut` is true if there are more runs than are counted or sorted.
    """

    runs: "Page[RunOverview]"
    decisions: int
    activity: dict[str, list[int]]
    counts: dict[str, int] = field(default_factory=dict)
    is_cut: bool = False


def place_of(run: RunOverview) -> tuple[str, str]:
    """Return the position of a run in the list of all."""
    return to_text(run.started_at), run.id


def place_in(text: str, parts: int) -> list[str]:
    """Parse the cursor of a list, which has `parts` texts."""
    try:
        place = from_json(text)
    except ValueError:
        place = None
    if not isinstance(place, list) or len(place) != parts or not all(isinstance(part, str) for part in place):
        raise Invalid(f"{text!r} is not a cursor; use the `next` of the page before", field="after")
    return place


def _lowered(text: str) -> str:
    """Convert ASCII letters to lower case, as both engines do."""
    return "".join(letter.lower() if letter.isascii() else letter for letter in text)


Look = Callable[[str, Mapping[str, Any]], list[RunOverview]]

# Attention first; finished runs follow, the latest first.
ORDER = (*(Status.NEEDS_ATTENTION, Status.RUNNING, Status.STALLED, Status.BLOCKED, Status.WAITING, Status.IDLE, Status.PAUSED),)
_WORDS = {state: word for word, state in STATES.items()}
# Sorting by a column includes this number of finished runs.
MOST_SORTED = 200


def attention_first(
    look: Look, word: Status | None, wanted: RunFilter, size: int, after: str | None
) -> tuple[Page[RunOverview], list[RunOverview]]:
    """Load a page in the order of attention. Return it with all unfinished runs."""
    phase, *place = place_in(after, 3) if after is not None else ("going", "0", "")
    offset = _offset(place[0]) if phase == "going" else 0
    going, ended, _ = _both(look, word, wanted, place if phase == "ended" else None, size + 1)
    live = sorted((run for run in going if word in (None, run.status)), key=_urgency)[offset:] if phase == "going" else []
    page = [*live, *ended][:size]
    if len(live) > size:
        following = ("going", str(offset + size), "")
    elif len(live) + len(ended) > size:
        # If no finished run fits on this page, the next page begins with the first of them.
        over = [run for run in page if run.ended_at is not None]
        following = ("ended", to_text(over[-1].ended_at), over[-1].id) if over else ("ended", "~", "")  # type: ignore[arg-type]
    else:
        following = None
    return Page(page, next=None if following is None else to_json(following)), going


def by_column(
    look: Look,
    word: Status | None,
    wanted: RunFilter,
    size: int,
    after: str | None,
    sort: RunSort,
    *,
    descending: bool,
) -> tuple[Page[RunOverview], list[RunOverview], bool]:
    """Load a page sorted by a column, from unfinished runs and the latest 200 finished ones. Also return if there are more."""
    offset = _offset(place_in(after, 1)[0]) if after is not None else 0
    going, ended, is_cut = _both(look, word, wanted, None, MOST_SORTED)
    found = [*(run for run in going if word in (None, run.status)), *ended]
    found.sort(key=lambda run: run.id)
    found.sort(key=lambda run: _value(run, sort), reverse=descending)
    rest = found[offset:]
    return Page(rest[:size], next=to_json([str(offset + size)]) if len(rest) > size else None), going, is_cut


def _both(
    look: Look, word: Status | None, wanted: RunFilter, place: list[str] | None, most: int
) -> tuple[list[RunOverview], list[RunOverview], bool]:
    """Load all unfinished runs, which are few, and a part of the finished ones, in one query."""
    sql, bound = NEWEST_GOING_ON, dict[str, str]()
    if word is None or word in STATES:
        over, bound = wanted.ended(STATES[word] if word else None, place, most)
        sql = f"select * from ({sql}) g union all select * from ({over}) e"
    runs = look(sql, bound)
    going = [run for run in runs if run.ended_at is None and run.status not in STATES]
    ended = sorted((run for run in runs if run.ended_at is not None), key=_end, reverse=True)
    return [run for run in going[:MOST_GOING_ON] if wanted.fits(run)], ended, len(going) > MOST_GOING_ON or len(ended) == most


def counts(db: Database, wanted: RunFilter, going: Sequence[RunOverview]) -> tuple[dict[str, int], bool]:
    """Count runs by status. Also return whether there are more finished runs than counted."""
    sql, given = wanted.counted()
    over = {_WORDS[state].value: count for state, count in db.rows(sql, db.values.bind(given)[0])[1]}
    return by_status(going) | over, sum(over.values()) >= MOST_LOOKED_AT


def _offset(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) < 6):
        raise Invalid(f"{text!r} is not a place in the list; use the `next` of the page before", field="after")
    return int(text)


def _urgency(run: RunOverview) -> tuple[int, float, str]:
    return ORDER.index(run.status), -run.last_at.timestamp(), run.id


def _end(run: RunOverview) -> tuple[str, str]:
    return to_text(run.ended_at) if run.ended_at else "", run.id


def _value(run: RunOverview, sort: RunSort) -> Any:
    match sort:
        case RunSort.RUN:
            return run.goal.casefold()
        case RunSort.TASKS:
            return run.done / run.planned if run.planned else -1.0
        case RunSort.SPENT:
            return run.cost_microdollars
        case RunSort.TOOK:
            return (run.ended_at or run.last_at) - run.started_at
        case RunSort.LAST:
            return run.last_at
    return run.started_at
