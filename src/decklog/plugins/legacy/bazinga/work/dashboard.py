"""The dashboard: one moment of a session, all of it from one read."""

from typing import TYPE_CHECKING

from decklog.plugins.legacy.bazinga.base import answers
from decklog.plugins.legacy.bazinga.logs.logs import KINDS, log_row, newest
from decklog.plugins.legacy.bazinga.logs.tokens import Tokens
from decklog.plugins.legacy.bazinga.program.reply import ProgramReply
from decklog.plugins.legacy.bazinga.work.criteria import BazingaCriteria
from decklog.plugins.legacy.bazinga.work.groups import BazingaGroups
from decklog.plugins.legacy.bazinga.work.sessions import BazingaSessions
from decklog.plugins.legacy.bazinga.work.states import BazingaStates

if TYPE_CHECKING:
    from typing import Any

    from decklog.plugins.legacy.bazinga.program.usage import UsageValues

_RECENT = 10


class Dashboard(BazingaSessions, BazingaStates, BazingaGroups, Tokens, BazingaCriteria):
    """Puts together what a person looks at."""

    @answers
    def get_dashboard_snapshot(self, session_id: str) -> "dict[str, Any]":
        """Return a session, its states, groups, tokens, criteria and newest entries, as they were at one moment.

        `recent_logs` are the newest entries of all three kinds.
        """
        return self.log.db.read(lambda: self._snapshot(session_id))

    def _snapshot(self, session_id: str) -> "dict[str, Any]":
        recent = [log_row(self, entry) for entry in newest(self, session_id, KINDS, _RECENT)]
        return {
            "session": self.get_session(session_id),
            "orchestrator_state": self.get_latest_state(session_id, "orchestrator"),
            "pm_state": self.get_latest_state(session_id, "pm"),
            "task_groups": self.get_task_groups(session_id),
            "token_summary": self.get_token_summary(session_id),
            "recent_logs": recent,
            "criteria": self.get_success_criteria(session_id),
        }


# Commands

DESK = Dashboard


def dashboard_snapshot(desk: Dashboard, given: "UsageValues") -> ProgramReply:
    return ProgramReply(desk.get_dashboard_snapshot(given["session"]))
