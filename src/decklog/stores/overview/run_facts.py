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
from decklog.stores.overview import spending, task_counts
from decklog.stores.overview.status import Status, of_run, silence_of

# A run's usual gap between entries is the average of its last hundred.
_LOOK_BACK = 100
# The number of running tasks that a list of runs shows for each, and the page of one run.
_SHOWN_TASKS, _SHOWN_OF_ONE = 3, 20
_MOST_LEASES = 1000
_SHOWN_CHARACTERS = 120
_FACTS = f"""
select s.no, r.id, r.goal, r.status, r.repo, r.branch, r.parent_run_id, r.parent_seq, r.summary, r.started_at, r.ended_at,
       s.head_seq, s.head_at, h.kind, h.subtype, h.agent, h.record_table, h.record_id, substr(h.body, 1, 400),
       b.seq, b.at, coalesce(t.seq, 0),
       case when m.stream is null then s.head_seq else coalesce(m.seq, 0) end,
       {", ".join(f"coalesce(t.{name}, 0)" for name in task_counts.FIELDS)}
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
  -- The marks of the few streams with charges that are not added up yet; joined to the runs, all marks would be read.
  left join (
    select p.stream, k.seq
      from {spending.OPEN} p
      left join {spending.MARKS} k on k.stream = p.stream
  ) m on m.stream = r.id
 order by r.started_at desc, r.id desc
"""
_COLUMNS = (
    *("no", "id", "goal", "state", "repo", "branch", "parent_run_id", "parent_seq", "summary", "started_at", "ended_at"),
    *("seq", "at", "kind", "subtype", "agent", "record_table", "record_id", "body"),
    *("earlier_seq", "earlier_at", "mark", "spend_mark"),
    *task_counts.FIELDS,
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
# The leases, with the same number of columns as the task changes after the marks: both are loaded with one query.
_LEASES = f"""
select * from (
  select run_id, id, title, worker, stage, leased_at, leased_until
    from tasks
   where state = 'running' and run_id in ({{marks}})
   order by run_id, leased_until
   limit {_MOST_LEASES}
) leases
"""
_NO_LEASE = ", ".join(["null"] * 4)


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
    """The sums of runs or spending are outdated. The caller moves the marks and reads again."""

    def __init__(self, run_ids: list[str], *, of_spending: bool) -> None:
        super().__init__(run_ids)
        self.run_ids = run_ids
        self.of_spending = of_spending


def check_marks(streams: Sequence[spending.Charged], can_move_marks: bool) -> None:
    """Raise OverviewOutdated if the marks of spending are far behind and can be moved."""
    if can_move_marks and spending.is_far(streams):
        raise OverviewOutdated([], of_spending=True)


@dataclass(frozen=True, kw_only=True)
class OverviewMoment:
    """The time of an overview, and whether it may move marks that are far behind."""

    now: datetime
    steady_now: datetime
    can_move_marks: bool


def look(
    db: Database,
    runs: str,
    bound: Mapping[str, Any],
    moment: OverviewMoment,
    waiting: Mapping[str, int],
    *,
    with_money: bool = True,
) -> list[RunOverview]:
    """Load the runs of a statement as an overview shows them. Raise `OverviewOutdated` if marks must be moved first."""
    facts = _facts(db, runs, bound)
    ids = [fact["id"] for fact in facts]
    behind = _behind(facts, "mark", task_counts.MOST_BEHIND)
    spent_behind = with_money and bool(_behind(facts, "spend_mark", spending.MOST_BEHIND))
    if (behind or spent_behind) and moment.can_move_marks:
        raise OverviewOutdated(behind, of_spending=spent_behind)
    kept = {fact["id"]: {name: fact[name] for name in task_counts.FIELDS} for fact in facts}
    leases, moved = _leases_and_moved(db, ids if behind else _at_work(facts), [] if behind else _spans(facts, "mark"))
    counts = task_counts.counted(db, ids) if behind else task_counts.added(kept, moved)
    spent = spending.of_runs(db, ids, _spans(facts, "spend_mark")) if with_money else {}
    return [_overview(fact, counts[fact["id"]], leases, spent.get(fact["id"], {}), moment, waiting) for fact in facts]


def look_at_one(
    db: Database, run_id: str, counts: Mapping[str, int], moment: OverviewMoment, waiting: Mapping[str, int]
) -> RunOverview:
    """Load one run whose task counts and spending are known already."""
    rows = db.rows(_ONE, {"run_id": run_id})[1]
    fact = dict(zip(_COLUMNS, rows[0], strict=False))
    leases = sorted((tuple(row[len(_COLUMNS) :]) for row in rows if row[-1] is not None), key=lambda lease: lease[-1])
    tasks = {name: counts[name] for name in task_counts.FIELDS}
    return _overview(fact, tasks, {run_id: leases}, dict(counts), moment, waiting, _SHOWN_OF_ONE)


def _facts(db: Database, runs: str, bound: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [dict(zip(_COLUMNS, row, strict=True)) for row in db.rows(_FACTS.format(runs=runs), bound)[1]]


def _behind(facts: Sequence[dict[str, Any]], mark: str, most: int) -> list[str]:
    """Return the runs whose marks are too far behind to read the entries after them."""
    lags = {fact["id"]: fact["seq"] - fact[mark] for fact in facts}
    allowed = task_counts.most_behind(list(lags.values()), most)
    return [run_id for run_id, lag in lags.items() if lag > allowed]


def _spans(facts: Sequence[dict[str, Any]], mark: str) -> list[tuple[int, int]]:
    """Return the positions of the entries after each run's mark."""
    starts = [(fact["no"] * STREAM_SIZE, fact) for fact in facts if fact["seq"] > fact[mark]]
    return [(start + fact[mark], start + fact["seq"]) for start, fact in starts]


def _at_work(facts: Sequence[dict[str, Any]]) -> list[str]:
    """Return the runs that may have running tasks, by their counts or later entries. Most runs of a page are finished."""
    return [fact["id"] for fact in facts if fact["running"] or fact["seq"] > fact["mark"]]


def _leases_and_moved(
    db: Database, ids: Sequence[str], spans: Sequence[tuple[int, int]]
) -> tuple[dict[str, list[tuple[Any, ...]]], list[tuple[Any, ...]]]:
    """Load the leases, and the task changes in some ranges of entries."""
    marks, bound = placed(ids)
    rows: list[Any] = []
    for number, part in enumerate(task_counts.in_parts(spans)):
        later, places = task_counts.moved(part, _NO_LEASE)
        both = (later, places) if number else (f"{_LEASES.format(marks=marks)} union all {later}", {**bound, **places})
        rows += db.rows(*both)[1]
    leases: dict[str, list[tuple[Any, ...]]] = {}
    for run_id, *lease in rows:
        if lease[-1] is not None:
            leases.setdefault(run_id, []).append(tuple(lease))
    return leases, [row[:3] for row in rows if row[-1] is None]


def _overview(
    fact: dict[str, Any],
    counts: dict[str, int],
    all_leases: Mapping[str, Sequence[tuple[Any, ...]]],
    spent: dict[str, int],
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
        cost_microdollars=spent.get("cost_microdollars", 0),
        calls=spent.get("calls", 0),
        unpriced_calls=spent.get("unpriced_calls", 0),
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
