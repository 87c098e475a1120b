"""State documents of a session and its groups, and the iterations of an investigation."""

from typing import TYPE_CHECKING

from decklog.core.errors import DecklogError, NotFound
from decklog.plugins.legacy.bazinga.base import CallRefused, Desk, answers, check, from_json_text, one_of, told
from decklog.plugins.legacy.bazinga.program.reply import ProgramReply
from decklog.plugins.legacy.bazinga.rules import (
    STATE_TYPES,
    validate_investigation_inputs,
    validate_scope_global_or_group,
    validate_scope_group_only,
)
from decklog.stores.artifacts.states import InvestigationStatus

if TYPE_CHECKING:
    from typing import Any

    from decklog.plugins.legacy.bazinga.program.usage import UsageValues


class BazingaStates(Desk):
    """Saves states, of which every version is kept, and reads the newest."""

    @answers
    def save_state(self, session_id: str, state_type: str, state_data: "Any", group_id: str = "global") -> "dict[str, Any]":
        """Save the present state of one type and group."""
        _check_state(state_type, group_id)
        self.log.states.save(session_id, state_type, state_data, group_id=group_id)
        return {"success": True, "session_id": session_id, "state_type": state_type, "group_id": group_id}

    @answers
    def get_latest_state(self, session_id: str, state_type: str, group_id: str = "global") -> "Any":
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
    ) -> "dict[str, Any]":
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
            return {"success": False, "error": told(problem), "atomic": False}
        return {
            "success": True,
            "atomic": True,
            "state_saved": saved["state_saved"],
            "event_saved": saved["event_saved"],
            "event_id": self.number(session_id, int(str(saved["event_id"]).rpartition(":")[2])),
            "iteration": iteration,
            "idempotent": saved["already"],
            "redacted": saved["redacted"],
        }


def _document(name: str, given: "Any") -> "Any":
    return from_json_text(name, given) if isinstance(given, str) else given


def _check_state(state_type: str, group_id: str) -> None:
    one_of("state_type", state_type, STATE_TYPES)
    check(validate_scope_group_only(group_id) if state_type == "investigation" else validate_scope_global_or_group(group_id))


# Commands

DESK = BazingaStates


def save_state(desk: BazingaStates, given: "UsageValues") -> ProgramReply:
    text = given.file("state-file") if given.get("json") is None else given.get("json")
    if text is None or (given.has("state-file") and given.get("json") is not None):
        from decklog.plugins.legacy.bazinga.program.usage import Misuse

        raise Misuse("give one state: as JSON, or with --state-file")
    state = from_json_text("state", text)
    saved = desk.save_state(given["session"], given["type"], state, given.text("group-id", "global"))
    return ProgramReply(saved, said=f"Saved {given['type']} state")


def get_state(desk: BazingaStates, given: "UsageValues") -> ProgramReply:
    return ProgramReply(desk.get_latest_state(given["session"], given["type"], given.text("group-id", "global")))


def save_investigation_iteration(desk: BazingaStates, given: "UsageValues") -> ProgramReply:
    state, event = given.file("state-file"), given.file("event-file")
    if state is None or event is None:
        from decklog.plugins.legacy.bazinga.program.usage import Misuse

        raise Misuse("--state-file and --event-file are required")
    iteration = given.whole("iteration")
    assert iteration is not None
    saved = desk.save_investigation_iteration(given["session"], given["group"], iteration, given["status"], state, event)
    return ProgramReply(saved, said=f"Saved investigation iteration {iteration}")
