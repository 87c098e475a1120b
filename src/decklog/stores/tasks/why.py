"""Explains why a claim gets nothing, or why a task is in its state, as a code and in words."""

from datetime import datetime
from typing import Any

from decklog.core.clock import from_text, to_text
from decklog.core.display import counted
from decklog.core.errors import Conflict, Invalid
from decklog.db.base import Database
from decklog.stores.results.tasks import BlockingTask, ClaimExplanation, TaskExplanation
from decklog.stores.tasks.claimable import RUN_IS_ACTIVE, later_tasks_sql, ready_check_sql
from decklog.stores.tasks.task import Task, TaskState

_RUNNING = """
select count(*), min(leased_until) from (
  select leased_until from tasks where run_id = :run_id and state = 'running' limit 1000
) as few
"""
_OPEN = """
select state, count(*) from (
  select state from tasks where run_id = :run_id and state <> 'done' and state <> 'abandoned' limit 1000
) as few
group by state
"""
_UNFINISHED = """
select d.depends_on, t.state
  from dependencies d join tasks t on t.id = d.depends_on
 where d.task_id = :task_id and d.kind = 'blocks' and t.state <> 'done'
 order by d.depends_on
"""
_SCHEDULED = "select name, next_at from schedules where run_id = :run_id and next_at is not null order by next_at limit 1"


def check_run_of_task(task: Task, run_id: str | None, wanted: dict[str, str]) -> str:
    """Return the run of a task that is claimed by id. Raise an error for filters that conflict with it."""
    if any(wanted.values()):
        raise Invalid(f"a task is claimed by its id, or by {', '.join(wanted)}; give one of them", field="task_id")
    if run_id not in (None, task.run_id):
        raise Conflict(f"task {task.id} belongs to run {task.run_id}, not to {run_id}", task_id=task.id, run_id=task.run_id)
    return task.run_id


def refuse_claim(db: Database, task: Task, worker: str, times: dict[str, datetime]) -> None:
    """Raise the Conflict that explains why a worker can't claim a task by id."""
    code, reason = explain_wait(db, task, times["now"], times["steady_now"], worker)
    raise Conflict(
        f"task {task.id} can't be claimed: {reason}",
        hint="Wait for it with wait_seconds, or claim without an id to get what is ready.",
        task_id=task.id,
        state=task.state.value,
        why=code,
    )


def explain_wait(db: Database, task: Task, now: datetime, steady_now: datetime, worker: str | None = None) -> tuple[str, str]:
    """Return why a task can't be claimed, by a worker or by anybody, as a code and in words."""
    match task.state:
        case TaskState.RUNNING if task.leased_until is not None:
            left = task.leased_until - steady_now
            if left.total_seconds() < 0:
                return "used_up", f"the lease of {task.worker} expired, and all {task.max_attempts} attempts are used"
            return "taken", f"{task.worker} has it until {now + left:%H:%M:%S}"
        case TaskState.PENDING if task.open_dependencies:
            _, rows = db.rows(_UNFINISHED, {"task_id": task.id})
            return "waits", f"waits for {', '.join(f'{name} ({state})' for name, state in rows)}"
        case TaskState.PENDING if task.not_before is not None and task.not_before > now:
            return "later", f"not before {task.not_before:%Y-%m-%d %H:%M:%S}"
        case TaskState.PENDING if db.one(f"select 1 from runs where id = :id and {RUN_IS_ACTIVE}", {"id": task.run_id}) is None:
            return "run_held", f"run {task.run_id} is paused or over"
        case TaskState.PENDING if task.assigned_to not in (None, worker):
            return "assigned", f"it is assigned to {task.assigned_to}"
        case TaskState.PENDING:
            return "just_now", "it became ready just now"
    return task.state.value, f"{task.state}: {task.reason}" if task.reason else str(task.state)


def explain_no_claim(
    db: Database, run_id: str | None, wanted: dict[str, str | None], now: datetime, steady_now: datetime
) -> ClaimExplanation:
    """Return why nothing can be claimed from a run, or from any run, with these filters."""
    if run_id is None:
        row = db.one(f"select count(*) from runs where {RUN_IS_ACTIVE}", {})
        if not row or not row[0]:
            return _explanation("no_run")
        return _explanation("nothing_ready", runs="the one run under way" if row[0] == 1 else f"any of {row[0]:,} runs")
    status = db.one("select status from runs where id = :run_id", {"run_id": run_id})
    if status is not None and status[0] not in ("planning", "active"):
        return _explanation("run_paused" if status[0] == "paused" else "run_over", run_id=run_id, status=status[0])
    return _explain_ready(db, run_id, wanted, to_text(now)) or _explain_busy(db, run_id, steady_now) or _explain_open(db, run_id)


def _explain_ready(db: Database, run_id: str, wanted: dict[str, str | None], now: str) -> ClaimExplanation | None:
    # No worker has an empty name, so no task is assigned to it.
    bound = {**wanted, "worker": wanted["worker"] or "", "run_id": run_id, "now": now}
    filters = tuple(name for name in wanted if name != "worker" and wanted[name] is not None)
    if db.one(ready_check_sql(("run_id", "worker", *filters)), bound) is not None:
        return _explanation("just_now", run_id=run_id)
    if filters and db.one(ready_check_sql(("run_id", "worker")), bound) is not None:
        return _explanation("no_match", run_id=run_id, asked=", ".join(f"{name} {wanted[name]}" for name in filters))
    if db.one(ready_check_sql(("run_id", *filters)), bound) is not None:
        return _explanation("assigned", run_id=run_id)
    later = db.one(later_tasks_sql(filters), bound)
    return _explanation("later", run_id=run_id, count=later[0], at=from_text(later[1])) if later and later[0] else None


def _explain_busy(db: Database, run_id: str, steady_now: datetime) -> ClaimExplanation | None:
    row = db.one(_RUNNING, {"run_id": run_id})
    if not row or not row[0]:
        return None
    left = from_text(row[1]) - steady_now
    tasks = f"{counted(row[0], 'task')} {'is' if row[0] == 1 else 'are'}"
    return _explanation("all_taken", run_id=run_id, tasks=tasks, seconds=max(0, round(left.total_seconds())))


def _explain_open(db: Database, run_id: str) -> ClaimExplanation:
    if rows := db.rows(_OPEN, {"run_id": run_id})[1]:
        listed = ", ".join(f"{count} {state}" for state, count in sorted(rows))
        return _explanation("held", run_id=run_id, states=listed)
    if (scheduled := db.one(_SCHEDULED, {"run_id": run_id})) is not None:
        return _explanation("scheduled", name=scheduled[0], at=from_text(scheduled[1]))
    any_task = db.one("select 1 from tasks where run_id = :run_id limit 1", {"run_id": run_id})
    return _explanation("no_tasks" if any_task is None else "all_done", run_id=run_id)


# Each code with its message and hint.
_MESSAGES = {
    "no_run": ("no run is under way", 'Start one: decklog runs start "GOAL"'),
    "nothing_ready": ("no task is ready in {runs}", "See why, run by run: decklog tasks ready RUN"),
    "run_paused": ("run {run_id} is paused", "Take it up again: decklog runs update {run_id} --status active"),
    "run_over": ("run {run_id} is {status}", "Take it up again: decklog runs update {run_id} --status active"),
    "just_now": ("a task became ready just now, or another worker was faster", "Claim again."),
    "assigned": ("tasks are ready, but each is assigned to somebody else", "See them: decklog tasks ready {run_id}"),
    "scheduled": (
        "nothing is ready now; schedule {name} adds the next task at {at:%Y-%m-%d %H:%M:%S} UTC",
        "Wait for it: claim with --wait-seconds.",
    ),
    "no_match": ("tasks are ready, but none with {asked}", "See them: decklog tasks ready {run_id}"),
    "later": ("{count} may start later, the first at {at:%Y-%m-%d %H:%M:%S} UTC", "Wait for it: claim with --wait-seconds."),
    "all_taken": (
        "{tasks} being worked on, and no other task is ready; the first lease ends in {seconds} s",
        "Wait for one: claim with --wait-seconds.",
    ),
    "held": ("nothing is ready: {states}", "See why: decklog tasks ready {run_id}"),
    "no_tasks": ("run {run_id} has no tasks", 'Add one: decklog tasks add {run_id} "TITLE"'),
    "all_done": ("every task of run {run_id} is done", "End the run: decklog runs finish {run_id}"),
}


def _explanation(code: str, **facts: Any) -> ClaimExplanation:
    message, hint = _MESSAGES[code]
    return {"code": code, "message": message.format(**facts), "hint": hint.format(**facts)}


DEEPEST, MOST = 20, 200
# Level by level, up to the shown number: many tasks may depend on many others.
_CHAIN = f"""
with recursive chain (id, depth) as (
  select d.depends_on, 1
    from dependencies d
    join tasks t on t.id = d.depends_on
   where d.task_id = :task_id and d.kind = 'blocks' and t.state <> 'done'
  union
  select d.depends_on, c.depth + 1
    from chain c
    join dependencies d on d.task_id = c.id and d.kind = 'blocks'
    join tasks t on t.id = d.depends_on and t.state <> 'done'
   where c.depth < {DEEPEST}
)
select t.id, t.title, t.state, t.worker, t.reason, t.open_dependencies, c.depth
  from (select id, depth from chain limit {MOST + 1}) c
  join tasks t on t.id = c.id
"""


def explain_task(db: Database, task: Task, now: datetime, steady_now: datetime) -> TaskExplanation:
    """Return why nobody works on a task, or that somebody does, with its blocking tasks, the nearest first."""
    chain, is_cut = _load_blockers(db, task) if task.state == TaskState.PENDING and task.open_dependencies else ([], False)
    if chain:
        nearest = ", ".join(f"{one['id']} ({one['state']})" for one in chain if one["depth"] == 1)
        code, words = "waits", f"waits for {nearest}{', and more' if is_cut else ''}"
    else:
        code, words = _status_code(db, task, now, steady_now)
    return {
        "task_id": task.id,
        "run_id": task.run_id,
        "title": task.title,
        "state": task.state.value,
        "code": code,
        "why": words,
        "who": _describe_candidates(task),
        "waits_for": chain,
        "first": [one["id"] for one in chain if not one["open_dependencies"]],
        "is_cut": is_cut,
    }


def _status_code(db: Database, task: Task, now: datetime, steady_now: datetime) -> tuple[str, str]:
    if task.state == TaskState.DONE:
        return "done", f"done: {task.summary}" if task.summary else "done"
    is_over = task.leased_until is not None and task.leased_until < steady_now
    if task.state == TaskState.RUNNING and is_over and task.failures + 1 < task.max_attempts:
        return "lease_ended", f"the lease of {task.worker} ended, so the next claim can take it"
    code, words = explain_wait(db, task, now, steady_now)
    return ("ready", "it can be claimed now") if code == "just_now" else (code, words)


def _load_blockers(db: Database, task: Task) -> tuple[list[BlockingTask], bool]:
    names, found_rows = db.rows(_CHAIN, {"task_id": task.id})
    rows: list[Any] = [dict(zip(names, row, strict=True)) for row in found_rows]
    found: dict[str, BlockingTask] = {}
    for one in sorted(rows, key=lambda row: (row["depth"], row["id"]))[:MOST]:
        found.setdefault(one["id"], one)
    return list(found.values()), len(rows) > MOST


def _describe_candidates(task: Task) -> str:
    """Return who could claim the task."""
    if task.state in (TaskState.DONE, TaskState.ABANDONED):
        return "nobody: it is over"
    if task.assigned_to is not None:
        return f"{task.assigned_to} alone"
    return f"next: a worker of role {task.role}, or of any role" if task.role else "anybody"
