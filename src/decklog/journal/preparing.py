"""An entry's columns, checked and redacted but for its place and its hash: all that can be done away from the database."""

from collections.abc import Collection
from typing import Any

from decklog.core.errors import Invalid
from decklog.db.where import enum_of
from decklog.journal.entry import Confidence, EntryKind, ReasoningPhase
from decklog.journal.rows import COLUMNS
from decklog.records.values import Values

NOTHING: dict[str, Any] = dict.fromkeys(COLUMNS)
_INTERACTION = {**NOTHING, "kind": "interaction"}
# Any text does for these.
_UNCHECKED = frozenset({"stream", "body", "subtype", "agent", "agent_id", "group_id", "task_id", "key"})
_WRITABLE: dict[str, str] = {kind: kind.value for kind in EntryKind if kind is not EntryKind.CHANGE}


def checked(given: dict[str, Any]) -> dict[str, Any]:
    """Check what an entry means, and write its enumerations as the columns have them: what is hashed is what will be read."""
    kind = given["kind"]
    plain = _WRITABLE.get(kind) if isinstance(kind, str) else None
    given["kind"] = plain or enum_of(EntryKind, kind, "kind").value
    if given["kind"] == "change":
        raise Invalid("entries of kind change are written by the stores alone; use event for your own")
    payload = given.get("payload")
    if payload is None and given.get("body") is None:
        raise Invalid("an entry needs a body or a payload")
    if payload is not None and not isinstance(payload, (dict, list, tuple)):
        raise Invalid("a payload is a JSON object or list; put plain text in the body", field="payload")
    if (phase := given.get("phase")) is not None:
        given["phase"] = enum_of(ReasoningPhase, phase, "phase").value
    if (confidence := given.get("confidence")) is not None:
        given["confidence"] = enum_of(Confidence, confidence, "confidence").value
    return given


def columns_of(values: Values, given: dict[str, Any]) -> dict[str, Any]:
    """Return a checked entry's columns, in their order, with every secret replaced."""
    # A caller that gives all of them gives them in their order.
    columns = given if len(given) == len(NOTHING) else {**NOTHING, **given}
    columns["redacted"] = int(values.bind_into(columns, given))
    return columns


def row_of(values: Values, given: dict[str, Any]) -> Collection[Any]:
    """Check and redact one of many entries, an interaction by default, and return its columns."""
    columns = {**_INTERACTION, **given}
    if columns["body"] is None or not _UNCHECKED.issuperset(given):
        checked(columns)
    columns["redacted"] = int(values.bind_into(columns, given))
    return columns.values()


def prepared(values: Values, given: dict[str, Any]) -> tuple[Any, ...]:
    """Check and redact an entry ahead of its writing, maybe in another process: what is left to do is numbering and hashing."""
    return tuple(columns_of(values, checked(given)).values())


def change_columns(
    table: str, named: tuple[str, str, str | None, str | None, bool], image: str, did: str, body: str | None, redacted: bool
) -> list[Any]:
    """Return what a record became as an entry's columns, but for its time and who did it.

    Image and ids are made of column values, which were redacted on their way to the row. A record may say so itself, when what
    was redacted is a document it names by its digest.
    """
    stream, record_id, group_id, task_id, is_cut = named
    # In the order of the columns.
    return [
        *(None, stream, None, None, None, "change", did, None, None, group_id, task_id, None, None, None),
        *(1 if redacted or is_cut else 0, None, table, record_id, None, None, None, body, image),
    ]
