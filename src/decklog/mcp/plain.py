"""Values on their way to a client: plain JSON of bounded size, and cursors that say nothing of what is in them."""

import base64
import binascii
from typing import Any

from decklog.core.errors import Invalid

# Long texts are cut because they enter the conversation; the CLI shows all of them.
_LONGEST = 20_000


def plain(record: Any) -> dict[str, Any]:
    """Return a record as plain values, without what is empty, long texts cut."""
    return {name: bounded(value) for name, value in record.as_dict().items() if value not in (None, "", [], {})}


def bounded(value: Any) -> Any:
    """Cut long texts, wherever they stand."""
    if isinstance(value, str):
        return cut(value)
    if isinstance(value, list):
        return [bounded(item) for item in value]
    return {name: bounded(item) for name, item in value.items()} if isinstance(value, dict) else value


def cut(text: str, longest: int = _LONGEST) -> str:
    """Cut a text to a length, and say how much is left out."""
    return text if len(text) <= longest else f"{text[:longest]}… ({len(text) - longest} more)"


def sendable(value: Any) -> Any:
    """Return a value that any client can read: what is no character is replaced."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, (list, tuple)):
        return [sendable(item) for item in value]
    return {sendable(str(name)): sendable(item) for name, item in value.items()} if isinstance(value, dict) else value


def paged(data: dict[str, Any], page: Any) -> dict[str, Any]:
    """Return the items of a page with its cursor, which is null at the end."""
    return data if page.next is None else {**data, "next": base64.urlsafe_b64encode(str(page.next).encode()).decode()}


def place_of(cursor: str | None) -> str | None:
    """Read a cursor."""
    if cursor is None:
        return None
    try:
        return base64.b64decode(cursor.encode(), altchars=b"-_", validate=True).decode()
    except (binascii.Error, ValueError):
        raise Invalid("that is no cursor", hint="Take `next` of the answer before, or leave it out.", field="cursor") from None
