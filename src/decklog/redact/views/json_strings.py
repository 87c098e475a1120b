"""The strings and names of a JSON-like value. It needs no rules: a call with a small value does without them."""

from typing import Any

from decklog.redact.names import known_kind
from decklog.redact.patterns.prefilter import may_hold_secret


def strings_in(root: Any) -> list[str] | None:
    """Give every string and name in a value; None if one of its names announces a secret."""
    strings: list[str] = []
    stack = [root]
    while stack:
        node = stack.pop()
        if isinstance(node, str):
            strings.append(node)
        elif isinstance(node, list | tuple):
            stack += node
        elif isinstance(node, dict):
            for name in node:
                if isinstance(name, str) and (name in ("key", "Key") or known_kind(name)):
                    return None
            stack += node
            stack += node.values()
    return strings


def may_hold(value: Any, most: int) -> bool:
    """Tell whether a value could hold a secret; False is certain. A value of more strings than `most` is not looked through."""
    strings = strings_in(value)
    # One by one: beside others a string may not show what it shows alone.
    return strings is None or len(strings) > most or any(map(may_hold_secret, strings))
