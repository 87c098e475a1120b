"""Runs as an overview shows them: status, last entry, workers, task counts and spending."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from decklog.core.clock import from_text
from decklog.core.display import one_line, shorten
from decklog.db.base import Database
from decklog.db.where import placed
from decklog.journal.rows import STREAM_SIZE
from decklog.stores.overview import task_counts
from decklog.stores.overview.status import Status, of_run, silence_of
from decklog.stores.overview.view import View

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
class RunOverview(View):
    """A run as a row of a list: `status` is its derived status, `state` the recorded one."""

    shown = ("workers",)

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


class OverviewOutdated(Exception):
    """The marks of some runs are far behind. The caller moves them and reads again."""

    def __init__(self, run_ids: list[str]) -> None:
        super().__init__(run_ids)
        self.run_ids = run_ids


@dataclass(frozen=True, kw_only=True)
class OverviewMoment:
    """The time of an overview, whether it may move marks that are far behind, and the number of items that hold up each run."""

    now: datetime
    steady_now: datetime
    can_move_marks: bool
    waiting: dict[str, int]


def load_runs(db: Database, runs: str, bound: Mapping[str, Any], moment: OverviewMoment) -> list[RunOverview]:
    """Load the runs of a statement as an overview shows them. Raise `OverviewOutdated` if marks must be moved first."""
    facts = [dict(zip(_COLUMNS, row, strict=True)) for row in db.rows(_FACTS.format(runs=runs), bound)[1]]
    ids = [fact["id"] for fact in facts]
    behind = task_counts.behind({fact["id"]: fact["seq"] - fact["mark"] for fact in facts})
    if behind and moment.can_move_marks:
        raise OverviewOutdated(behind)
    if behind:
        counts = task_counts.counted(db, ids)
    else:
        counts = {fact["id"]: {name: fact[name] for name in task_counts.FIELDS} for fact in facts}
        # The positions of the entries after each run's mark.
        later = [(fact["no"] * STREAM_SIZE, fact) for fact in facts if fact["seq"] > fact["mark"]]
        task_counts.add_later(db, counts, [(start + fact["mark"], start + fact["seq"]) for start, fact in later])
    at_work = [run_id for run_id in ids if counts[run_id]["running"]]
    leases = _leases(db, at_work) if at_work else {}
    return [_overview(fact, counts[fact["id"]], leases, moment) for fact in facts]


def load_run(db: Database, run_id: str, counts: Mapping[str, int], moment: OverviewMoment) -> RunOverview:
    """Load one run whose task counts are known already."""
    rows = db.rows(_ONE, {"run_id": run_id})[1]
    fact = dict(zip(_COLUMNS, rows[0], strict=False))
    leases = sorted((tuple(row[len(_COLUMNS) :]) for row in rows if row[-1] is not None), key=lambda lease: lease[-1])
    tasks = {name: counts[name] for name in task_counts.FIELDS}
    return _overview(fact, tasks, {run_id: leases}, moment, _SHOWN_OF_ONE)


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
    shown_tasks: int = _SHOWN_TASKS,
) -> RunOverview:
    leases, last_at = all_leases.get(fact["id"], ()), from_text(fact["at"])
    ends = [from_text(lease[5]) for lease in leases]
    # The average time between the latest entries.
    gap = timedelta()
    if fact["earlier_at"] is not None:
        gap = (last_at - from_text(fact["earlier_at"])) / max(1, fact["seq"] - fact["earlier_seq"])
    needs_person, silent = moment.waiting.get(fact["id"], 0), moment.now - last_at
    steady_now = moment.steady_now
    status = of_run(
        fact["state"], needs_person=needs_person > 0, leases=ends, counts=counts, silent=silent, gap=gap, steady_now=steady_now
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
        agents=list(dict.fromkeys(lease[2] for lease, end in zip(leases, ends, strict=True) if end > steady_now)),
        working_on=[_task(lease, steady_now) for lease in leases[:shown_tasks]],
        waiting=needs_person,
        **{name: fact[name] for name in SPENT},
    )
    if status is not Status.STALLED:
        return shown
    ended = [end for end in ends if end <= steady_now]
    return replace(shown, stalled_since=min(ended, default=last_at + silence_of(gap)))


def _task(lease: Sequence[Any], steady_now: datetime) -> dict[str, object]:
    task = dict(zip(("task_id", "title", "worker", "stage", "since", "until"), lease, strict=True))
    return {**task, "lease_ended": from_text(task["until"]) <= steady_now}


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
    text = one_line(fact["body"] or "")
    if table := fact["record_table"]:
        what = (text and _DEEDS.get((table, what))) or f"{table} {what}"
    said = f"{what}: {text}" if text else str(what)
    return shorten(said, _SHOWN_CHARACTERS)
