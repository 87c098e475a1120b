"""File changes in tool calls."""

import hashlib
from collections.abc import Iterator
from typing import Any

from decklog.agents.acp import tool_calls
from decklog.agents.acp.exchange import dict_of, list_of
from decklog.agents.events import Noted
from decklog.agents.texts import as_text

# Comparing longer texts line by line is too slow; only their digests are recorded.
_MOST_COMPARED = 200_000


def changed(place: dict[str, Any], call_id: str, call: dict[str, Any]) -> Iterator[Noted]:
    """Yield an event for each file change of a call."""
    for number, change in enumerate(tool_calls.diffs_of(call)):
        text, facts = _as_patch(change) or _as_texts(change)
        yield Noted(**place, name="diff", text=text, facts={"call": call_id, **facts}, note_id=f"diff:{call_id}:{number}")


def _as_patch(change: dict[str, Any]) -> tuple[str, dict[str, Any]] | None:
    """Return a change in the form of protocol version 2: a patch, which may cover several files."""
    text = dict_of(change.get("patch")).get("text")
    paths = [as_text(each.get("path")) for each in list_of(change.get("changes"))]
    return (text, {"path": ", ".join(paths)}) if isinstance(text, str) else None


def _as_texts(change: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    path, before, after = as_text(change.get("path")), as_text(change.get("oldText")), as_text(change.get("newText"))
    return _difference(path, before, after), {"path": path, "before": _digest(before), "after": _digest(after)}


def _difference(path: str, before: str, after: str) -> str:
    if len(before) + len(after) > _MOST_COMPARED:
        return f"{path}: {len(before)} characters became {len(after)}"
    from difflib import unified_diff

    lines = unified_diff(before.splitlines(), after.splitlines(), path, path, lineterm="", n=2)
    return "\n".join(lines) or f"{path}: as it was"


def _digest(text: str) -> str | None:
    return hashlib.sha256(text.encode(errors="replace")).hexdigest() if text else None
