"""Development plans: one per session, with phases that are marked one by one."""

from typing import TYPE_CHECKING

from decklog.core.errors import NotFound
from decklog.journal.rows import number_of
from decklog.plugins.legacy.bazinga.base import CallRefused, Desk, answers, from_json_text, stamp
from decklog.plugins.legacy.bazinga.program.reply import ProgramReply
from decklog.stores.tasks.plans import PhaseStatus, PlanPhase

if TYPE_CHECKING:
    from typing import Any

    from decklog.plugins.legacy.bazinga.program.usage import UsageValues

_STATUSES = tuple(PhaseStatus)


class BazingaPlans(Desk):
    """Saves a session's plan and follows its phases."""

    @answers
    def save_development_plan(
        self,
        session_id: str,
        original_prompt: str,
        plan_text: str,
        phases: "list[dict[str, Any]]",
        current_phase: int | None,
        total_phases: int,
        metadata: "dict[str, Any] | None" = None,
    ) -> None:
        """Save a session's plan, or replace it with what is given; when it was first made stays."""
        given: dict[str, Any] = {"current_phase": current_phase, "metadata": metadata}
        with self.log.transaction():
            self.log.plans.record(session_id, original_prompt, plan_text, _anew(phases), total_phases=total_phases, **given)
            self.log.plans.update(session_id, total_phases=total_phases, clear=[name for name in given if given[name] is None])

    @answers
    def get_development_plan(self, session_id: str) -> "dict[str, Any] | None":
        """Return a session's plan with its phases; None when there is none."""
        try:
            return self.log.db.read(lambda: self._plan(session_id))
        except NotFound:
            return None

    def _plan(self, session_id: str) -> "dict[str, Any]":
        plan, phases = self.log.plans.get(session_id), self.log.plans.phases(session_id)
        return {
            # A session has one plan, so the session's own number names it where readers have none.
            "id": self.id_where("development_plans", number_of(self.log.db, session_id), session_id=session_id),
            "session_id": session_id,
            "original_prompt": plan.original_prompt,
            "plan_text": plan.plan_text,
            "phases": [phase_row(phase) for phase in phases],
            "current_phase": plan.current_phase,
            "total_phases": plan.total_phases,
            "created_at": stamp(plan.created_at),
            "updated_at": stamp(plan.updated_at),
            "metadata": plan.metadata,
        }

    @answers
    def update_plan_progress(
        self, session_id: str, phase_id: int | str, status: str, progress_percent: int | None = None
    ) -> None:
        """Mark a phase, named by its number or its name; one that is taken up becomes the plan's current phase.

        Those who mark different phases never undo each other.
        """
        if status not in _STATUSES:
            raise CallRefused(f"Invalid status: {status!r}. Must be one of: {', '.join(_STATUSES)}")
        with self.log.transaction():
            phase = self.log.plans.mark(session_id, str(phase_id), PhaseStatus(status), progress_percent=progress_percent)
            if phase.status is PhaseStatus.IN_PROGRESS:
                self.log.plans.update(session_id, current_phase=phase.number)


def _anew(phases: "Any") -> "Any":
    """Give phases so that one of which nothing is said begins anew, instead of going on with what it had."""
    if not isinstance(phases, list):
        return phases
    fresh = {"status": "pending", "progress_percent": 0}
    return [{**fresh, **phase} if isinstance(phase, dict) and phase.get("status") is None else phase for phase in phases]


def phase_row(phase: PlanPhase) -> "dict[str, Any]":
    """Return a phase as the plan's list had it, with what became of it since."""
    row: dict[str, Any] = {"phase": phase.number, "name": phase.name, **phase.extra, "status": str(phase.status)}
    row["progress_percent"] = phase.progress_percent
    if phase.started_at is not None:
        row["started_at"] = stamp(phase.started_at)
    if phase.completed_at is not None:
        row["completed_at"] = stamp(phase.completed_at)
    return row


# Commands

DESK = BazingaPlans


def save_development_plan(desk: BazingaPlans, given: "UsageValues") -> ProgramReply:
    if given.get("plan") is None:
        return _save_document(desk, given)
    if given.get("total") is None:
        from decklog.plugins.legacy.bazinga.program.usage import Misuse

        raise Misuse("Missing argument: PLAN, PHASES, CURRENT, TOTAL go together")
    current, total = given.whole("current"), given.whole("total")
    assert total is not None
    desk.save_development_plan(
        given["session"], given["prompt"], given["plan"], given.json("phases"), current, total, given.json("metadata")
    )
    return ProgramReply(said=f"Development plan saved: {given['session']}")


def _save_document(desk: BazingaPlans, given: "UsageValues") -> ProgramReply:
    """Save a plan that is given as one JSON object."""
    plan = from_json_text("plan", given["prompt"])
    if not isinstance(plan, dict) or not isinstance(plan.get("phases"), list):
        raise CallRefused("a plan is a JSON object with original_prompt, plan_text and phases")
    text = plan.get("plan_text") or plan.get("plan") or plan.get("description") or ""
    prompt = plan.get("original_prompt") or plan.get("prompt") or text
    total = plan.get("total_phases")
    desk.save_development_plan(
        given["session"],
        prompt,
        text,
        plan["phases"],
        plan.get("current_phase"),
        len(plan["phases"]) if total is None else total,
        plan.get("metadata"),
    )
    return ProgramReply(said=f"Development plan saved: {given['session']}")


def get_development_plan(desk: BazingaPlans, given: "UsageValues") -> ProgramReply:
    return ProgramReply(desk.get_development_plan(given["session"]))


def update_plan_progress(desk: BazingaPlans, given: "UsageValues") -> ProgramReply:
    percent = given.whole("percent", low=0, high=100)
    desk.update_plan_progress(given["session"], given["phase"], given["status"], percent)
    return ProgramReply(said=f"Phase {given['phase']}: {given['status']}")
