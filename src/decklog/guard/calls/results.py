"""Turn what a tool gives into plain JSON values and back."""

import dataclasses
import math
from collections.abc import Callable, Mapping
from enum import Enum
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints


def to_data(value: Any) -> Any:
    """Return a value as plain JSON; other types as their repr."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: to_data(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, Mapping):
        return {str(key): to_data(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [to_data(item) for item in value]
    is_plain = value is None or isinstance(value, (str, int)) or (isinstance(value, float) and math.isfinite(value))
    return value if is_plain else repr(value)


def from_data(annotation: Any, data: Any) -> Any:
    """Read a result of a known type from plain JSON values."""
    origin = get_origin(annotation)
    if origin in (Union, UnionType):
        inner = [part for part in get_args(annotation) if part is not NoneType]
        return None if data is None else from_data(inner[0], data)
    if origin in (tuple, list) and isinstance(data, list):
        inner_type = get_args(annotation)[0]
        items = [from_data(inner_type, item) for item in data]
        return tuple(items) if origin is tuple else items
    if isinstance(annotation, type) and dataclasses.is_dataclass(annotation) and isinstance(data, dict):
        hints = get_type_hints(annotation)
        return annotation(**{name: from_data(hints[name], item) for name, item in data.items() if name in hints})
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        return annotation(data)
    return data


def texts(value: Any, change: Callable[[str], str]) -> Any:
    """Return the same plain value with every text in it changed."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, dict):
        return {change(key): texts(item, change) for key, item in value.items()}
    if isinstance(value, list):
        return [texts(item, change) for item in value]
    return value
