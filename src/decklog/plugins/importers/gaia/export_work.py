"""Tasks, tool calls, spending and CI runs as gaia-coder's databases have them."""

from typing import TYPE_CHECKING

from decklog.core.clock import from_text
from decklog.importing.exports.rows import Export, each
from decklog.importing.row import EPOCH
from decklog.journal.rows import SELECT, load
from decklog.plugins.importers.gaia.spelling import json_or_none, json_text
from decklog.plugins.importers.gaia.work import CALL, WAS_RUNNING, title_of
from decklog.stores.effects.effects import Effect, EffectState
from decklog.stores.money.records import TOKENS, Charge
from decklog.stores.tasks.task import Task
from decklog.stores.workflow.ci import CiRun

if TYPE_CHECKING:
    from datetime import datetime
    from typing import Any

    from decklog.journal.entry import Entry
    from decklog.log import Decklog

    Columns = dict[str, Any]

_KEY = "import:gaia:"
# What has a column or goes into one, and what says nothing where there are no leases and no runs.
_TASK = (
    *("id", "run_id", "title", "state", "created_at", "updated_at", "objective", "priority", "acceptance", "verification"),
    *("allowed_paths", "inputs", "stage", "state_name", "trace_file", "loop_version", "summary", "result", "outcome"),
    *("failures", "fence", "worker", "leased_at", "leased_until", "open_dependencies", "blocker_repeats"),
    *("reservation_id", "snapshot"),
)
_ASKED = ("objective", "acceptance", "verification", "allowed_paths")
_CHARGE = ("id", "occurred_at", "model", "cost_microdollars", "call_site", "run_id", "task_id", *TOKENS)
_NO_LOOP = 0


class WorkRows:
    """Writes the tables of what was done. Tasks there belong to no run, so those of all runs come together."""

    log: "Decklog"

    def tasks(self, out: Export) -> None:
        """Write every task with what it was asked and what came of it."""
        for task in each(self.log, Task, "created_at, id"):
            name = f"tasks {task.id}"
            row: Columns = {
                "id": task.id,
                "priority": task.priority,
                "state": task.state.value,
                "created_at": None if task.created_at == EPOCH else task.created_at,
                "stage": task.stage,
                "current_state_name": task.state_name,
                "inputs_json": json_or_none(asked_of(task)),
                "result_json": None if (came := _came_of(task)) is None else json_text(came),
                "trace_file": task.trace_file,
                "loop_version": task.loop_version,
            }
            row = out.kept.restored(name, row, {"created_at": EPOCH, "inputs_json": "{}", "loop_version": _NO_LOOP})
            row["last_heartbeat_at"] = _heartbeat(task, row.get("last_heartbeat_at"))
            row["cost_usd"] = self._cost(task.id, row.get("cost_usd"))
            out.insert("tasks", row)
            known = (*_TASK, "reason") if task.reason == WAS_RUNNING else _TASK
            out.report.leave_out_fields("tasks", task, known)

    def _cost(self, task_id: str, before: "Any") -> "Any":
        """Add what was charged here to what the task had cost when it was imported."""
        sql = f"""
            select cast(coalesce(sum(cost_microdollars), 0) as bigint) from charges
             where task_id = :task_id and coalesce(substr(key, 1, {len(_KEY)}), '') <> :imported
            """
        here = self.log.db.rows(sql, {"task_id": task_id, "imported": _KEY})[1][0][0]
        return before if before is not None and not here else float(before or 0) + here / 1_000_000

    def audit(self, out: Export) -> None:
        """Write the calls of tools: entries of the journal, and the effects that Decklog's own tools had."""
        for found in self.log.db.each(f"{SELECT} where kind = 'tool' order by pos", {}):
            entry = load(self.log.db, found)
            row = out.kept.restored(entry.id, _call(entry), {"tool_name": "tool", "args_json": "{}", "loop_version": _NO_LOOP})
            out.insert_numbered("audit", row, _number(entry.key))
        for effect in each(self.log, Effect, "intended_at, id"):
            out.insert_numbered("audit", _effect_call(self.log.effects.get(effect.id)), None)

    def spend(self, out: Export) -> None:
        """Write every charge; one without a known price costs nothing there, and is counted as left out."""
        prefix = f"{_KEY}spend:"
        for charge in each(self.log, Charge, "occurred_at, id"):
            imported = (charge.key or "").startswith(prefix)
            charge_id = (charge.key or "").removeprefix(prefix) if imported else charge.id
            row: Columns = {"id": charge_id, "occurred_at": charge.occurred_at, "task_id": charge.task_id}
            row |= {"call_site": charge.call_site, "model": charge.model, **{name: getattr(charge, name) for name in TOKENS}}
            row["usd"] = (charge.cost_microdollars or 0) / 1_000_000
            out.write("spend", f"spend {charge_id}", row, {"call_site": charge.agent or "unknown"})
            out.report.leave_out("charges of unknown price", int(charge.cost_microdollars is None))
            # An imported charge counts on the day it was imported: that is this log's bookkeeping, and nothing of the source's.
            out.report.leave_out_fields("charges", charge, (*_CHARGE, "key", "counted_at") if imported else _CHARGE)

    def ci_history(self, out: Export) -> None:
        """Write the history of CI runs."""
        for run in each(self.log, CiRun, "started_at, ci_run_id, workflow_name, branch"):
            row: Columns = {"workflow_name": run.workflow_name, "branch": run.branch, "run_id": run.ci_run_id}
            row |= {"started_at": None if run.started_at == EPOCH else run.started_at, "completed_at": run.completed_at}
            row |= {"duration_s": run.duration_seconds, "conclusion": run.conclusion and run.conclusion.value}
            name = f"ci_history {run.workflow_name}/{run.branch}/{run.ci_run_id}"
            out.write("ci_history", name, row, {"started_at": EPOCH})


def asked_of(task: Task) -> "dict[str, Any]":
    """Return what a task was asked: its inputs, and beside them what it has in fields of its own here."""
    asked: dict[str, Any] = {} if title_of(task.inputs, task.id) == task.title else {"title": task.title}
    return asked | {name: getattr(task, name) for name in _ASKED if getattr(task, name)} | task.inputs


def _came_of(task: Task) -> "Any":
    """Return a task's result, with its summary inside, where that system keeps it."""
    if task.summary is None:
        return task.result
    if isinstance(task.result, dict):
        return {"summary": task.summary, **task.result}
    return {"summary": task.summary} if task.result is None else {"summary": task.summary, "result": task.result}


def _heartbeat(task: Task, kept: "Any") -> "datetime | Any":
    """Return the last sign of life: what was imported, unless the task has moved on since."""
    if task.updated_at == task.created_at:
        return kept
    try:
        is_same = kept is not None and from_text(str(kept)) == task.updated_at
    except ValueError:
        is_same = False
    return kept if is_same else task.updated_at


def _call(entry: "Entry") -> "Columns":
    """Read a call from an entry; a payload that is no call's is taken for the arguments, and a text for the result."""
    payload = entry.payload if isinstance(entry.payload, dict) and "args" in entry.payload else {"args": entry.payload}
    result = payload.get("result")
    if result is None and entry.body:
        result = {"output": entry.body}
    row: Columns = {name: payload.get(name) for name in CALL}
    row |= {"occurred_at": entry.at, "task_id": entry.task_id, "tool_name": entry.subtype}
    row |= {"args_json": _json(payload["args"]), "result_json": _json(result)}
    return {name: json_text(value) if isinstance(value, (dict, list)) else value for name, value in row.items()}


def _effect_call(effect: Effect) -> "Columns":
    """Write an effect as the call that had it."""
    took = effect.settled_at and round((effect.settled_at - effect.intended_at).total_seconds() * 1000)
    row: Columns = {"occurred_at": effect.intended_at, "task_id": effect.task_id, "stage": effect.step}
    row |= {"tool_name": effect.tool, "args_json": json_text(effect.arguments), "result_json": _json(effect.result)}
    # No error means success there, and of what was never settled nobody knows that.
    error = None if effect.state is EffectState.DONE else str((effect.error or {}).get("code") or effect.state.value)
    return row | {"duration_ms": took, "error": error, "loop_version": _NO_LOOP}


def _json(value: "Any") -> str | None:
    return None if value is None else json_text(value)


def _number(key: str | None) -> int | None:
    """Read a call's own number from the key of what was imported."""
    prefix = f"{_KEY}audit:"
    number = (key or "").removeprefix(prefix)
    return int(number) if (key or "").startswith(prefix) and number.isascii() and number.isdigit() and len(number) < 19 else None
