"""Conversion of values that other programs send: storable texts, counts and times."""

import json
from math import isfinite
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from datetime import datetime


def as_text(value: Any) -> str:
    """Return a value as text: a string unchanged, content blocks as their texts, anything else as JSON."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, list) and value and all(isinstance(block, dict) for block in value):
        return "\n".join(part for part in map(_block, value) if part)
    return json.dumps(value, ensure_ascii=False, sort_keys=True)


def _block(block: dict[str, Any]) -> str:
    if isinstance(text := block.get("text"), str):
        return text
    if block.get("type") in ("image", "document"):
        return f"[{block['type']}]"
    return json.dumps(block, ensure_ascii=False, sort_keys=True)


def as_name(text: str) -> str:
    """Return a foreign id in a form that can name a file or a run. A checksum keeps changed ids distinct."""
    plain = "".join(character if character in _PLAIN else "_" for character in text)[:_LONGEST_NAME]
    if plain == text and plain:
        return plain
    from zlib import crc32

    return f"{plain}-{crc32(text.encode(errors='surrogatepass')):08x}"


_PLAIN = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_")
_LONGEST_NAME = 80
# Fewer levels than a log accepts, because the value becomes part of a payload.
_DEEPEST = 100
# Largest count that the ledger accepts.
_MOST_COUNTED = 10**12


def text_or_none(value: Any) -> str | None:
    """Return a non-empty string, or None for any other value."""
    return value if isinstance(value, str) and value else None


def dict_of(value: Any) -> dict[str, Any]:
    """Return a dict unchanged, and an empty dict for any other value."""
    return value if isinstance(value, dict) else {}


def list_of(value: Any) -> list[dict[str, Any]]:
    """Return the dicts of a list; empty for any other value."""
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def storable(value: Any) -> Any:
    """Return a value whose strings any database accepts: lone surrogates and NUL characters are replaced.

    A value that needs no change is returned unchanged.
    """
    if isinstance(value, str):
        # Fast path: most texts are ASCII.
        return value if value.isascii() and "\0" not in value else _storable_text(value)
    return value if _is_storable(value) else _storable_part(value, None)


def storable_value(value: Any) -> Any:
    """Return a value that a payload can hold: storable strings, and text for non-finite numbers and deep nesting.

    Only for values that are shown. A value that its owner reads back must be unchanged or rejected.
    """
    return value if _is_storable(value, _DEEPEST) else _storable_part(value, _DEEPEST)


def _is_storable(root: Any, deepest: int | None = None) -> bool:
    """Return whether all strings of a value are storable. With `deepest`, also check numbers and nesting depth."""
    nodes, depth = [root], 0
    while nodes:
        if depth == deepest:
            return False
        below: list[Any] = []
        for node in nodes:
            if isinstance(node, str):
                if not (node.isascii() and "\0" not in node) and _storable_text(node) is not node:
                    return False
            elif isinstance(node, dict):
                below += node
                below += node.values()
            elif isinstance(node, list):
                below += node
            elif deepest is not None and isinstance(node, float) and not isfinite(node):
                return False
        nodes, depth = below, depth + 1
    return True


def _storable_part(value: Any, levels: int | None) -> Any:
    """Return a value with storable strings. With `levels`, deeper values and non-finite numbers become text, too."""
    if isinstance(value, str):
        return _storable_text(value)
    if levels is not None and isinstance(value, float) and not isfinite(value):
        return repr(value)
    if not isinstance(value, (dict, list)):
        return value
    if levels == 0:
        return _storable_text(json.dumps(value))
    below = None if levels is None else levels - 1
    if isinstance(value, dict):
        return {storable(name): _storable_part(each, below) for name, each in value.items()}
    return [_storable_part(each, below) for each in value]


def _storable_text(text: str) -> str:
    if "\0" in text:
        text = text.replace("\0", "\ufffd")
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def whole(value: Any) -> int:
    """Return a count; 0 for other values and for counts beyond any real usage."""
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 < value <= _MOST_COUNTED else 0


def as_time(text: Any) -> "datetime | None":
    """Parse a timestamp; return None if it is invalid."""
    # Here, and not at the top: hooks need no times.
    from datetime import UTC, datetime

    if not isinstance(text, str):
        return None
    try:
        found = datetime.fromisoformat(text)
        if found.tzinfo is UTC:
            return found
        return found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)
    except (ValueError, OverflowError):
        # Near the limits of datetime, the time in UTC may be out of range.
        return None
