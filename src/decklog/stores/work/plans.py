"""Plans: what a run means to do, phase by phase, and how far each phase is."""

from datetime import datetime

from decklog.errors import Conflict, Invalid, NotFound
from decklog.operations import reads, writes
from decklog.stores.base import enum_of
from decklog.stores.checks import filled, mapping, text, whole
from decklog.stores.of_run import RunBound, cleared, given_of, missing
from decklog.stores.work.plan import Phase, PhaseStatus, Plan, check_percent, continued, moved, read_phases, same_phases

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

__all__ = ["Phase", "PhaseStatus", "Plan", "Plans"]


class Plans(RunBound):
    """Keeps one plan per run. Phases are rows of their own, so those who finish different ones never meet."""

    records = (Plan, Phase)

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

        An object has number (or phase), name, status, progress_percent, started_at and completed_at, all optional; the
        rest is kept as extra. A phase whose name stays keeps its progress, also under a new number, where the new plan
        says nothing else. When the plan was first made, and metadata and current_phase that are not given, stay too.
        """
        wanted = read_phases(phases)
        if total_phases is None:
            total_phases = len(wanted)
        fields = _checked(given_of(locals(), "run_id", "phases", "created_at", "wanted"))
        self.hold(run_id)
        plan = self.seek(Plan, run_id)
        if plan is None:
            plan = self.add(Plan, run_id=run_id, created_at=created_at or self.now(), updated_at=self.now(), **fields)
            self._replace_phases(run_id, wanted)
            return plan
        replaced = self._replace_phases(run_id, wanted)
        plan = self.set_fields(plan, fields)
        return self._plan(run_id) if replaced and plan.already else plan

    def _replace_phases(self, run_id: str, wanted: "list[dict[str, Any]]") -> bool:
        """Make the phases of a plan what is wanted, row by row; say whether any of them changed."""
        present, now = self._phases(run_id), self.now()
        same = same_phases({fields["number"]: self.as_stored(fields["name"]) for fields in wanted}, present)
        rows = {phase.number: phase for phase in present}
        changed = False
        for fields in wanted:
            fields = continued(fields, same.get(fields["number"]), now)
            row = rows.pop(fields["number"], None)
            if row is None:
                self.add(Phase, run_id=run_id, updated_at=now, **fields)
            changed = row is None or not self.set_fields(row, fields).already or changed
        for number in rows:
            self.remove(
                Phase,
                "delete from phases where run_id = :run_id and number = :number returning *",
                note="not in the new plan",
                run_id=run_id,
                number=number,
            )
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
        """Change what is given of a plan and keep the rest and its phases; `clear` names fields to empty."""
        fields = _checked(given_of(locals(), "run_id", "clear"))
        fields |= cleared(clear, ("current_phase", "metadata"), fields)
        if not fields:
            raise Invalid("nothing to change was given", field="run_id")
        self.hold(run_id)
        return self.set_fields(self._plan(run_id), fields)

    @writes
    def mark(self, run_id: str, phase: str, status: PhaseStatus, *, progress_percent: int | None = None) -> Phase:
        """Mark a phase, named by its number or its name, as pending, in_progress, completed or blocked.

        Times are stamped as the status changes. Without a percentage, a completed phase is at 100 and one that is
        pending or taken up again at 0. Marking it the same way twice changes nothing.
        """
        status = enum_of(PhaseStatus, status, "status")
        if progress_percent is not None:
            check_percent(progress_percent)
        self.hold(run_id)
        present = self._phase(run_id, phase)
        return self.set_fields(present, moved(present, status, progress_percent, self.now()), note=f"{present.name}: {status}")

    @reads
    def get(self, run_id: str) -> Plan:
        """Get the plan of a run."""
        return self._plan(run_id)

    @reads
    def phases(self, run_id: str, *, status: PhaseStatus | None = None) -> list[Phase]:
        """List the phases of a run's plan by their numbers."""
        if status is not None:
            status = enum_of(PhaseStatus, status, "status")
        self._plan(run_id)
        return [phase for phase in self._phases(run_id) if status in (None, phase.status)]

    @reads
    def phase(self, run_id: str, phase: str) -> Phase:
        """Get one phase of a run's plan by its number or its name."""
        return self._phase(run_id, phase)

    def _plan(self, run_id: str) -> Plan:
        plan = self.seek(Plan, run_id)
        if plan is None:
            raise NotFound(
                f"run {run_id} has no plan",
                hint=f"Record one: decklog plans record {run_id} PROMPT PLAN PHASES",
                run_id=run_id,
            )
        return plan

    def _phases(self, run_id: str) -> list[Phase]:
        return self.select(Phase, "select * from phases where run_id = :run_id order by number", run_id=run_id)

    def _phase(self, run_id: str, phase: str) -> Phase:
        self._plan(run_id)
        # A name of digits only is found when no phase has that number; a caller may well give the number itself.
        wanted, phases = self.as_stored(str(phase)), self._phases(run_id)
        found = [each for each in phases if str(each.number) == wanted] or [each for each in phases if each.name == wanted]
        if not found:
            raise missing(Phase, run_id, phase, listed_by="plans phases")
        if len(found) > 1:
            numbers = ", ".join(str(each.number) for each in found)
            raise Conflict(f"run {run_id} has {len(found)} phases named {wanted!r}; say which by its number: {numbers}")
        return found[0]


_CHECKS: "dict[str, Callable[[str, Any], Any]]" = {
    "original_prompt": filled,
    "plan_text": text,
    "current_phase": whole,
    "total_phases": whole,
    "metadata": mapping,
}


def _checked(given: "dict[str, Any]") -> "dict[str, Any]":
    return {name: _CHECKS[name](name, value) for name, value in given.items()}
