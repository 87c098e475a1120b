"""The router: who comes next after an agent's report."""

from typing import TYPE_CHECKING

from decklog.core.errors import DecklogError
from decklog.plugins.legacy.bazinga.base import answers, filled, told
from decklog.plugins.legacy.bazinga.program.reply import ProgramReply
from decklog.plugins.legacy.bazinga.work.groups import BazingaGroups, group_row, groups_of
from decklog.stores.workflow.router import TestingMode

if TYPE_CHECKING:
    from typing import Any

    from decklog.plugins.legacy.bazinga.program.usage import UsageValues

# In the order in which the router has always answered; what is new comes after.
_NAMED = {
    "agent": "current_agent",
    "status": "response_status",
    "next_agent": "next_agent",
    "action": "action",
    "group_id": "group_id",
    "run_id": "session_id",
    "include_context": "include_context",
}


class Router(BazingaGroups):
    """Routes by the workflow and by what is known of the session's groups."""

    @answers
    def route(
        self, current_agent: str, status: str, session_id: str, group_id: str | None = None, testing_mode: str = "full"
    ) -> "dict[str, Any]":
        """Decide who comes next; a report that the workflow does not know is answered with a way out."""
        filled("current_agent", current_agent)
        filled("status", status)
        mode = TestingMode(testing_mode)
        try:
            decided = self.log.db.read(lambda: self._decide(current_agent, status, session_id, group_id, mode))
        except DecklogError as problem:
            return _refused(problem)
        answer = {"success": True, **{new: decided.pop(old) for old, new in _NAMED.items()}, **decided}
        return {**answer, "group_id": group_id}

    def _decide(self, agent: str, status: str, session_id: str, group_id: str | None, mode: TestingMode) -> "dict[str, Any]":
        self.expect_session(session_id)
        groups = [group_row(group) for group in groups_of(self, session_id)]
        for group in groups:
            group["security_sensitive"] = bool(group["security_sensitive"])
        return {**self.log.workflow.route(agent, status, run_id=session_id, group_id=group_id, testing_mode=mode, groups=groups)}


def _refused(problem: DecklogError) -> "dict[str, Any]":
    refused: dict[str, Any] = {"success": False, "error": told(problem)}
    if problem.hint:
        refused["suggestion"] = problem.hint
    if "fallback_action" in problem.details:
        refused["error"] = problem.message
        refused["fallback_action"] = problem.details["fallback_action"]
    return refused


# Commands

DESK = Router


def route(desk: Router, given: "UsageValues") -> ProgramReply:
    from decklog.plugins.legacy.bazinga.program.usage import Misuse

    missing = [flag for flag in ("current-agent", "status", "session-id") if given.get(flag) is None]
    if missing:
        raise Misuse(f"Missing argument: {', '.join('--' + flag for flag in missing)}")
    mode = given.text("testing-mode", "full")
    if mode not in tuple(TestingMode):
        raise Misuse(f"--testing-mode must be one of {', '.join(TestingMode)}, got {mode!r}")
    found = desk.route(
        given.text("current-agent", ""),
        given.text("status", ""),
        given.text("session-id", ""),
        given.get("group-id"),
        mode,
    )
    return ProgramReply(found)
