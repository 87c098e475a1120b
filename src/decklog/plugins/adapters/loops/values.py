"""Arguments and results of calls, as text and JSON that a log can hold; other values by their `repr`."""

import json
from math import isfinite
from typing import TYPE_CHECKING

from decklog.agents.entries import cut_of
from decklog.agents.texts import storable

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_DEEPEST = 20
_MOST_ITEMS = 1000
_LONGEST_REPR = 1000
# Python refuses to write out longer numbers.
_MOST_BITS = 10_000
_RECEIVERS = ("self", "cls")
_encode = json.JSONEncoder(ensure_ascii=False).encode


def as_json(value: "Any", depth: int = 0) -> "Any":
    """Return a value as JSON; what lies deeper than anybody reads, or is no JSON, by its `repr`."""
    if value is None or (isinstance(value, int) and value.bit_length() <= _MOST_BITS):
        return value
    if isinstance(value, str):
        return cut_of(storable(str(value)))[0]
    if isinstance(value, float):
        return value if isfinite(value) else repr(value)
    if depth < _DEEPEST and isinstance(value, dict) and len(value) <= _MOST_ITEMS:
        return {name_told(name): as_json(item, depth + 1) for name, item in value.items()}
    if depth < _DEEPEST and isinstance(value, (list, tuple)) and len(value) <= _MOST_ITEMS:
        return [as_json(item, depth + 1) for item in value]
    return _told(value)


def _told(value: "Any", by: "Callable[[Any], str]" = repr) -> str:
    """Return an object as text, also if it can't be represented."""
    try:
        return str(storable(by(value)[:_LONGEST_REPR]))
    except Exception as problem:  # noqa: BLE001  (a __repr__ may raise anything)
        return f"<{type(value).__name__}: its {by.__name__} failed with {type(problem).__name__}>"


def name_told(name: "Any") -> str:
    """Return the name of a value in an object."""
    return str(storable(name)) if type(name) is str else _told(name, str)


def error_message(problem: BaseException) -> str:
    """Return an error as text: its class and its message."""
    try:
        said = str(problem)
    except Exception:  # noqa: BLE001  (a __str__ may raise anything)
        said = _told(problem)
    return f"{type(problem).__name__}: {said}".removesuffix(": ")


def name_of(function: "Any") -> str:
    """Name what can be called: by its own name, that of what it wraps, or of what it is."""
    inner = getattr(function, "func", function)
    return str(getattr(function, "__name__", None) or getattr(inner, "__name__", None) or type(function).__name__)


def as_text(value: "Any") -> str:
    """Return what a tool gave as one text."""
    if value is None:
        return ""
    return value if isinstance(value, str) else _encode(as_json(value))


def arguments_of(function: "Callable[..., Any]", args: "tuple[Any, ...]", kwargs: "dict[str, Any]") -> "dict[str, Any]":
    """Name what a function is called with, by its own names for it; the object that a method is of is left out."""
    code = getattr(function, "__code__", None)
    names = code.co_varnames[: code.co_argcount] if code is not None else ()
    given = dict(zip(names, args, strict=False))
    if names and names[0] in _RECEIVERS:
        given.pop(names[0], None)
    if len(args) > len(names):
        given["args"] = list(args[len(names) :])
    return {**given, **kwargs}
