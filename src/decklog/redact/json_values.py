"""Redaction of JSON-like values, string by string, so that what is stored stays well formed."""

from typing import Any

from decklog.redact import engine, phrases, sections, values
from decklog.redact.names import known_kind
from decklog.redact.views.json_strings import strings_in

# What lies between two strings that are looked at together: nothing goes on across it.
_APART = "\n\n\x01\n\n"


def scan_value(value: Any) -> tuple[Any, bool]:
    """Redact every string in a value; the same object comes back when there was nothing to redact."""
    if _is_clean(value):
        return value, False
    result = _Walk().value(value, None)
    return result, result is not value


def _is_clean(root: Any) -> bool:
    """Tell whether no name in a value announces a secret and none of its strings has a sign of one."""
    strings = strings_in(root)
    return strings is not None and engine.is_clean(_APART.join(strings))


class _Walk:
    """One pass over a value, on a stack of its own so that depth is no danger."""

    def value(self, root: Any, _name: str | None) -> Any:
        order: list[Any] = []
        signing: set[int] = set()
        stack = [root]
        while stack:
            node = stack.pop()
            if isinstance(node, dict):
                order.append(node)
                stack.extend(item for item in node.values() if isinstance(item, dict | list | tuple))
                signing.update(
                    id(item) for name, item in node.items() if isinstance(item, dict) and sections.is_about_signing(name)
                )
            elif isinstance(node, list | tuple):
                order.append(node)
                stack.extend(item for item in node if isinstance(item, dict | list | tuple))
        if isinstance(root, str):
            return redacted_text(root)
        done: dict[int, Any] = {}
        for node in reversed(order):
            done[id(node)] = _dict(node, done, is_signing=id(node) in signing) if isinstance(node, dict) else _list(node, done)
        return done.get(id(root), root)


def redacted_text(text: str) -> str:
    return engine.scan(text)[0]


def _item(item: Any, done: dict[int, Any]) -> Any:
    if isinstance(item, str):
        return redacted_text(item)
    return done[id(item)] if isinstance(item, dict | list | tuple) else item


def _list(node: list[Any] | tuple[Any, ...], done: dict[int, Any]) -> list[Any] | tuple[Any, ...]:
    items = [_item(item, done) for item in node]
    return node if all(new is old for new, old in zip(items, node, strict=True)) else items


def _dict(node: dict[Any, Any], done: dict[int, Any], *, is_signing: bool) -> dict[Any, Any]:
    changed = False
    result: dict[Any, Any] = {}
    for key, item in node.items():
        new_key = redacted_text(key) if isinstance(key, str) else key
        new_item = (
            _named("signing_key" if is_signing and key in ("key", "Key") else key, item)
            if isinstance(key, str) and isinstance(item, str)
            else _item(item, done)
        )
        if new_key is not key:
            new_key = _free(new_key, node, result)
        changed = changed or new_key is not key or new_item is not item
        result[new_key] = new_item
    return result if changed else node


def _free(key: str, *taken: dict[Any, Any]) -> str:
    """Number a redacted key that another one has already become, so that neither is lost."""
    name, number = key, 2
    while any(name in node for node in taken):
        name, number = f"{key}#{number}", number + 1
    return name


def _named(key: str, item: str) -> str:
    kind = known_kind(key)
    if kind is None or values.is_label(key, item) or phrases.is_label(item) or not announces(kind, item):
        return redacted_text(item)
    return f"[redacted:{kind}]"


def announces(kind: str, item: str) -> bool:
    """Tell whether a string is a secret because of its key alone."""
    if values.is_harmless(item):
        return False
    is_certain = kind in ("password", "secret") or (kind in ("token", "api-key") and " " not in item)
    return is_certain or values.looks_random(item)
