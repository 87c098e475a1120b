"""A tool as clients see it: name, input and output schemas, and whether it writes.

The schemas are read from the functions' signatures. They enter every conversation, so they are short.
"""

import base64
import binascii
import math
import types
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from inspect import Parameter, signature
from typing import Any, Union, get_args, get_origin

from mcp_types import Tool as ToolDescription
from mcp_types import ToolAnnotations

from decklog.core.errors import Invalid
from decklog.shortcuts.caller import ShortcutAnswer

_JSON_TYPES = {str: "string", int: "integer", float: "number", bool: "boolean", dict: "object", list: "array"}
_TYPE_NAMES = {str: "a text", int: "a whole number", float: "a number", bool: "true or false", dict: "an object", list: "a list"}
_RUN = Parameter("run", Parameter.KEYWORD_ONLY, default=None, annotation=str)


@dataclass(frozen=True)
class McpTool:
    """A tool: a function, and the fields of its result with their types."""

    name: str
    description: str
    run: Callable[..., ShortcutAnswer]
    result_fields: dict[str, Any]
    # Whether it changes nothing, and whether a second call with the same arguments changes nothing more.
    is_read_only: bool = False
    is_idempotent: bool = False
    # Whether it has an argument `run`.
    accepts_run: bool = False

    @property
    def arguments(self) -> dict[str, Parameter]:
        """The arguments by their names, without the caller."""
        parameters = list(signature(self.run).parameters.values())[1:]
        # Names that are Python keywords end with an underscore.
        own = {parameter.name.rstrip("_"): parameter for parameter in parameters}
        return {**own, "run": _RUN} if self.accepts_run else own

    @property
    def can_wait(self) -> bool:
        """Whether it accepts a waiting time."""
        return "wait" in self.arguments

    def describe(self) -> ToolDescription:
        """Return the tool's description for clients."""
        parameters = self.arguments
        input_schema: dict[str, Any] = {"type": "object"}
        if parameters:
            input_schema["properties"] = {name: _schema(parameter.annotation) for name, parameter in parameters.items()}
        if required := [name for name, parameter in parameters.items() if parameter.default is Parameter.empty]:
            input_schema["required"] = required
        output_schema = {"type": "object", "properties": {name: _schema(kind) for name, kind in self.result_fields.items()}}
        hints = (
            {"read_only_hint": True}
            if self.is_read_only
            else {"destructive_hint": False, "idempotent_hint": self.is_idempotent or None}
        )
        return ToolDescription(
            name=self.name,
            description=self.description,
            input_schema=input_schema,
            output_schema=output_schema,
            annotations=ToolAnnotations(open_world_hint=False, **hints),
        )

    def read(self, given: dict[str, Any]) -> dict[str, Any]:
        """Check and convert the arguments of a call; null counts as omitted."""
        parameters = self.arguments
        if unknown := sorted(name for name in given if name not in parameters):
            shown = ", ".join(name[:40] for name in unknown[:5])
            raise Invalid(
                f"{self.name} has no argument {shown}",
                hint=f"Its arguments: {', '.join(parameters) or 'nothing'}.",
                field=unknown[0][:40],
            )
        read = {
            parameters[name].name: _read(name, parameters[name].annotation, value)
            for name, value in given.items()
            if value is not None
        }
        for name, parameter in parameters.items():
            if parameter.default is Parameter.empty and parameter.name not in read:
                raise Invalid(f"{self.name} needs {name}", hint=f"Give it as {_describe_type(parameter.annotation)}.", field=name)
        return read


def _allowed_types(annotation: Any) -> list[Any]:
    """List the types that an annotation allows, apart from None."""
    if get_origin(annotation) in (Union, types.UnionType):
        return [kind for kind in get_args(annotation) if kind is not type(None)]
    return [annotation]


def _schema(annotation: Any) -> dict[str, Any]:
    kinds = _allowed_types(annotation)
    if get_origin(kinds[0]) is list:
        return {"type": "array", "items": _schema(get_args(kinds[0])[0])}
    # An error lists the values of an enumeration.
    names = [_JSON_TYPES[str if issubclass(plain := get_origin(kind) or kind, StrEnum) else plain] for kind in kinds]
    return {"type": names[0] if len(names) == 1 else names}


def _describe_type(annotation: Any) -> str:
    if isinstance(kind := _allowed_types(annotation)[0], type) and issubclass(kind, StrEnum):
        return f"one of {', '.join(kind)}"
    return " or ".join(_TYPE_NAMES[get_origin(kind) or kind] for kind in _allowed_types(annotation))


def _read(name: str, annotation: Any, value: Any) -> Any:
    for kind in _allowed_types(annotation):
        if get_origin(kind) is list:
            if isinstance(value, list):
                return [_read(f"{name}[{place}]", get_args(kind)[0], item) for place, item in enumerate(value)]
        elif _has_type(get_origin(kind) or kind, value):
            return kind(value) if kind is int or issubclass(get_origin(kind) or kind, StrEnum) else value
    raise Invalid(
        f"{name} is {_describe_type(type(value)) if type(value) in _TYPE_NAMES else 'null'}",
        hint=f"Give {_describe_type(annotation)}.",
        field=name,
    )


def _has_type(kind: type, value: Any) -> bool:
    if issubclass(kind, StrEnum):
        return isinstance(value, str) and value in list(kind)
    if isinstance(value, bool) or kind is bool:
        return isinstance(value, bool) and kind is bool
    if kind is float:
        return isinstance(value, (int, float)) and math.isfinite(value)
    if kind is int:
        return isinstance(value, int) or (isinstance(value, float) and value.is_integer())
    return isinstance(value, kind)


# Results enter the conversation, so long texts are shortened; the CLI shows them in full.
_LONGEST = 20_000


def plain_record(record: Any) -> dict[str, Any]:
    """Return the non-empty fields of a record as plain values, with long texts shortened."""
    return {name: shorten_texts(value) for name, value in record.as_dict().items() if value not in (None, "", [], {})}


def shorten_texts(value: Any) -> Any:
    """Shorten all long texts in a value."""
    if isinstance(value, str):
        return shorten(value)
    if isinstance(value, list):
        return [shorten_texts(item) for item in value]
    return {name: shorten_texts(item) for name, item in value.items()} if isinstance(value, dict) else value


def shorten(text: str, longest: int = _LONGEST) -> str:
    """Shorten a text to a length, and append the number of omitted characters."""
    return text if len(text) <= longest else f"{text[:longest]}… ({len(text) - longest} more)"


def replace_invalid_characters(value: Any) -> Any:
    """Return a value with its invalid characters replaced."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, (list, tuple)):
        return [replace_invalid_characters(item) for item in value]
    return (
        {replace_invalid_characters(str(name)): replace_invalid_characters(item) for name, item in value.items()}
        if isinstance(value, dict)
        else value
    )


def add_cursor(data: dict[str, Any], page: Any) -> dict[str, Any]:
    """Add the cursor of the next page to a page's items, if there is one."""
    return data if page.next is None else {**data, "next": base64.urlsafe_b64encode(str(page.next).encode()).decode()}


def decode_cursor(cursor: str | None) -> str | None:
    """Decode a cursor of an earlier answer; raise Invalid if it is none."""
    if cursor is None:
        return None
    try:
        return base64.b64decode(cursor.encode(), altchars=b"-_", validate=True).decode()
    except (binascii.Error, ValueError):
        raise Invalid("the cursor is invalid", hint="Use `next` of the previous answer, or omit it.", field="cursor") from None
