"""What was said to a model and by it, out of the messages that spans carry: lists of parts, or JSON of them in a text."""

from typing import TYPE_CHECKING

from decklog.importing.row import parsed_json
from decklog.journal.entry import EntryKind

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

_ANSWERS = ("assistant", "model", "ai", "")


def said_in(messages: "Any") -> "list[tuple[EntryKind, str, str]]":
    """Return what a person asked, what a model thought and what it said, each as one text; what is none of these says nothing."""
    found = parsed_json(messages) if isinstance(messages, str) else messages
    texts: dict[tuple[EntryKind, str], list[str]] = {}
    for message in found if isinstance(found, list) else ():
        if isinstance(message, dict):
            for place, text in _texts(message):
                texts.setdefault(place, []).append(text)
    return [(kind, subtype, "\n".join(told)) for (kind, subtype), told in texts.items()]


def _texts(message: "dict[str, Any]") -> "Iterator[tuple[tuple[EntryKind, str], str]]":
    role = str(message.get("role") or "")
    parts = message.get("parts", message.get("content"))
    for part in parts if isinstance(parts, list) else [parts]:
        kind, text = ("text", part) if isinstance(part, str) else _part(part)
        if not text:
            continue
        if kind in ("reasoning", "thinking"):
            yield (EntryKind.REASONING, "thought"), text
        elif kind == "text" and role in _ANSWERS:
            yield (EntryKind.INTERACTION, "said"), text
        elif kind == "text" and role == "user":
            yield (EntryKind.INTERACTION, "prompt"), text


def _part(part: "Any") -> tuple[str, str]:
    if not isinstance(part, dict):
        return "", ""
    text = part.get("content", part.get("text"))
    return str(part.get("type") or "text"), text if isinstance(text, str) else ""
