"""Export a log as a bazinga-db database."""

from typing import Any

from decklog.importing.exports import Export, columns_of, each, number_of, text_of
from decklog.journal.entry import IMPORT_SUBTYPES, EntryKind
from decklog.log import Decklog
from decklog.plugins.importers.bazinga.importer import SCHEMA
from decklog.plugins.importers.bazinga.rows import criterion_row, group_row, pattern_row, session_row, stamp, strategy_row
from decklog.records.record import find_all
from decklog.stores.memory.patterns import ErrorPattern
from decklog.stores.memory.strategies import Strategy
from decklog.stores.runs.run import ENDED, RunStatus
from decklog.stores.tasks.plans import PhaseStatus, Plan
from decklog.stores.workflow.context import ContextConsumption

Columns = dict[str, Any]

SYSTEM = "bazinga"
_KINDS = (EntryKind.INTERACTION, EntryKind.REASONING, EntryKind.EVENT)
# Record kinds that have a table in bazinga-db.
_PLACED = (
    *("runs", "groups", "plans", "phases", "criteria", "states", "state_versions", "charges", "outputs"),
    *("packages", "context_consumers", "context_consumptions", "patterns", "strategies"),
)
# Rows without an original number are numbered after the others, by time.
_BY_TIME = ("orchestration_logs", "token_usage", "skill_outputs")
_LIVE = {RunStatus.COMPLETED: "completed", RunStatus.FAILED: "failed", RunStatus.CANCELLED: "failed"}
_PACKAGE = (
    "id=number session_id=run_id group_id file_path package_type producer_agent=producer priority summary size_bytes version"
)


class BazingaExport(Export):
    """Exports runs as sessions and entries as logs; Decklog records without a bazinga table, such as tasks, are left out."""

    def __init__(self, log: Decklog, path: str, *, wal: bool = False) -> None:
        super().__init__(log, path, SYSTEM, wal=wal)

    def run(self) -> dict[str, Any]:
        """Write a consistent snapshot; return the number of rows per table and the counts of records left out."""
        with self:
            return self.log.db.read(self._write)

    def _begin(self) -> None:
        SCHEMA.create(self.db)

    def _write(self) -> dict[str, Any]:
        self._begin()
        for run in reversed(list(find_all(self.log.runs.find))):
            self._session(run)
            self._groups(run.id)
            self._logs(run.id)
            self._states(run.id)
            self._figures(run.id)
            self._plan(run.id)
            self._criteria(run.id)
            self._context(run.id)
        self._learned()
        self.write_kept()
        for table in _BY_TIME:
            self.insert_waiting(table, "timestamp")
        self.report.leave_out_kept(self.kept.of_others)
        self.report.leave_out_tables(self.log, _PLACED)
        return self.finish()

    def _session(self, run: Any) -> None:
        row = session_row(run, text_of) | {"status": _LIVE.get(run.status, "active")}
        row["end_time"] = stamp(run.ended_at) if run.status in ENDED else None
        self.write("sessions", f"sessions {run.id}", row)
        if row["status"] != run.status.value:
            self.report.leave_out(f"that sessions are {run.status.value}: they are {row['status']} there")

    def _groups(self, run_id: str) -> None:
        for group in find_all(self.log.groups.find, run_id):
            row = group_row(group, text_of)
            self.write("task_groups", f"task_groups {run_id}/{group.group_id}", row)

    def _logs(self, run_id: str) -> None:
        for entry in find_all(self.log.journal.find, run_id, oldest_first=True):
            if entry.kind in _KINDS and entry.subtype not in IMPORT_SUBTYPES:
                self._log_row(entry)

    def _log_row(self, entry: Any) -> None:
        number = number_of(entry.key, SYSTEM, "orchestration_logs")
        row = columns_of(
            entry,
            "session_id=stream timestamp=at iteration agent_id log_type=kind reasoning_phase=phase confidence_level=confidence"
            " group_id event_subtype=subtype",
            stamp,
        )
        row |= {"agent_type": entry.agent or "unknown", "content": entry.body or "", "redacted": int(entry.redacted)}
        row |= {"references_json": text_of(entry.refs), "event_payload": text_of(entry.payload)}
        row["idempotency_key"] = entry.key if number is None else None
        row = self.kept.restored(entry.id, row)
        self._place_log(entry, row, row.pop("id", number))

    def _place_log(self, entry: Any, row: Columns, number: int | None) -> None:  # noqa: ARG002 - for those who note it down
        self.insert_numbered("orchestration_logs", row, number)

    def _states(self, run_id: str) -> None:
        """Write the newest version of each state: the newest schema has room for one."""
        for state in find_all(self.log.states.find, run_id):
            found = self.log.states.get(run_id, state.name, group_id=state.group_id)
            row = {"session_id": run_id, **columns_of(state, "group_id state_type=name")}
            row |= {"timestamp": stamp(found.saved_at), "state_data": text_of(found.document) or "null"}
            self.write("state_snapshots", f"state {run_id} {state.group_id} {state.name} {state.version}", row)
            self.report.leave_out("older versions of state_snapshots", state.version - 1)

    def _figures(self, run_id: str) -> None:
        for charge in reversed(list(find_all(self.log.ledger.find, run_id=run_id))):
            row = columns_of(charge, "session_id=run_id timestamp=occurred_at agent_id tokens_estimated=tokens", stamp)
            row["agent_type"] = charge.agent or "unknown"
            self._number_row("token_usage", row, number_of(charge.key, SYSTEM, "token_usage"))
        for output in reversed(list(find_all(self.log.outputs.find, run_id))):
            names = "session_id=run_id timestamp=saved_at skill_name=skill agent_type=agent group_id iteration"
            row = columns_of(output, names, stamp)
            row["output_data"] = text_of(self.log.outputs.get(output.id).document) or "null"
            self._number_row("skill_outputs", row, number_of(output.key, SYSTEM, "skill_outputs"))

    def _number_row(self, table: str, row: Columns, number: int | None) -> None:
        self.insert_numbered(table, self.kept.restored(f"{table} {number}", row), number)

    def _plan(self, run_id: str) -> None:
        for plan in each(self.log, Plan, "run_id", "where run_id = :run_id", run_id=run_id):
            phases = [_phase(phase) for phase in self.log.plans.phases(run_id)]
            names = "session_id=run_id original_prompt plan_text current_phase total_phases created_at updated_at"
            row = columns_of(plan, names, stamp) | {"phases": text_of(phases), "metadata": text_of(plan.metadata)}
            self.write("development_plans", f"plan {run_id}", row)

    def _criteria(self, run_id: str) -> None:
        for found in find_all(self.log.criteria.find, run_id):
            row = criterion_row(found)
            self.write("success_criteria", f"criterion {run_id} {found.criterion}", row)

    def _context(self, run_id: str) -> None:
        numbers = {}
        for package in reversed(list(find_all(self.log.context.find, run_id, include_superseded=True))):
            numbers[package.id] = package.number
            row = columns_of(package, f"{_PACKAGE} scope created_at", stamp)
            row["supersedes_id"] = numbers.get(package.supersedes_id or "")
            self.write("context_packages", f"context_packages {package.number}", row)
            for reader in self.log.context.consumers(package.id):
                row = {"package_id": package.number, **columns_of(reader, "agent_type=agent iteration consumed_at", stamp)}
                self.write("context_package_consumers", f"consumer {package.id} {reader.agent}", row)
        for use in each(self.log, ContextConsumption, "consumed_at, id", "where run_id = :run_id", run_id=run_id):
            row = columns_of(use, "scope_id session_id=run_id group_id agent_type=agent iteration consumed_at", stamp)
            row["package_id"] = numbers[use.package_id]
            self.write("consumption_scope", f"consumption_scope {use.scope_id}", row)

    def _learned(self) -> None:
        for found in each(self.log, ErrorPattern, "created_at, pattern_hash"):
            row = pattern_row(found, text_of)
            self.write("error_patterns", f"error_patterns {found.pattern_hash}/{found.project}", row)
        for one in each(self.log, Strategy, "created_at, id"):
            self.write("strategies", f"strategies {one.id}", strategy_row(one))


def _phase(phase: Any) -> dict[str, Any]:
    """Write a phase under `phase` and `name`, the keys that bazinga's commands read."""
    data = {"phase": phase.number, "name": phase.name, "status": phase.status.value, **phase.extra}
    if phase.status is not PhaseStatus.PENDING:
        # Keep a status that only the source knows until the phase changes here.
        data["status"] = phase.status.value
    if phase.progress_percent:
        data["progress_percent"] = phase.progress_percent
    times = {name: getattr(phase, name) for name in ("started_at", "completed_at")}
    return data | {name: stamp(moment) for name, moment in times.items() if moment is not None}
