"""Events: what happened, with a payload, once for each key."""

from typing import TYPE_CHECKING

from decklog.journal.entry import Entry, EntryKind
from decklog.plugins.legacy.bazinga.base import CallRefused, Desk, answers, check, filled, from_json_text, reports, stamp
from decklog.plugins.legacy.bazinga.logs.logs import newest
from decklog.plugins.legacy.bazinga.program.reply import ProgramReply
from decklog.plugins.legacy.bazinga.rules import validate_scope_global_or_group

if TYPE_CHECKING:
    from typing import Any

    from decklog.plugins.legacy.bazinga.program.usage import UsageValues


class Events(Desk):
    """Saves events and lists them."""

    @reports
    def save_event(
        self,
        session_id: str,
        event_subtype: str,
        payload: "str | dict[str, Any] | list[Any]",
        idempotency_key: str | None = None,
        group_id: str = "global",
    ) -> "dict[str, Any]":
        """Save an event; with a key that is known for its subtype and group, the first event stays and comes back."""
        filled("event_subtype", event_subtype)
        check(validate_scope_global_or_group(group_id))
        entry = self.log.journal.append(
            session_id,
            f"Event: {event_subtype}",
            kind=EntryKind.EVENT,
            subtype=event_subtype,
            agent="system",
            group_id=group_id,
            payload=payload_of(payload),
            key=idempotency_key or None,
        )
        number = self.number(entry.stream, entry.seq)
        saved = {"success": True, "event_id": number, "session_id": session_id, "event_subtype": event_subtype}
        if entry.already:
            return {**saved, "idempotent": True, "message": "An event with this key is saved already; it was kept."}
        return {**saved, "redacted": entry.redacted}

    @answers
    def get_events(
        self, session_id: str, event_subtype: str | None = None, limit: int = 50, group_id: str | None = None
    ) -> "list[dict[str, Any]]":
        """List events, newest first."""
        if limit < 1:
            raise CallRefused(f"limit must be 1 or more, got {limit}")
        if group_id is not None:
            check(validate_scope_global_or_group(group_id))
        wanted: dict[str, Any] = {"kind": EntryKind.EVENT, "subtype": event_subtype, "group_id": group_id}
        return [event_row(self, entry) for entry in newest(self, session_id, (EntryKind.EVENT,), limit, **wanted)]


def payload_of(payload: "str | dict[str, Any] | list[Any]") -> "dict[str, Any] | list[Any]":
    """Read a payload, which is a JSON object or list."""
    value = from_json_text("payload", payload) if isinstance(payload, str) else payload
    if not isinstance(value, (dict, list)):
        raise CallRefused("payload must be a JSON object or list")
    return value


def event_row(desk: Desk, entry: Entry) -> "dict[str, Any]":
    return {
        "id": desk.number(entry.stream, entry.seq),
        "session_id": entry.stream,
        "timestamp": stamp(entry.at),
        "event_subtype": entry.subtype,
        "event_payload": entry.payload,
        "group_id": entry.group_id,
    }


# Commands

DESK = Events


def save_event(desk: Events, given: "UsageValues") -> ProgramReply:
    payload = given.file("payload-file") if given.get("payload") is None else given.get("payload")
    if payload is None or (given.has("payload-file") and given.get("payload") is not None):
        from decklog.plugins.legacy.bazinga.program.usage import Misuse

        raise Misuse("give one payload: as an argument, or with --payload-file")
    saved = desk.save_event(
        given["session"], given["subtype"], payload, given.get("idempotency-key"), given.text("group-id", "global")
    )
    return ProgramReply(saved, said=f"Saved event {given['subtype']}")


def get_events(desk: Events, given: "UsageValues") -> ProgramReply:
    from decklog.plugins.legacy.bazinga.program.usage import whole

    subtype, limit = given.get("subtype"), given.whole("limit", low=1)
    if given.get("most") is not None:
        limit = whole("limit", given["most"], low=1)
    return ProgramReply(desk.get_events(given["session"], subtype, 50 if limit is None else limit, given.get("group-id")))
