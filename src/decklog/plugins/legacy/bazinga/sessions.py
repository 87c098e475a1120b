"""Sessions, which are runs, their state documents, and the dashboard of one."""

from typing import Any

from decklog.core.errors import DecklogError, NotFound
from decklog.importing.exports import every
from decklog.plugins.importers.bazinga.rows import session_row
from decklog.plugins.legacy.bazinga.base import (
    BazingaBase,
    CallRefused,
    answers,
    check,
    error_text,
    filled,
    from_json_text,
    json_text,
    one_of,
)
from decklog.plugins.legacy.bazinga.logs import KINDS, Tokens, log_row, newest
from decklog.plugins.legacy.bazinga.rules import (
    STATE_TYPES,
    VALID_SESSION_STATUSES,
    validate_investigation_inputs,
    validate_scope_global_or_group,
    validate_scope_group_only,
)
from decklog.plugins.legacy.bazinga.work import BazingaCriteria, BazingaGroups
from decklog.stores.artifacts.states import InvestigationStatus
from decklog.stores.runs.run import ENDED, RunMode, RunStatus

MODES = ("simple", "parallel")
_SHORT = ("session_id", "mode", "status", "start_time", "created_at")


class BazingaSessions(BazingaBase):
    """Starts sessions and follows their status."""

    @answers
    def create_session(
        self,
        session_id: str,
        mode: str,
        requirements: str,
        initial_branch: str | None = None,
        metadata: str | dict[str, Any] | None = None,
    ) -> dict[str, Any]:
        """Create a session; one that is there already comes back as it is."""
        filled("session_id", session_id)
        filled("requirements", requirements)
        one_of("mode", mode, MODES)
        facts, branch = _metadata(metadata), initial_branch or "main"
        run = self.log.runs.start(requirements, run_id=session_id, mode=RunMode(mode), branch=branch, metadata=facts)
        row = session_row(run, json_text)
        if run.already:
            return {name: row[name] for name in _SHORT}
        return {"success": True, **{name: row[name] for name in (*_SHORT, "initial_branch", "metadata")}}

    @answers
    def update_session_status(self, session_id: str, status: str) -> None:
        """Set a session's status. Any status may follow any other; the end time follows."""
        if status not in VALID_SESSION_STATUSES:
            raise CallRefused(f"Invalid status: {status!r}", valid_statuses=list(VALID_SESSION_STATUSES))
        if status in ENDED:
            # Callers of bazinga check their criteria themselves; the journal keeps that this end was not checked here.
            self.log.runs.finish(session_id, status=RunStatus(status), force=True, reason="set through bazinga-db")
        else:
            self.log.runs.update(session_id, status=RunStatus(status))

    @answers
    def get_session(self, session_id: str) -> dict[str, Any] | None:
        """Return a session's row; None when there is none."""
        try:
            return session_row(self.log.runs.get(session_id), json_text)
        except NotFound:
            return None

    @answers
    def list_sessions(self, limit: int = 10) -> list[dict[str, Any]]:
        """List sessions, newest first; a negative limit means all of them."""
        found = every(self.log.runs.find, None if limit < 0 else limit)
        return [session_row(run, json_text) for run in found]


def _metadata(given: str | dict[str, Any] | None) -> dict[str, Any] | None:
    value = _document("metadata", given)
    if value is not None and not isinstance(value, dict):
        raise CallRefused("metadata must be a JSON object")
    return value


class BazingaStates(BazingaBase):
    """Saves states, of which every version is kept, and reads the newest."""

    @answers
    def save_state(self, session_id: str, state_type: str, state_data: Any, group_id: str = "global") -> dict[str, Any]:
        """Save the present state of one type and group."""
        one_of("state_type", state_type, STATE_TYPES)
        validate = validate_scope_group_only if state_type == "investigation" else validate_scope_global_or_group
        check(validate(group_id))
        self.log.states.save(session_id, state_type, state_data, group_id=group_id)
        return {"success": True, "session_id": session_id, "state_type": state_type, "group_id": group_id}

    @answers
    def get_latest_state(self, session_id: str, state_type: str, group_id: str = "global") -> Any:
        """Return the present state; None when there is none."""
        check(validate_scope_global_or_group(group_id))
        if state_type not in STATE_TYPES or (state_type == "investigation" and group_id.lower() == "global"):
            return None
        try:
            return self.log.states.get(session_id, state_type, group_id=group_id).document
        except NotFound:
            return None

    def save_investigation_iteration(
        self, session_id: str, group_id: str, iteration: int, status: str, state_data: str, event_payload: str
    ) -> dict[str, Any]:
        """Save one iteration of an investigation: its state and its event, both or neither.

        An iteration sent again keeps its first event, and never takes the state back.
        """
        check(validate_investigation_inputs(group_id, iteration, status))
        state, event = _document("state_data", state_data), _document("event_payload", event_payload)
        if not isinstance(event, dict):
            raise CallRefused("event_payload must be a JSON object")
        try:
            saved = self.log.states.record_investigation(
                session_id, group_id, iteration, InvestigationStatus(status), state, event
            )
        except DecklogError as problem:
            return {"success": False, "error": error_text(problem), "atomic": False}
        return {
            "success": True,
            "atomic": True,
            **{name: saved[name] for name in ("state_saved", "event_saved")},
            "event_id": self.number(session_id, int(str(saved["event_id"]).rpartition(":")[2])),
            "iteration": iteration,
            "idempotent": saved["already"],
            "redacted": saved["redacted"],
        }


def _document(name: str, given: Any) -> Any:
    return from_json_text(name, given) if isinstance(given, str) else given


_RECENT = 10


class Dashboard(BazingaSessions, BazingaStates, BazingaGroups, Tokens, BazingaCriteria):
    """Puts together what a person looks at."""

    @answers
    def get_dashboard_snapshot(self, session_id: str) -> dict[str, Any]:
        """Return a session, its states, groups, tokens, criteria and newest entries, as they were at one moment.

        `recent_logs` are the newest entries of all three kinds.
        """
        return self.log.db.read(lambda: self._snapshot(session_id))

    def _snapshot(self, session_id: str) -> dict[str, Any]:
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
