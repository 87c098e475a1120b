"""The tasks of a run as columns: to do, doing, blocked or paused, and finished, each with its first cards and its count."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from decklog.core.clock import from_text
from decklog.db.base import Database
from decklog.db.where import placed
from decklog.stores.overview.run_list import MOST_GOING_ON, NEWEST_GOING_ON
from decklog.stores.overview.status import Status, of_task
from decklog.stores.overview.view import View
from decklog.stores.results.overview import Workload

_CARD = (
    *("id", "title", "state", "priority", "role", "worker", "leased_until", "not_before", "open_dependencies", "attempts"),
    *("failures", "max_attempts", "stage", "assigned_to", "reason", "blocker", "created_at", "updated_at"),
)
_SELECT = f"select {{rank}} as rank, {', '.join(f't.{name}' for name in _CARD)} from tasks t"
_OF_RUN = "where t.run_id = :run_id and"
_STOPPED = "t.state = 'blocked' or t.state = 'waiting' or t.state = 'paused'"
_BY_URGENCY = "order by t.priority desc, t.created_at, t.id limit :most"
# Unassigned and assigned tasks are in separate index ranges; the first of both together are the first of the column.
_PENDING = f"{_SELECT.format(rank=0)} {_OF_RUN} t.state = 'pending' and t.open_dependencies = 0"
_READY = " union all ".join(
    f"select * from ({_PENDING} and {whose} {_BY_URGENCY}) {name}"
    for name, whose in {"anybodys": "coalesce(t.assigned_to, '') = ''", "assigned": "t.assigned_to is not null"}.items()
)
# Each column uses a separate index. Finished tasks have none, and are found by their last entries.
_CARDS = " union all ".join(
    f"select * from ({part}) {name}"
    for name, part in {
        "ready": f"select * from ({_READY}) t {_BY_URGENCY}",
        "dependent": f"{_SELECT.format(rank=1)} {_OF_RUN} t.state = 'pending' and t.open_dependencies > 0 {_BY_URGENCY}",
        "doing": f"{_SELECT.format(rank=2)} {_OF_RUN} t.state = 'running' order by t.leased_until limit :most",
        "blocked_or_paused": f"{_SELECT.format(rank=3)} {_OF_RUN} ({_STOPPED}) {_BY_URGENCY}",
        "over": f"""
            {_SELECT.format(rank=4)}
              join run_moments m on t.id = m.record_id
             where m.run_id = :run_id and m.what = 'ended' and m.seq <= :since and (t.state = 'done' or t.state = 'abandoned')
             order by m.seq desc
             limit :most
        """,
        "just_over": f"{_SELECT.format(rank=5)} where t.id in ({{ids}}) and (t.state = 'done' or t.state = 'abandoned')",
    }.items()
)
_WAITS_FOR = """
select d.task_id, t.title, t.state
  from dependencies d
  join tasks t on t.id = d.depends_on
 where d.task_id in ({ids}) and d.kind = 'blocks' and t.state <> 'done'
 order by d.task_id, d.depends_on
 limit 500
"""
COLUMNS = {"to_do": (0, 1), "doing": (2,), "blocked_or_paused": (3,), "over": (5, 4)}
_COUNTED = {
    "to_do": ("pending",),
    "doing": ("running",),
    "blocked_or_paused": ("blocked", "waiting", "paused"),
    "over": ("done", "abandoned"),
}


@dataclass(frozen=True, kw_only=True)
class BoardCard(View):
    """A task on a board: its status, its worker, the rest of its lease, and why nobody works on it."""

    id: str
    title: str
    status: Status
    state: str
    priority: int
    attempts: int
    failures: int
    max_attempts: int
    updated_at: datetime
    role: str | None = None
    worker: str | None = None
    stage: str | None = None
    assigned_to: str | None = None
    lease_seconds_left: int | None = None
    why: str | None = None


@dataclass(frozen=True, kw_only=True)
class BoardColumn(View):
    """One column: its first cards, and the number of all."""

    name: str
    count: int
    cards: list[BoardCard]


def columns(db: Database, run_id: str, size: int, story: Any, base: Any) -> list[BoardColumn]:
    """Load the columns. `story` is the run's history, with the tasks that ended after its mark.

    `base` is what every overview starts with.
    """
    just_over = list(dict.fromkeys(one.record_id for one in reversed(story.moments) if one.what == "ended"))[:size]
    marks, ids = placed(just_over)
    bound = {"run_id": run_id, "most": size, "since": story.since, **ids}
    rows = db.rows(_CARDS.format(ids=marks), bound)[1]
    if just_over:
        place = {task_id: number for number, task_id in enumerate(just_over)}
        rows.sort(key=lambda row: place.get(row[1], -1) if row[0] == 5 else -1)
    waits_for = _waits_for(db, [row[1] for row in rows if row[0] == 1])
    found, waiting = list[BoardColumn](), base.tasks
    for name, ranks in COLUMNS.items():
        wanted = list({row[1]: row for rank in ranks for row in rows if row[0] == rank}.values())[:size]
        cards = [_card(dict(zip(_CARD, row[1:], strict=True)), waits_for, waiting, base) for row in wanted]
        found.append(BoardColumn(name=name, count=sum(story.tally[state] for state in _COUNTED[name]), cards=cards))
    return found


def _waits_for(db: Database, ids: Sequence[str]) -> dict[str, list[str]]:
    if not ids:
        return {}
    marks, bound = placed(ids)
    found: dict[str, list[str]] = {}
    for task_id, title, state in db.rows(_WAITS_FOR.format(ids=marks), bound)[1]:
        found.setdefault(task_id, []).append(f"{title} ({state})")
    return found


def _card(task: dict[str, Any], waits_for: Mapping[str, list[str]], waiting: set[str | None], base: Any) -> BoardCard:
    until = from_text(task["leased_until"]) if task["leased_until"] else None
    left = None if until is None else round((until - base.steady_now).total_seconds())
    status = of_task(task, needs_person=task["id"] in waiting, steady_now=base.steady_now)
    same = ("id", "title", "state", "priority", "attempts", "failures", "max_attempts", "role", "worker", "stage", "assigned_to")
    return BoardCard(
        **{name: task[name] for name in same},
        status=status,
        updated_at=from_text(task["updated_at"]),
        lease_seconds_left=left,
        why=_why(task, waits_for.get(task["id"], []), left, base.now),
    )


def _why(task: Mapping[str, Any], waits_for: Sequence[str], left: int | None, now: datetime) -> str | None:
    """Return in words why nobody works on a task; None if somebody does or could."""
    if task["state"] in ("done", "abandoned"):
        return task["reason"] if task["state"] == "abandoned" else None
    if left is not None:
        return f"the lease of {task['worker']} ended" if left < 0 else None
    if task["state"] != "pending":
        return str(task["reason"] or task["blocker"] or task["state"])
    if task["open_dependencies"]:
        return f"waits for {', '.join(waits_for[:3])}" + (f" and {len(waits_for) - 3} more" if len(waits_for) > 3 else "")
    if task["not_before"] and from_text(task["not_before"]) > now:
        return f"not before {from_text(task['not_before']):%Y-%m-%d %H:%M} UTC"
    return f"is for {task['assigned_to']}" if task["assigned_to"] else None


# Counts stop at this number.
MOST = 1000
FIELDS = ("to_do", "working", "blocked_or_paused", "failed", "groups", "failed_groups")
_WHOSE = "run_id in (select id from going)"
# Each part uses a separate index, without finished tasks.
_PARTS = (
    f"select 'to_do' as what, role as who from tasks where {_WHOSE} and state = 'pending' and open_dependencies = 0",
    f"select 'to_do' as what, role as who from tasks where {_WHOSE} and state = 'pending' and open_dependencies > 0",
    # In the order of the index of running tasks: otherwise SQLite scans all tasks of these runs.
    f"""select 'working' as what, coalesce(role, worker) as who
          from tasks
         where {_WHOSE} and state = 'running'
         order by run_id, leased_until""",
    # A task without attempts left has failed; any other blocked task is blocked.
    f"""select case when state = 'blocked' and failures >= max_attempts then 'failed' else 'blocked_or_paused' end as what,
               role as who
          from tasks
         where {_WHOSE} and (state = 'blocked' or state = 'waiting' or state = 'paused')""",
    f"""select 'groups' as what, assigned_to as who
          from groups
         where status in ('pending', 'in_progress', 'approved_pending_merge', 'merging') and {_WHOSE}""",
    f"select 'failed_groups' as what, assigned_to as who from groups where status = 'failed' and {_WHOSE}",
)
_WORKLOAD = "select what, coalesce(who, '') as who, count(*) from ({part} limit {most}) {name} group by 1, 2"


def workloads(db: Database) -> list[Workload]:
    """Count the work of each role with one statement."""
    parts = [_WORKLOAD.format(part=part, most=MOST, name=f"p{number}") for number, part in enumerate(_PARTS)]
    sql = f"with going as (select id from ({NEWEST_GOING_ON}) g limit {MOST_GOING_ON}) {' union all '.join(parts)}"
    counts: dict[str, dict[str, int]] = {}
    for what, who, count in db.rows(sql, {})[1]:
        counts.setdefault(who, dict.fromkeys(FIELDS, 0))[what] += count
    return [{"who": who or None, **found} for who, found in sorted(counts.items())]  # type: ignore[typeddict-item]
