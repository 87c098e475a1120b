"""The stage of planning: an agent proposes a plan in a place of its own; it is checked as data and shown before it is worked."""

from typing import TYPE_CHECKING, Any

from decklog.conductor.agents.session import SessionOutcome
from decklog.conductor.planning import proposal
from decklog.conductor.settings.plan import read_back
from decklog.conductor.stages import is_cut_anew
from decklog.conductor.working import WorkAttempt
from decklog.core.errors import DecklogError

if TYPE_CHECKING:
    from decklog.conductor.site import RunContext
    from decklog.stores.approvals.inbox import Message
    from decklog.stores.tasks.claim import Claim


class PlanningAttempt(WorkAttempt):
    """One attempt at a plan. Whatever else it changed in its place is kept as all attempts are, and used for nothing."""

    @property
    def _wishes(self) -> "list[Message]":
        """What people wrote to a work item is for who works on it."""
        return []

    def _brief(self) -> str:
        site = self._site
        listed = site.repository.on_objects("ls-tree", "-r", "-z", "--name-only", str(self._facts["start"])).out
        files = [name.decode(errors="replace") for name in listed.split(b"\0") if name]
        checks = [f"{check.name} ({' '.join(check.command)})" for check in site.configuration.gates]
        refused = site.stages.was_denied(self._task) or (self._task.reason if self._task.failures else None)
        goal = site.log.runs.get(site.run_id).goal
        what = proposal.of_a_stuck_piece(self._task, goal) if self._is_anew else proposal.of_a_goal(self._task.objective)
        return proposal.brief(what, files, checks, refused=refused)

    @property
    def _is_anew(self) -> bool:
        return is_cut_anew(self._task)

    def _judge(self, outcome: SessionOutcome, kept: dict[str, Any]) -> None:
        content = self._site.repository.read(str(kept["folder"]), proposal.FILE)
        try:
            goal = self._task.title if self._is_anew else self._task.objective
            proposed = proposal.read(content, outcome.text, goal, self._site.stages.names())
            self._site.configuration.check_plan(proposed)
        except DecklogError as problem:
            words = " ".join(part for part in (problem.message + ".", problem.hint) if part)
            self._site.stages.unfinished(self._claim, "bad-plan", words)
            return
        self._site.stages.proposed(self._claim, proposal.as_json(proposed))


def go_on_with(site: "RunContext", claim: "Claim") -> bool:
    """Work a plan that a person said yes to; False when there is none yet."""
    kept = claim.task.inputs.get("plan")
    if kept is None or not site.stages.was_granted(claim.task):
        return False
    site.stages.planned(claim, read_back(kept))
    return True
