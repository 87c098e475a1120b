"""Gaia-coder's tasks, tool calls, spending and CI runs."""

from decimal import ROUND_HALF_EVEN, Decimal
from typing import TYPE_CHECKING

from decklog.core.clock import from_text, to_text
from decklog.core.errors import Invalid
from decklog.importing.draft import Draft, describes
from decklog.importing.landing import RowWriter
from decklog.importing.report import Fate
from decklog.importing.row import EPOCH, Row
from decklog.journal.entry import EntryKind
from decklog.stores.tasks.task import Task, TaskState
from decklog.stores.workflow.ci import CiConclusion, CiRun

if TYPE_CHECKING:
    from datetime import datetime
    from typing import Any

    from decklog.log import Decklog

_JSON = (dict, list, str, int, float, bool)
_LONGEST_TITLE = 120
WAS_RUNNING = "it was running when it was imported, and nobody here holds it; resume it when nobody there does"
# What a tool call's payload keeps beside its arguments and its result.
CALL = ("stage", "state_name", "duration_ms", "error", "loop_version")


class GaiaWorkTables:
    """Mappings into the one run that is made for a home."""

    log: "Decklog"
    landing: RowWriter
    run_id: str

    def task(self, row: Row) -> Fate:
        """Take a task over. One that was running is paused: nobody here holds it, and it may still be worked on there."""
        row.stream = self.run_id
        state = row.one_of("state", TaskState, TaskState.PENDING)
        if state is TaskState.RUNNING:
            state = TaskState(row.replace("state", TaskState.PAUSED.value))
        if row.columns.get("cost_usd") in (0, None):
            row.take("cost_usd")
        created = self._created(row)
        inputs = row.json("inputs_json", (dict,), {})
        return self.landing.record(
            Task,
            clock="updated_at",
            id=row.text("id"),
            run_id=self.run_id,
            title=title_of(inputs, row.id),
            inputs=inputs,
            state=state,
            priority=row.whole("priority", 50, high=100),
            stage=row.text("stage"),
            state_name=row.text("current_state_name"),
            result=row.json("result_json", _JSON),
            trace_file=row.text("trace_file"),
            loop_version=row.whole("loop_version"),
            reason=WAS_RUNNING if "state" in row.instead else None,
            created_at=created,
            updated_at=_latest(created, row.columns.get("last_heartbeat_at")),
        )

    def _created(self, row: Row) -> "datetime":
        """Read when a task was made; of tasks that were made together, the first row comes first."""
        there: datetime = row.time("created_at", EPOCH)
        created = self.landing.in_turn(row, there)
        if created != there:
            row.replace("created_at", to_text(created))
        return created

    @describes
    def tool_call(self, row: Row) -> Draft:
        """Make a row of the audit a tool entry."""
        row.stream = self.run_id
        row.take("id")
        call: dict[str, Any] = {name: row.take(name) for name in CALL}
        payload = {
            "args": row.json("args_json", _JSON),
            "result": row.json("result_json", _JSON),
            **{name: value for name, value in call.items() if value is not None},
        }
        entry = {
            "kind": EntryKind.TOOL,
            "subtype": row.text("tool_name"),
            "task_id": row.text("task_id"),
            "payload": payload,
            "at": row.time("occurred_at"),
        }
        return self.landing.entry(row, entry)

    @describes
    def spend(self, row: Row) -> Draft:
        """Charge a call; dollars become whole micro-dollars, and an amount that is finer is kept beside the charge."""
        row.stream = self.run_id
        row.take("id")
        charge = {
            "model": row.text("model", "unknown"),
            "input_tokens": row.whole("input_tokens", 0),
            "cache_read_tokens": row.whole("cache_read_tokens", 0),
            "cache_create_tokens": row.whole("cache_create_tokens", 0),
            "output_tokens": row.whole("output_tokens", 0),
            "cost_microdollars": _microdollars(row),
            "task_id": row.text("task_id"),
            "call_site": row.text("call_site"),
            "occurred_at": row.time("occurred_at"),
        }
        return self.landing.charge(row, charge)

    def ci_run(self, row: Row) -> Fate:
        """Take a CI run over."""
        started: datetime = row.time("started_at", EPOCH)
        completed = row.time("completed_at")
        return self.landing.record(
            CiRun,
            clock="updated_at",
            workflow_name=row.text("workflow_name", ""),
            branch=row.text("branch", ""),
            ci_run_id=row.whole("run_id"),
            started_at=started,
            completed_at=completed,
            duration_seconds=row.whole("duration_s"),
            conclusion=row.one_of("conclusion", CiConclusion, None),
            updated_at=completed or started,
        )


def title_of(inputs: "dict[str, Any]", task_id: str) -> str:
    """Call a task by the first line of what it was asked."""
    asked = next((inputs[name] for name in ("title", "prompt", "goal", "task") if isinstance(inputs.get(name), str)), "")
    line = asked.strip().partition("\n")[0][:_LONGEST_TITLE]
    return line or f"Task {task_id}"


def _latest(created: "datetime", heartbeat: object) -> "datetime":
    try:
        return max(created, from_text(str(heartbeat))) if heartbeat else created
    except ValueError:
        return created


def _microdollars(row: Row) -> int:
    usd = row.take("usd", 0)
    if not isinstance(usd, (int, float)) or not 0 <= usd < 10**6:
        raise Invalid(f"{usd!r} is no amount of dollars that a call can cost")
    # The shortest decimal that is this float: what a person wrote, not its binary neighbour.
    exact = Decimal(repr(usd)) * 1_000_000
    cost = int(exact.quantize(Decimal(1), ROUND_HALF_EVEN))
    if exact != cost:
        row.replace("usd", cost / 1_000_000)
    return cost
