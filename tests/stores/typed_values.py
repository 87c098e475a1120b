"""Compare a value with a type of JSON values, key by key: what mypy can't do for rows of a database."""

from collections.abc import Iterator
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints, is_typeddict


def differences(value: object, kind: Any, where: str = "result") -> Iterator[str]:
    """Yield what of a value does not have its type."""
    origin, parts = get_origin(kind), get_args(kind)
    if kind is Any or kind is object:
        return
    if is_typeddict(kind):
        yield from _of_keys(value, kind, where)
    elif origin in (Union, UnionType):
        found = [list(differences(value, part, where)) for part in parts]
        if all(found):
            yield from min(found, key=len)
    elif origin is Literal:
        if value not in parts:
            yield f"{where}: {value!r} is not one of {parts}"
    elif origin is list and isinstance(value, list):
        for place, item in enumerate(value):
            yield from differences(item, parts[0], f"{where}[{place}]")
    elif origin is dict and isinstance(value, dict):
        for key, item in value.items():
            yield from differences(item, parts[1], f"{where}.{key}")
    elif not _is_plain(value, origin or kind):
        yield f"{where}: {value!r} is not {kind}"


def _of_keys(value: object, kind: Any, where: str) -> Iterator[str]:
    if not isinstance(value, dict):
        yield f"{where}: {value!r} is not a dictionary"
        return
    hints = get_type_hints(kind)
    missing, unknown = kind.__required_keys__ - value.keys(), value.keys() - hints.keys()
    if missing or unknown:
        yield f"{where}: missing {sorted(missing)}, unknown {sorted(unknown)}"
    for name in hints.keys() & value.keys():
        yield from differences(value[name], hints[name], f"{where}.{name}")


def _is_plain(value: object, kind: Any) -> bool:
    if kind is float:
        return type(value) in (int, float)
    return type(value) is kind or (isinstance(value, kind) and not isinstance(value, bool))
