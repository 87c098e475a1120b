"""Why a claim gets nothing, as a code and in words, and what would help."""

from decklog.clock import from_text, to_text
from decklog.stores.work.claimable import GOES_ON, first_later, is_ready, narrowed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from datetime import datetime
    from typing import Any

    from decklog.db.base import Database

_RUNNING = """
select count(*), min(leased_until) from (
  select leased_until from tasks where run_id = :run_id and state = 'running' limit 1000
) as few
"""
_OPEN = """
select state, count(*), min(title) from (
  select state, title from tasks where run_id = :run_id and state <> 'done' and state <> 'abandoned' limit 1000
) as few
group by state
"""


def explain(
    db: "Database", run_id: str | None, wanted: "dict[str, str | None]", now: "datetime", steady_now: "datetime"
) -> "dict[str, Any]":
    """Say why nothing of a run, or of any run, can be claimed by whoever asks for a group, role or tag."""
    if run_id is None:
        row = db.one(f"select count(*) from runs where {GOES_ON}", {})
        return _told("nothing_ready" if row and row[0] else "no_run", runs=row[0] if row else 0)
    status = db.one("select status from runs where id = :run_id", {"run_id": run_id})
    if status is not None and status[0] not in ("planning", "active"):
        return _told("run_paused" if status[0] == "paused" else "run_over", run_id=run_id, status=status[0])
    return _of_ready(db, run_id, wanted, to_text(now)) or _of_running(db, run_id, steady_now) or _of_open(db, run_id)


def _of_ready(db: "Database", run_id: str, wanted: "dict[str, str | None]", now: str) -> "dict[str, Any] | None":
    asked = narrowed(wanted)
    names = {"run_id": run_id, "now": now}
    if db.one(is_ready(("run_id", *asked)), {**names, **asked}) is not None:
        return _told("just_now", run_id=run_id)
    if asked and db.one(is_ready(("run_id",)), names) is not None:
        return _told("no_match", run_id=run_id, asked=", ".join(f"{name} {wanted[name]}" for name in asked))
    later = db.one(first_later(tuple(asked)), {**names, **asked})
    return _told("later", run_id=run_id, count=later[0], at=from_text(later[1])) if later and later[0] else None


def _of_running(db: "Database", run_id: str, steady_now: "datetime") -> "dict[str, Any] | None":
    row = db.one(_RUNNING, {"run_id": run_id})
    if not row or not row[0]:
        return None
    left = from_text(row[1]) - steady_now
    return _told("all_taken", run_id=run_id, count=row[0], seconds=max(0, round(left.total_seconds())))


def _of_open(db: "Database", run_id: str) -> "dict[str, Any]":
    _, rows = db.rows(_OPEN, {"run_id": run_id})
    states = {state: count for state, count, _ in rows}
    if states:
        return _told("held", run_id=run_id, states=", ".join(f"{count} {state}" for state, count in sorted(states.items())))
    any_task = db.one("select 1 from tasks where run_id = :run_id limit 1", {"run_id": run_id})
    return _told("no_tasks" if any_task is None else "all_done", run_id=run_id)


# Each code with what it says, and what would help.
_SAID = {
    "no_run": ("no run is under way", 'Start one: decklog runs start "GOAL"'),
    "nothing_ready": ("no task is ready in any of {runs} runs", "See why, run by run: decklog tasks ready RUN"),
    "run_paused": ("run {run_id} is paused", "Take it up again: decklog runs update {run_id} --status active"),
    "run_over": ("run {run_id} is {status}", "Take it up again: decklog runs update {run_id} --status active"),
    "just_now": ("a task became ready just now, or somebody else was faster", "Claim again."),
    "no_match": ("tasks are ready, but none with {asked}", "See them: decklog tasks ready {run_id}"),
    "later": (
        "{count} may begin later, the first at {at:%Y-%m-%d %H:%M:%S} UTC",
        "Wait for it: claim with --wait-seconds.",
    ),
    "all_taken": (
        "{count} tasks are being worked on, and nothing else is ready; the first lease ends in {seconds} s",
        "Wait for one: claim with --wait-seconds.",
    ),
    "held": ("nothing is ready: {states}", "See what holds each: decklog tasks ready {run_id}"),
    "no_tasks": ("run {run_id} has no tasks", 'Add one: decklog tasks add {run_id} "TITLE"'),
    "all_done": ("every task of run {run_id} is done", "End the run: decklog runs finish {run_id}"),
}


def _told(code: str, **facts: "Any") -> "dict[str, Any]":
    message, hint = _SAID[code]
    return {"code": code, "message": message.format(**facts), "hint": hint.format(**facts)}
