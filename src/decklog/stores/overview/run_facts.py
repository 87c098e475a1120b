"""Runs as an overview shows them: status, last entry, workers, task counts and spending."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from decklog.core.clock import from_text, to_text
from decklog.core.errors import Invalid
from decklog.db.base import Database
from decklog.db.where import placed
from decklog.journal.rows import STREAM_SIZE
from decklog.records.record import Page
from decklog.records.values import from_json
from decklog.stores.overview import task_counts
from decklog.stores.overview.status import Status, of_run, silence_of

# A run's usual gap between entries is the average of its last hundred.
_LOOK_BACK = 100
# The number of running tasks that a list of runs shows for each, and the page of one run.
_SHOWN_TASKS, _SHOWN_OF_ONE = 3, 20
_MOST_LEASES = 1000
_SHOWN_CHARACTERS = 120
SPENT = ("calls", "cost_microdollars", "unpriced_calls")
_FACTS = f"""
select s.no, r.id, r.goal, r.status, r.repo, r.branch, r.parent_run_id, r.parent_seq, r.summary, r.started_at, r.ended_at,
       s.head_seq, s.head_at, h.kind, h.subtype, h.agent, h.record_table, h.record_id, substr(h.body, 1, 400),
       b.seq, b.at, coalesce(t.seq, 0),
       {", ".join(f"coalesce(t.{name}, 0)" for name in task_counts.FIELDS)},
       {", ".join(f"(select cast(coalesce(sum({name}), 0) as bigint) from spend_days where run_id = r.id)" for name in SPENT)}
  from ({{runs}}) r
  join all_stream_heads s on s.name = r.id
  -- The entries of an archived run are in a file.
  left join entries h on h.pos = s.head_pos
  -- The pace of entries decides whether an active run is stalled.
  left join entries b on b.pos = case
         when r.status = 'completed' or r.status = 'failed' or r.status = 'cancelled' then null
         when h.seq > {_LOOK_BACK} then h.pos - {_LOOK_BACK}
         else s.no * {STREAM_SIZE} + 1
       end
  left join {task_counts.TABLE} t on t.run_id = r.id
 order by r.started_at desc, r.id desc
"""
_COLUMNS = (
    *("no", "id", "goal", "state", "repo", "branch", "parent_run_id", "parent_seq", "summary", "started_at", "ended_at"),
    *("seq", "at", "kind", "subtype", "agent", "record_table", "record_id", "body"),
    *("earlier_seq", "earlier_at", "mark"),
    *(*task_counts.FIELDS, *SPENT),
)
# Find the tasks before the join, in the order of the index of running tasks: otherwise SQLite scans all tasks of the run.
_ONE = f"""
select f.*, t.id, t.title, t.worker, t.stage, t.leased_at, t.leased_until
  from ({_FACTS.format(runs="select * from runs where id = :run_id")}) f
  left join (
    select id, title, worker, stage, leased_at, leased_until
      from tasks
     where run_id = :run_id and state = 'running'
     order by leased_until
     limit {_MOST_LEASES}
  ) t on true
"""
_LEASES = f"""
select run_id, id, title, worker, stage, leased_at, leased_until
  from tasks
 where state = 'running' and run_id in ({{marks}})
 order by run_id, leased_until
 limit {_MOST_LEASES}
"""
_PLANNED = tuple(name for name in task_counts.STATES if name != "abandoned")


@dataclass(frozen=True, kw_only=True)
class RunOverview:
    """A run as a row of a list: `status` is its derived status, `state` the recorded one."""

    id: str
    goal: str
    status: Status
    state: str
    started_at: datetime
    entries: int
    last_at: datetime
    last_by: str | None
    last_said: str
    tasks: dict[str, int]
    repo: str | None = None
    branch: str | None = None
    parent_run_id: str | None = None
    parent_seq: int | None = None
    summary: str | None = None
    ended_at: datetime | None = None
    stalled_since: datetime | None = None
    # The agents with a live lease, without duplicates.
    agents: list[str] = field(default_factory=list)
    working_on: list[dict[str, object]] = field(default_factory=list)
    waiting: int = 0
    cost_microdollars: int = 0
    calls: int = 0
    unpriced_calls: int = 0

    @property
    def planned(self) -> int:
        """The number of its tasks without abandoned ones."""
        tasks = self.tasks
        return sum([tasks[name] for name in _PLANNED])

    @property
    def workers(self) -> int:
        """The number of agents with a live lease."""
        return len(self.agents)

    @property
    def done(self) -> int:
        return self.tasks["done"]

    def as_dict(self) -> dict[str, Any]:
        values = {name: to_text(value) if isinstance(value, datetime) else value for name, value in vars(self).items()}
        return {**values, "status": self.status.value, "workers": self.workers}


class OverviewOutdated(Exception):
    """The marks of some runs are far behind. The caller moves them and reads again."""

    def __init__(self, run_ids: list[str]) -> None:
        super().__init__(run_ids)
        self.run_ids = run_ids


@dataclass(frozen=True, kw_only=True)
class OverviewMoment:
    """The time of an overview, and whether it may move marks that are far behind."""

    now: datetime
    steady_now: datetime
    can_move_marks: bool


def look(
    db: Database, runs: str, bound: Mapping[str, Any], moment: OverviewMoment, waiting: Mapping[str, int]
) -> list[RunOverview]:
    """Load the runs of a statement as an overview shows them. Raise `OverviewOutdated` if marks must be moved first."""
    facts = _facts(db, runs, bound)
    ids = [fact["id"] for fact in facts]
    behind = task_counts.behind({fact["id"]: fact["seq"] - fact["mark"] for fact in facts})
    if behind and moment.can_move_marks:
        raise OverviewOutdated(behind)
    if behind:
        counts = task_counts.counted(db, ids)
    else:
        counts = {fact["id"]: {name: fact[name] for name in task_counts.FIELDS} for fact in facts}
        task_counts.add_later(db, counts, _spans(facts))
    at_work = [run_id for run_id in ids if counts[run_id]["running"]]
    leases = _leases(db, at_work) if at_work else {}
    return [_overview(fact, counts[fact["id"]], leases, moment, waiting) for fact in facts]


def look_at_one(
    db: Database, run_id: str, counts: Mapping[str, int], moment: OverviewMoment, waiting: Mapping[str, int]
) -> RunOverview:
    """Load one run whose task counts are known already."""
    rows = db.rows(_ONE, {"run_id": run_id})[1]
    fact = dict(zip(_COLUMNS, rows[0], strict=False))
    leases = sorted((tuple(row[len(_COLUMNS) :]) for row in rows if row[-1] is not None), key=lambda lease: lease[-1])
    tasks = {name: counts[name] for name in task_counts.FIELDS}
    return _overview(fact, tasks, {run_id: leases}, moment, waiting, _SHOWN_OF_ONE)


def _facts(db: Database, runs: str, bound: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [dict(zip(_COLUMNS, row, strict=True)) for row in db.rows(_FACTS.format(runs=runs), bound)[1]]


def _spans(facts: Sequence[dict[str, Any]]) -> list[tuple[int, int]]:
    """Return the positions of the entries after each run's mark."""
    starts = [(fact["no"] * STREAM_SIZE, fact) for fact in facts if fact["seq"] > fact["mark"]]
    return [(start + fact["mark"], start + fact["seq"]) for start, fact in starts]


def _leases(db: Database, ids: Sequence[str]) -> dict[str, list[tuple[Any, ...]]]:
    """Load the leases of some runs."""
    marks, bound = placed(ids)
    found: dict[str, list[tuple[Any, ...]]] = {}
    for run_id, *lease in db.rows(_LEASES.format(marks=marks), bound)[1]:
        found.setdefault(run_id, []).append(tuple(lease))
    return found


def _overview(
    fact: dict[str, Any],
    counts: dict[str, int],
    all_leases: Mapping[str, Sequence[tuple[Any, ...]]],
    moment: OverviewMoment,
    waiting: Mapping[str, int],
    shown_tasks: int = _SHOWN_TASKS,
) -> RunOverview:
    leases, last_at = all_leases.get(fact["id"], ()), from_text(fact["at"])
    ends = [from_text(lease[5]) for lease in leases]
    gap = _usual_gap(fact, last_at)
    needs_person, silent = waiting.get(fact["id"], 0), moment.now - last_at
    status = of_run(
        fact["state"],
        needs_person=needs_person > 0,
        leases=ends,
        counts=counts,
        silent=silent,
        gap=gap,
        steady_now=moment.steady_now,
    )
    same = ("id", "goal", "state", "repo", "branch", "parent_run_id", "parent_seq", "summary")
    shown = RunOverview(
        **{name: fact[name] for name in same},
        status=status,
        started_at=from_text(fact["started_at"]),
        ended_at=from_text(fact["ended_at"]) if fact["ended_at"] else None,
        entries=fact["seq"],
        last_at=last_at,
        last_by=fact["agent"],
        last_said=_last_line_of(fact),
        tasks=counts,
        agents=list(dict.fromkeys(lease[2] for lease, end in zip(leases, ends, strict=True) if end > moment.steady_now)),
        working_on=[_task(lease, moment.steady_now) for lease in leases[:shown_tasks]],
        waiting=needs_person,
        **{name: fact[name] for name in SPENT},
    )
    if status is not Status.STALLED:
        return shown
    ended = [end for end in ends if end <= moment.steady_now]
    return replace(shown, stalled_since=min(ended, default=last_at + silence_of(gap)))


def _usual_gap(fact: dict[str, Any], last_at: datetime) -> timedelta:
    """Return the average time between a run's latest entries."""
    if fact["earlier_at"] is None:
        return timedelta()
    entries: int = fact["seq"] - fact["earlier_seq"]
    return (last_at - from_text(fact["earlier_at"])) / max(1, entries)


def _task(lease: Sequence[Any], steady_now: datetime) -> dict[str, object]:
    task_id, title, worker, stage, leased_at, leased_until = lease
    is_over = from_text(leased_until) <= steady_now
    return {
        "task_id": task_id,
        "title": title,
        "worker": worker,
        "stage": stage,
        "since": leased_at,
        "until": leased_until,
        "lease_ended": is_over,
    }


# Names for changes of records; any other change is named by its table and subtype.
_DEEDS = {
    ("approvals", "added"): "asked",
    ("approvals", "changed"): "answered",
    ("criteria", "added"): "to be shown",
    ("criteria", "changed"): "criterion",
    ("runs", "added"): "began",
    ("runs", "changed"): "run",
    ("tasks", "added"): "planned",
    ("tasks", "changed"): "task",
}


def _last_line_of(fact: dict[str, Any]) -> str:
    """Return a run's last entry in one line."""
    if fact["kind"] is None:
        return "archived"
    what = fact["subtype"] or fact["kind"]
    text = " ".join((fact["body"] or "").split())
    if table := fact["record_table"]:
        what = (text and _DEEDS.get((table, what))) or f"{table} {what}"
    said = f"{what}: {text}" if text else str(what)
    return said if len(said) <= _SHOWN_CHARACTERS else said[: _SHOWN_CHARACTERS - 1] + "…"


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
        conditions, bound = self._conditions(state)
        conditions.append("ended_at is not null")
        if place is not None:
            conditions.append("(ended_at, id) < (:ended_at, :id)")
            bound |= {"ended_at": place[0], "id": place[1]}
        return self._of_ended(conditions, bound, "*", most)

    def counted(self) -> tuple[str, dict[str, Any]]:
        """Build the statement that counts ended runs by status, among the latest 5,000."""
        conditions, bound = self._conditions(None)
        sql, bound = self._of_ended([*conditions, "ended_at is not null"], bound, "status", MOST_LOOKED_AT)
        return f"select status, count(*) from ({sql}) c group by status", bound

    def _of_ended(self, conditions: list[str], bound: dict[str, Any], columns: str, most: int) -> tuple[str, dict[str, Any]]:
        of_text, text = self._of_text()
        looked_at = f"select * from runs where {' and '.join(conditions)} {_LATEST_END} limit {MOST_LOOKED_AT}"
        return f"select {columns} from ({looked_at}) r where {of_text} {_LATEST_END} limit {most}", {**bound, **text}

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
