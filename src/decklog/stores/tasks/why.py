"""Why one task is where it is: the reason in words, what it waits for and what that waits for, and who could take it."""

from datetime import datetime

from decklog.db.base import Database
from decklog.stores.results.tasks import BlockingTask, TaskExplanation
from decklog.stores.tasks.task import Task, TaskState
from decklog.stores.tasks.unclaimed import why_not

DEEPEST, MOST = 20, 200
# Level by level, and no further than is shown: many tasks may wait for many.
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


def explained(db: Database, task: Task, now: datetime, steady_now: datetime) -> TaskExplanation:
    """Return why a task is not being worked on, or that it is; and name what it waits for, the nearest first."""
    chain, is_cut = _chain(db, task) if task.state == TaskState.PENDING and task.open_dependencies else ([], False)
    code, words = _waits(chain, is_cut) if chain else _standing(db, task, now, steady_now)
    return {
        "task_id": task.id,
        "run_id": task.run_id,
        "title": task.title,
        "state": task.state.value,
        "code": code,
        "why": words,
        "who": _who(task),
        "waits_for": chain,
        "first": [one["id"] for one in chain if not one["open_dependencies"]],
        "is_cut": is_cut,
    }


def _standing(db: Database, task: Task, now: datetime, steady_now: datetime) -> tuple[str, str]:
    if task.state == TaskState.DONE:
        return "done", f"done: {task.summary}" if task.summary else "done"
    is_over = task.leased_until is not None and task.leased_until < steady_now
    if task.state == TaskState.RUNNING and is_over and task.failures + 1 < task.max_attempts:
        return "lease_ended", f"the lease of {task.worker} ended, and the next who claims gets it"
    code, words = why_not(db, task, now, steady_now)
    return ("ready", "it can be claimed now") if code == "just_now" else (code, words)


def _chain(db: Database, task: Task) -> tuple[list[BlockingTask], bool]:
    rows = [_blocking(*row) for row in db.rows(_CHAIN, {"task_id": task.id})[1]]
    found: dict[str, BlockingTask] = {}
    for one in sorted(rows, key=lambda row: (row["depth"], row["id"]))[:MOST]:
        found.setdefault(one["id"], one)
    return list(found.values()), len(rows) > MOST


def _blocking(
    id: str, title: str, state: str, worker: str | None, reason: str | None, open_dependencies: int, depth: int
) -> BlockingTask:
    return {
        "id": id,
        "title": title,
        "state": state,
        "worker": worker,
        "reason": reason,
        "open_dependencies": open_dependencies,
        "depth": depth,
    }


def _waits(chain: list[BlockingTask], is_cut: bool) -> tuple[str, str]:
    """Return what a task waits for, as a claim would."""
    nearest = [f"{one['id']} ({one['state']})" for one in chain if one["depth"] == 1]
    return "waits", f"waits for {', '.join(nearest)}{', and more' if is_cut else ''}"


def _who(task: Task) -> str:
    """Say who could take it."""
    if task.state in (TaskState.DONE, TaskState.ABANDONED):
        return "nobody: it is over"
    if task.assigned_to is not None:
        return f"{task.assigned_to} alone"
    return f"whoever claims for the role {task.role}, or for any" if task.role else "anybody"
