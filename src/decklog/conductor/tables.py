"""Build dataclasses from the tables of `decklog.toml`, and report settings that do not fit."""

from collections.abc import Collection, Mapping
from dataclasses import fields
from difflib import get_close_matches
from types import UnionType
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

from decklog.core.errors import Invalid

_T = TypeVar("_T")
# The types of fields: what TOML has for them, and their names.
_TYPES: Mapping[Any, tuple[tuple[type, ...], str]] = {
    bool: ((bool,), "true or false"),
    int: ((int,), "a whole number"),
    float: ((int, float), "a number"),
    str: ((str,), "a text"),
    tuple: ((list,), "a list of texts"),
    Mapping: ((dict,), "a table"),
}


def check_names(where: str, table: Mapping[str, Any], known: Collection[str]) -> None:
    """Raise Invalid for an unknown setting, with the closest known one."""
    for name in table:
        if name not in known:
            near = get_close_matches(name, known, 1)
            hint = f"Did you mean {near[0]}?" if near else f"There are {', '.join(known)}."
            raise Invalid(f"{where} has no setting {name!r}", hint=hint, field=name)


def build(settings: type[_T], where: str, table: Mapping[str, Any], **given: Any) -> _T:
    """Build a dataclass from a table, whose lists become tuples. The table can't set the fields that are `given`."""
    types = get_type_hints(settings)
    check_names(where, table, [one.name for one in fields(settings) if one.name not in given])  # type: ignore[arg-type]
    for name, value in table.items():
        wanted = types[name]
        if isinstance(wanted, UnionType):
            wanted = get_args(wanted)[0]
        if not _is_a(value, wanted):
            raise Invalid(f"{where}: {name} has to be {_TYPES[get_origin(wanted) or wanted][1]} (got {value!r})", field=name)
    return settings(**{name: tuple(value) if isinstance(value, list) else value for name, value in table.items()}, **given)


def _is_a(value: object, wanted: Any) -> bool:
    """Return whether a value of TOML fits a type."""
    kind = get_origin(wanted) or wanted
    if kind is object:
        return True
    if not isinstance(value, _TYPES[kind][0]) or (isinstance(value, bool) and kind is not bool):
        return False
    return not isinstance(value, list) or all(_is_a(one, get_args(wanted)[0]) for one in value)
