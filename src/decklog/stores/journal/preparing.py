"""An entry's columns, checked and redacted but for its place and its hash: all that can be done away from the database."""

from decklog.db.where import enum_of
from decklog.errors import Invalid
from decklog.stores.journal import chain
from decklog.stores.journal.entry import Confidence, EntryKind, ReasoningPhase
from decklog.stores.journal.rows import COLUMNS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from decklog.values import Values

NOTHING: "dict[str, Any]" = dict.fromkeys(COLUMNS)
_WRITABLE: "dict[str, str]" = {kind: kind.value for kind in EntryKind if kind is not EntryKind.CHANGE}


def checked(given: "dict[str, Any]") -> "dict[str, Any]":
    """Check what an entry means, and read its enumerations."""
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
        given["phase"] = enum_of(ReasoningPhase, phase, "phase")
    if (confidence := given.get("confidence")) is not None:
        given["confidence"] = enum_of(Confidence, confidence, "confidence")
    return given


def columns_of(values: "Values", given: "dict[str, Any]") -> "dict[str, Any]":
    """Give a checked entry's columns, in their order, with every secret replaced."""
    columns = {**NOTHING, **given}
    columns["redacted"] = int(values.bind_into(columns, given))
    return columns


def prepared(values: "Values", given: "dict[str, Any]") -> "tuple[Any, ...]":
    """Check and redact an entry ahead of its writing; behind its columns is room for a seal."""
    return (*columns_of(values, checked(given)).values(), None)


def sealed(values: "Values", given: "dict[str, Any]") -> "tuple[Any, ...]":
    """Do so in another process, and write it as it is hashed, too: what is left to do is numbering and chaining."""
    columns = tuple(columns_of(values, checked(given)).values())
    return (*columns, chain.seal(columns))


def change_columns(
    *, stream: str, table: str, record_id: str, image: str, did: str, group_id: str | None, task_id: str | None, redacted: bool
) -> "dict[str, Any]":
    """Tell what a record became as an entry's columns, but for its note, its time and who did it.

    Image and ids are made of column values, which were redacted on their way to the row.
    """
    return {
        **NOTHING,
        "stream": stream,
        "kind": "change",
        "subtype": did,
        "group_id": group_id,
        "task_id": task_id,
        "redacted": int(redacted),
        "record_table": table,
        "record_id": record_id,
        "payload": image,
    }
