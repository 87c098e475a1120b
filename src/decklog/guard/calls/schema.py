"""Conversion of a function's types to a JSON schema for models, and of a model's JSON to arguments."""

from enum import Enum
from inspect import Parameter
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin

from decklog.core.errors import Invalid

_PLAIN: dict[Any, str] = {str: "string", int: "integer", float: "number", bool: "boolean", NoneType: "null"}


def build_schema(annotation: Any) -> dict[str, Any]:
    """Return the JSON schema of a type."""
    if annotation in _PLAIN:
        return {"type": _PLAIN[annotation]}
    origin, inner = get_origin(annotation), get_args(annotation)
    if origin is Literal:
        return {"enum": list(inner)}
    if origin in (Union, UnionType):
        return {"anyOf": [build_schema(part) for part in inner]}
    if (origin or annotation) in (list, tuple):
        return {"type": "array", "items": build_schema(inner[0]) if inner else {}}
    if (origin or annotation) is dict:
        return {"type": "object", "additionalProperties": build_schema(inner[1]) if inner else True}
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        return {"enum": [member.value for member in annotation]}
    if annotation in (Any, object):
        return {}
    raise TypeError(f"{annotation!r} has no JSON schema; use plain types, lists, dictionaries, enumerations and None")


def build_parameters_schema(parameters: list[Parameter]) -> dict[str, Any]:
    """Return the JSON schema of a function's parameters, as one object."""
    properties = {}
    for parameter in parameters:
        properties[parameter.name] = build_schema(parameter.annotation)
        if parameter.default is not Parameter.empty:
            default = parameter.default
            properties[parameter.name]["default"] = default.value if isinstance(default, Enum) else default
    required = [parameter.name for parameter in parameters if parameter.default is Parameter.empty]
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def read_arguments(tool: str, parameters: list[Parameter], given: dict[str, Any]) -> dict[str, Any]:
    """Check and convert a call's arguments; raise Invalid for an unknown, missing or wrong one."""
    known = {parameter.name: parameter for parameter in parameters}
    unknown = sorted(given.keys() - known.keys())
    if unknown:
        raise Invalid(
            f"{tool} has no parameter {', '.join(unknown)}", hint=f"Its parameters: {', '.join(known)}.", unknown=unknown
        )
    missing = [name for name, one in known.items() if one.default is Parameter.empty and name not in given]
    if missing:
        raise Invalid(f"{tool} needs {', '.join(missing)}", hint=f"Its parameters: {', '.join(known)}.", missing=missing)
    return {name: _read_value(tool, name, known[name].annotation, value) for name, value in given.items()}


def _read_value(tool: str, name: str, annotation: Any, value: Any) -> Any:
    read, fits = _convert(annotation, value)
    if not fits:
        raise Invalid(
            f"{tool}: {name} can't be {_shorten_repr(value)}",
            hint=f"It must be {_describe_schema(build_schema(annotation))}.",
            field=name,
        )
    return read


def _shorten_repr(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:80]}…"


def _describe_schema(schema: dict[str, Any]) -> str:
    if "anyOf" in schema:
        return " or ".join(_describe_schema(part) for part in schema["anyOf"])
    if "enum" in schema:
        return f"one of {', '.join(map(str, schema['enum']))}"
    if schema.get("type") == "array":
        return f"a list of {_describe_schema(schema['items'])}"
    return f"of type {schema.get('type', 'any')}"


def _convert(annotation: Any, value: Any) -> tuple[Any, bool]:
    """Convert a value to a type; return it with True, or unchanged with False if it does not fit."""
    origin, inner = get_origin(annotation), get_args(annotation)
    if origin in (Union, UnionType):
        fitting = [read for read, fits in (_convert(part, value) for part in inner) if fits]
        return (fitting[0], True) if fitting else (value, False)
    if origin is Literal:
        return value, value in inner
    if (origin or annotation) in (list, tuple):
        return _convert_list(inner, value)
    if (origin or annotation) is dict:
        return _convert_dict(inner, value)
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        members = [member for member in annotation if member.value == value]
        return (members[0], True) if members else (value, False)
    if annotation is float and type(value) is int:
        return float(value), True
    # A bool is an int in Python, but not in JSON.
    return value, annotation in (Any, object) or type(value) is annotation


def _convert_list(inner: tuple[Any, ...], value: Any) -> tuple[Any, bool]:
    if not isinstance(value, (list, tuple)):
        return value, False
    read = [_convert(inner[0] if inner else Any, item) for item in value]
    return [item for item, _ in read], all(fits for _, fits in read)


def _convert_dict(inner: tuple[Any, ...], value: Any) -> tuple[Any, bool]:
    if not isinstance(value, dict):
        return value, False
    read = {key: _convert(inner[1] if inner else Any, item) for key, item in value.items()}
    fits = all(fits for _, fits in read.values()) and all(isinstance(key, str) for key in value)
    return {key: item for key, (item, _) in read.items()}, fits
