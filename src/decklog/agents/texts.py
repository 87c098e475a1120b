"""Texts out of what programs send, whatever they put where a text should be."""

import json
from math import isfinite
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Any


def as_text(value: "Any") -> str:
    """Return a value as text: a text as it is, content blocks as the texts in them, anything else as JSON."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, list) and value and all(isinstance(block, dict) for block in value):
        return "\n".join(part for part in map(_block, value) if part)
    return json.dumps(value, ensure_ascii=False, sort_keys=True)


def _block(block: "dict[str, Any]") -> str:
    if isinstance(text := block.get("text"), str):
        return text
    if block.get("type") in ("image", "document"):
        return f"[{block['type']}]"
    return json.dumps(block, ensure_ascii=False, sort_keys=True)


def as_name(text: str) -> str:
    """Spell an id that somebody else made so that it can name a file or a run; two that would be spelled alike are told apart."""
    plain = "".join(character if character in _PLAIN else "_" for character in text)[:_LONGEST_NAME]
    if plain == text and plain:
        return plain
    from zlib import crc32

    return f"{plain}-{crc32(text.encode(errors='surrogatepass')):08x}"


_PLAIN = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_")
_LONGEST_NAME = 80
# Some levels fewer than a log takes, for what it will stand in.
_DEEPEST = 100
# More the ledger does not take of anything.
_MOST_COUNTED = 10**12


def text_or_none(value: "Any") -> str | None:
    """Return a text, and nothing for whatever else stands in its place."""
    return value if isinstance(value, str) and value else None


def storable(value: "Any") -> "Any":
    """Return a value with texts that any database takes: halves of a sign are put together or marked, and so is a zero sign.

    What needs no change is given as it is.
    """
    if isinstance(value, str):
        # Asked first: of what programs write nearly all is so, and it takes no time to tell.
        return value if value.isascii() and "\0" not in value else _storable_text(value)
    return value if _is_storable(value) else _spelled(value)


def tellable(value: "Any") -> "Any":
    """Return a value that an entry can tell: its texts storable, and as text what is no number or nested without end.

    Only for what is told of others' values: one who gets a value back must have it as it was, or be refused.
    """
    return value if _is_storable(value, _DEEPEST) else _told(value, 0)


def _is_storable(root: "Any", deepest: int | None = None) -> bool:
    """Return whether all texts and names of a value are such; with a bound, also whether all numbers are, and it is no deeper."""
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


def _spelled(value: "Any") -> "Any":
    if isinstance(value, dict):
        return {storable(name): storable(each) for name, each in value.items()}
    return [storable(each) for each in value] if isinstance(value, list) else value


def _told(value: "Any", depth: int) -> "Any":
    if isinstance(value, float) and not isfinite(value):
        return repr(value)
    if isinstance(value, (dict, list)) and depth >= _DEEPEST:
        return storable(json.dumps(value))
    if isinstance(value, dict):
        return {storable(name): _told(each, depth + 1) for name, each in value.items()}
    return [_told(each, depth + 1) for each in value] if isinstance(value, list) else storable(value)


def _storable_text(text: str) -> str:
    if "\0" in text:
        text = text.replace("\0", "\ufffd")
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def whole(value: "Any") -> int:
    """Read a count; what is none counts nothing, and neither does what no model and nobody's purse could have taken."""
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 < value <= _MOST_COUNTED else 0
