"""Plans: the phases of a run, and the progress of each."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, Literal

from decklog.core.errors import Conflict, Invalid, NotFound
from decklog.db.where import parse_enum
from decklog.records.fork_rules import ForkRule
from decklog.records.operations import reads, writes
from decklog.records.record import Record
from decklog.stores.checks import check_filled, check_integer, check_object, check_text, check_time
from decklog.stores.of_run import RunBound, given_fields, lock_run, not_found, parse_cleared


class PhaseStatus(StrEnum):
    PENDING = "pending"
    IN_PROGRESS = "in_progress"
    COMPLETED = "completed"
    BLOCKED = "blocked"


PhaseStatusLike = PhaseStatus | Literal["pending", "in_progress", "completed", "blocked"]


@dataclass(frozen=True, kw_only=True)
class Plan(Record):
    """The plan of a run."""

    table = "plans"
    fork = ForkRule("The plan is the same.")
    identity = ("run_id",)
    undo_columns = ("original_prompt", "plan_text", "current_phase", "metadata")

    run_id: str
    original_prompt: str
    plan_text: str
    total_phases: int
    created_at: datetime
    updated_at: datetime
    current_phase: int | None = None
    metadata: dict[str, object] | None = None


@dataclass(frozen=True, kw_only=True)
class PlanPhase(Record):
    """One phase of a run's plan."""

    table = "phases"
    fork = ForkRule("The plan is the same.")
    identity = ("run_id", "number")
    undo_columns = ("name", "status", "progress_percent", "started_at", "completed_at", "extra")

    run_id: str
    number: int
    name: str
    updated_at: datetime
    status: PhaseStatus = PhaseStatus.PENDING
    progress_percent: int = 0
    started_at: datetime | None = None
    completed_at: datetime | None = None
    extra: dict[str, object] = field(default_factory=dict)


def phase_changes(phase: PlanPhase, status: PhaseStatus, percent: int | None, now: datetime) -> dict[str, Any]:
    """Return the changes when a phase gets a status: its times and, unless given, its progress."""
    changes: dict[str, Any] = {"status": status}
    if percent is not None:
        changes["progress_percent"] = percent
    if status is phase.status:
        return changes
    if status is PhaseStatus.COMPLETED:
        changes.setdefault("progress_percent", 100)
    elif status is PhaseStatus.PENDING or phase.status is PhaseStatus.COMPLETED:
        # A resumed phase is not complete, and its progress is unknown.
        changes.setdefault("progress_percent", 0)
    changes["completed_at"] = now if status is PhaseStatus.COMPLETED else None
    if status is PhaseStatus.IN_PROGRESS and phase.started_at is None:
        changes["started_at"] = now
    elif status is PhaseStatus.PENDING:
        changes["started_at"] = None
    return changes


def parse_phases(given: object) -> list[dict[str, Any]]:
    """Parse a list of phases, each an object or just a name. Missing numbers follow the position."""
    if not isinstance(given, (list, tuple)):
        raise Invalid(f"phases are a list of names or objects; got {given!r}", field="phases")
    phases = [_parse_phase(item, place) for place, item in enumerate(given, 1)]
    for number, count in Counter(phase["number"] for phase in phases).items():
        if count > 1:
            raise Invalid(f"two phases have the number {number}; numbers must be unique", field="phases")
    return phases


def _parse_phase(item: object, place: int) -> dict[str, Any]:
    """Parse one phase. Unknown fields go to `extra`, and null means not given."""
    left: dict[str, Any] = {"name": item} if isinstance(item, str) else dict(check_object(f"phase {place}", item))
    if left.get("number") is None:
        left["number"] = left.pop("phase", None)
    number: Any = _pop(left, "number", place)
    if isinstance(number, str) and len(number) < 19 and number.isascii() and number.isdecimal():
        number = int(number)
    check_integer("a phase's number", number)
    phase: dict[str, Any] = {"number": number, "name": check_filled("a phase's name", _pop(left, "name", f"Phase {number}"))}
    if (status := left.pop("status", None)) is not None:
        phase["status"] = parse_enum(PhaseStatus, str(status), "status")
    if (percent := left.pop("progress_percent", None)) is not None:
        phase["progress_percent"] = check_integer("progress_percent", percent, high=100)
    for name in ("started_at", "completed_at"):
        if (time := left.pop(name, None)) is not None:
            phase[name] = check_time(name, time)
    phase["extra"] = check_object("extra", _pop(left, "extra", {})) | left
    return phase


def _pop(left: dict[str, Any], name: str, default: object) -> object:
    value = left.pop(name, None)
    return default if value is None else value


def match_phases(wanted: dict[int, str], present: list[PlanPhase]) -> dict[int, PlanPhase]:
    """Map each wanted phase, a number with a name, to the present phase that it continues. New phases are left out.

    A phase is identified by its name. Among several with one name, the one with the same number comes first.
    """
    same: dict[int, PlanPhase] = {}
    left = list(present)
    for by_number in (True, False):
        for number in sorted(wanted.keys() - same.keys()):
            for old in left:
                if old.name == wanted[number] and (old.number == number or not by_number):
                    same[number] = old
                    left.remove(old)
                    break
    return same


def continue_phase(wanted: dict[str, Any], old: PlanPhase | None, now: datetime) -> dict[str, Any]:
    """Complete a wanted phase with the progress of the phase that it continues. Values of the plan take precedence."""
    if old is None:
        status = wanted.get("status", PhaseStatus.PENDING)
        percent = 100 if status is PhaseStatus.COMPLETED else 0
        # A plan that has a started or finished new phase does not state its times, so they stay empty.
        kept = {"status": status, "progress_percent": percent, "started_at": None, "completed_at": None}
    else:
        status = wanted.get("status", old.status)
        kept = {name: getattr(old, name) for name in ("progress_percent", "started_at", "completed_at")}
        kept |= phase_changes(old, status, None, now)
    phase = kept | wanted
    if phase["completed_at"] is not None and status is not PhaseStatus.COMPLETED:
        raise Invalid(f"phase {phase['number']} is {status} and can't have been completed already", field="completed_at")
    return phase


class Plans(RunBound):
    """Stores one plan per run. Phases are separate rows, so concurrent changes of different phases do not conflict."""

    records = (Plan, PlanPhase)

    @writes
    def record(
        self,
        run_id: str,
        original_prompt: str,
        plan_text: str,
        phases: object,
        *,
        current_phase: int | None = None,
        total_phases: int | None = None,
        metadata: dict[str, object] | None = None,
        created_at: datetime | None = None,
    ) -> Plan:
        """Record the plan of a run, or replace it; phases are a list of names or of objects.

        An object has number (or phase), name, status, progress_percent, started_at and completed_at, all optional; other keys are
        stored as extra. A phase with the same name keeps its progress, also under a new number, unless the new plan sets it. The
        creation time stays, and so do metadata and current_phase if not given.
        """
        wanted = parse_phases(phases)
        if total_phases is None:
            total_phases = len(wanted)
        fields = _check_fields(given_fields(locals(), "run_id", "phases", "created_at", "wanted"))
        lock_run(self._db, run_id)
        plan = self._seek(Plan, run_id)
        if plan is None:
            plan = self._add(Plan, run_id=run_id, created_at=created_at or self._now(), updated_at=self._now(), **fields)
            self._replace_phases(run_id, wanted)
            return plan
        replaced = self._replace_phases(run_id, wanted)
        plan = self.set_fields(plan, fields)
        return self.get(run_id) if replaced and plan.already else plan

    def _replace_phases(self, run_id: str, wanted: list[dict[str, Any]]) -> bool:
        """Update the phases of a plan row by row, and return whether any of them changed."""
        present, now = self._phases(run_id), self._now()
        same = match_phases({fields["number"]: self._stored("text", fields["name"]) for fields in wanted}, present)
        rows = {phase.number: phase for phase in present}
        changed = False
        for fields in wanted:
            fields = continue_phase(fields, same.get(fields["number"]), now)
            row = rows.pop(fields["number"], None)
            if row is None:
                self._add(PlanPhase, run_id=run_id, updated_at=now, **fields)
            changed = row is None or not self.set_fields(row, fields).already or changed
        for number in rows:
            self._remove_one(PlanPhase, (run_id, number), note="not in the new plan")  # type: ignore[arg-type]
        return changed or bool(rows)

    @writes
    def update(
        self,
        run_id: str,
        *,
        original_prompt: str | None = None,
        plan_text: str | None = None,
        current_phase: int | None = None,
        total_phases: int | None = None,
        metadata: dict[str, object] | None = None,
        clear: list[str] | None = None,
    ) -> Plan:
        """Change the given fields of a plan and keep the rest; `clear` names fields to empty."""
        fields = _check_fields(given_fields(locals(), "run_id", "clear"))
        fields |= parse_cleared(clear, ("current_phase", "metadata"), fields)
        if not fields:
            raise Invalid("no changes given", field="run_id")
        lock_run(self._db, run_id)
        return self.set_fields(self.get(run_id), fields)

    @writes
    def mark(self, run_id: str, phase: str, status: PhaseStatusLike, *, progress_percent: int | None = None) -> PlanPhase:
        """Mark a phase, named by its number or its name, as pending, in_progress, completed or blocked.

        Times are set when the status changes. Without a percentage, a completed phase is at 100, and a pending or resumed one at
        0. Marking it the same way twice changes nothing.
        """
        status = parse_enum(PhaseStatus, status, "status")
        if progress_percent is not None:
            check_integer("progress_percent", progress_percent, high=100)
        lock_run(self._db, run_id)
        present = self.phase(run_id, phase)
        changes = phase_changes(present, status, progress_percent, self._now())
        return self.set_fields(present, changes, note=f"{present.name}: {status}")

    @reads
    def get(self, run_id: str) -> Plan:
        """Get the plan of a run."""
        plan = self._seek(Plan, run_id)
        if plan is None:
            raise NotFound(
                f"run {run_id} has no plan",
                hint=f"Record one: decklog plans record {run_id} PROMPT PLAN PHASES",
                run_id=run_id,
            )
        return plan

    @reads
    def phases(self, run_id: str, *, status: PhaseStatusLike | None = None) -> list[PlanPhase]:
        """List the phases of a run's plan by their numbers."""
        if status is not None:
            status = parse_enum(PhaseStatus, status, "status")
        self.get(run_id)
        return [phase for phase in self._phases(run_id) if status in (None, phase.status)]

    @reads
    def phase(self, run_id: str, phase: str) -> PlanPhase:
        """Get one phase of a run's plan by its number or its name."""
        self.get(run_id)
        # A name of digits is matched if no phase has that number; callers may pass the number itself.
        wanted, phases = self._stored("text", str(phase)), self._phases(run_id)
        found = [each for each in phases if str(each.number) == wanted] or [each for each in phases if each.name == wanted]
        if not found:
            raise not_found(PlanPhase, run_id, phase, listed_by="plans phases")
        if len(found) > 1:
            numbers = ", ".join(str(each.number) for each in found)
            raise Conflict(f"run {run_id} has {len(found)} phases named {wanted!r}; give the number of one: {numbers}")
        return found[0]

    def _phases(self, run_id: str) -> list[PlanPhase]:
        return self._select_by(PlanPhase, order="number", run_id=run_id)


_CHECKS: dict[str, Callable[[str, Any], Any]] = {
    "original_prompt": check_filled,
    "plan_text": check_text,
    "current_phase": check_integer,
    "total_phases": check_integer,
    "metadata": check_object,
}


def _check_fields(given: dict[str, Any]) -> dict[str, Any]:
    return {name: _CHECKS[name](name, value) for name, value in given.items()}
