"""Sessions, which are Decklog's runs."""

from typing import TYPE_CHECKING

from decklog.plugins.legacy.bazinga.base import MOST_ROWS, CallRefused, Desk, answers, filled, from_json_text, json_text, stamp
from decklog.plugins.legacy.bazinga.program.reply import ProgramReply
from decklog.plugins.legacy.bazinga.rules import VALID_SESSION_STATUSES
from decklog.stores.runs.run import ENDED, Run, RunMode, RunStatus

if TYPE_CHECKING:
    from typing import Any

    from decklog.plugins.legacy.bazinga.program.usage import UsageValues

MODES = ("simple", "parallel")
_SHORT = ("session_id", "mode", "status", "start_time", "created_at")


class BazingaSessions(Desk):
    """Starts sessions and follows what becomes of them."""

    @answers
    def create_session(
        self,
        session_id: str,
        mode: str,
        requirements: str,
        initial_branch: str | None = None,
        metadata: "str | dict[str, Any] | None" = None,
    ) -> "dict[str, Any]":
        """Create a session; one that is there already comes back as it is."""
        filled("session_id", session_id)
        filled("requirements", requirements)
        if mode not in MODES:
            raise CallRefused(f"Invalid mode: {mode!r}. Must be one of: {', '.join(MODES)}")
        run = self.log.runs.start(
            requirements,
            run_id=session_id,
            mode=RunMode(mode),
            branch=initial_branch or "main",
            metadata=_metadata(metadata),
        )
        row = session_row(run)
        if run.already:
            return {name: row[name] for name in _SHORT}
        return {"success": True, **{name: row[name] for name in (*_SHORT, "initial_branch", "metadata")}}

    @answers
    def update_session_status(self, session_id: str, status: str) -> None:
        """Give a session a status; any may follow any other, and the end is stamped or cleared with it."""
        if status not in VALID_SESSION_STATUSES:
            raise CallRefused(f"Invalid status: {status!r}", valid_statuses=list(VALID_SESSION_STATUSES))
        if status in ENDED:
            # Callers of bazinga check their criteria themselves; the journal keeps that this end was not checked here.
            self.log.runs.finish(session_id, status=RunStatus(status), force=True, reason="set through bazinga-db")
        else:
            self.log.runs.update(session_id, status=RunStatus(status))

    @answers
    def get_session(self, session_id: str) -> "dict[str, Any] | None":
        """Return a session's row; None when there is none."""
        from decklog.core.errors import NotFound

        try:
            return session_row(self.log.runs.get(session_id))
        except NotFound:
            return None

    @answers
    def list_sessions(self, limit: int = 10) -> "list[dict[str, Any]]":
        """List sessions, newest first; a negative limit means all of them."""
        found: list[Run] = []
        after = None
        while limit < 0 or len(found) < limit:
            wanted = MOST_ROWS if limit < 0 else min(MOST_ROWS, limit - len(found))
            page = self.log.runs.find(limit=wanted, after=after)
            found += page
            after = page.next
            if after is None:
                break
        return [session_row(run) for run in found]


def _metadata(given: "str | dict[str, Any] | None") -> "dict[str, Any] | None":
    if given is None or isinstance(given, dict):
        return given
    value = from_json_text("metadata", given)
    if not isinstance(value, dict):
        raise CallRefused("metadata must be a JSON object")
    return value


def session_row(run: Run) -> "dict[str, Any]":
    """Return a run as a row of bazinga's table of sessions."""
    return {
        "session_id": run.id,
        "start_time": stamp(run.started_at),
        "end_time": stamp(run.ended_at),
        "mode": run.mode and str(run.mode),
        "original_requirements": run.goal or None,
        "status": str(run.status),
        "initial_branch": run.branch,
        "metadata": json_text(run.metadata or None),
        "created_at": stamp(run.started_at),
    }


# Commands

DESK = BazingaSessions


def create_session(desk: BazingaSessions, given: "UsageValues") -> ProgramReply:
    made = desk.create_session(
        given["id"], given["mode"], given["requirements"], given.get("initial-branch"), given.get("metadata")
    )
    said = f"Session created: {given['id']}" if made.get("success") else f"Session already exists: {given['id']}"
    return ProgramReply(made, said=said)


def get_session(desk: BazingaSessions, given: "UsageValues") -> ProgramReply:
    row = desk.get_session(given["id"])
    if row is None:
        raise CallRefused(f"Session not found: {given['id']}")
    return ProgramReply(row)


def list_sessions(desk: BazingaSessions, given: "UsageValues") -> ProgramReply:
    limit = given.whole("limit")
    return ProgramReply(desk.list_sessions(10 if limit is None else limit))


def update_session_status(desk: BazingaSessions, given: "UsageValues") -> ProgramReply:
    return _updated(desk, given["id"], given["status"])


def update_session(desk: BazingaSessions, given: "UsageValues") -> ProgramReply:
    from decklog.plugins.legacy.bazinga.program.usage import Misuse

    status = given.get("status")
    if status is None or status.startswith("-"):
        raise Misuse("--status STATUS is required")
    return _updated(desk, given["id"], status)


def complete_session(desk: BazingaSessions, given: "UsageValues") -> ProgramReply:
    return _updated(desk, given["id"], "completed")


def _updated(desk: BazingaSessions, session_id: str, status: str) -> ProgramReply:
    desk.update_session_status(session_id, status)
    return ProgramReply(said=f"Session {session_id} status: {status}")
