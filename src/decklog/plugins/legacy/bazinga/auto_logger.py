"""AutoLogger: writes down what the agents of one session answer, makes sure that it is there, and keeps count."""

from collections import Counter
from typing import TYPE_CHECKING

from decklog.plugins.legacy.bazinga.base import CallRefused, answers
from decklog.plugins.legacy.bazinga.logs.logs import Logs, newest
from decklog.plugins.legacy.bazinga.program.reply import ProgramReply

if TYPE_CHECKING:
    import os
    from typing import Any

    from decklog.core.clock import Clock
    from decklog.plugins.legacy.bazinga.program.usage import UsageValues


class AutoLogger(Logs):
    """One session's logger. What it can't write it counts and says, and goes on: work does not stop for its log."""

    def __init__(
        self,
        db_path: "str | os.PathLike[str]",
        session_id: str = "",
        quiet: bool = False,
        *,
        project_root: "str | os.PathLike[str] | None" = None,
        clock: "Clock | None" = None,
    ) -> None:
        super().__init__(db_path, quiet, project_root=project_root, clock=clock)
        self.session_id = session_id
        self.last_error: str | None = None
        self._logged: Counter[str] = Counter()
        self._failed = 0

    def log_agent_response(
        self, agent_type: str, content: str, iteration: int | None = None, agent_id: str | None = None
    ) -> "dict[str, Any]":
        """Log an answer, and read it back by its number; what the log refuses comes back as `success: false`."""
        try:
            answer = self.log_interaction(self.session_id, agent_type, content, iteration, agent_id)
            if answer["success"]:
                self.log.journal.get(self.session_id, self._last)
        except CallRefused as problem:
            answer = {"success": False, "error": str(problem)}
        if answer["success"]:
            self._logged[agent_type] += 1
        else:
            self._failed += 1
            self.last_error = answer["error"]
        return answer

    def get_stats(self) -> "dict[str, Any]":
        """Count what this logger wrote and what it could not."""
        logged = sum(self._logged.values())
        return {
            "session_id": self.session_id,
            "attempts": logged + self._failed,
            "logged": logged,
            "failed": self._failed,
            "by_agent": dict(self._logged),
            "last_error": self.last_error,
        }

    @answers
    def verify_session_logs(self) -> "dict[str, Any]":
        """Count the session's interactions by agent, whoever wrote them, and check that nothing was changed or lost since."""
        self.expect_session(self.session_id)
        found = newest(self, self.session_id, ("interaction",), -1)
        by_agent = Counter(entry.agent or "unknown" for entry in found)
        return {
            "session_id": self.session_id,
            "total_logs": len(found),
            "by_agent": {agent: by_agent[agent] for agent in sorted(by_agent)},
            "verified": self.log.journal.verify(self.session_id).ok,
        }


# Commands


def DESK(path: str, quiet: bool, *, project_root: str | None) -> AutoLogger:
    """Open a logger; the command says for which session."""
    return AutoLogger(path, quiet=quiet, project_root=project_root)


def auto_logger(desk: AutoLogger, given: "UsageValues") -> ProgramReply:
    desk.session_id = given["session"]
    answer = desk.log_agent_response(given["agent"], given["content"], given.whole("iteration"), given.get("agent_id"))
    return ProgramReply(answer)
