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

from mcp_types import Tool as Described
from mcp_types import ToolAnnotations

from decklog.core.errors import Invalid
from decklog.shortcuts.caller import ShortcutAnswer

_NAMES = {str: "string", int: "integer", float: "number", bool: "boolean", dict: "object", list: "array"}
_SAID = {str: "a text", int: "a whole number", float: "a number", bool: "true or false", dict: "an object", list: "a list"}
_RUN = Parameter("run", Parameter.KEYWORD_ONLY, default=None, annotation=str)


@dataclass(frozen=True)
class McpTool:
    """A tool: a function, and the fields of its result with their types."""

    name: str
    about: str
    run: Callable[..., ShortcutAnswer]
    gives: dict[str, Any]
    # Whether it changes nothing, and whether a second call with the same arguments changes nothing more.
    reads: bool = False
    repeats: bool = False
    # Whether a call may name the run that it is about.
    of_a_run: bool = False

    @property
    def takes(self) -> dict[str, Parameter]:
        """The arguments by their names, without the caller."""
        parameters = list(signature(self.run).parameters.values())[1:]
        # Names that are Python keywords end with an underscore.
        own = {parameter.name.rstrip("_"): parameter for parameter in parameters}
        return {**own, "run": _RUN} if self.of_a_run else own

    @property
    def waits(self) -> bool:
        """Whether it accepts a waiting time."""
        return "wait" in self.takes

    def described(self) -> Described:
        """Return the tool's description for clients."""
        taken = self.takes
        accepted: dict[str, Any] = {"type": "object"}
        if taken:
            accepted["properties"] = {name: _schema(parameter.annotation) for name, parameter in taken.items()}
        if needed := [name for name, parameter in taken.items() if parameter.default is Parameter.empty]:
            accepted["required"] = needed
        given = {"type": "object", "properties": {name: _schema(kind) for name, kind in self.gives.items()}}
        hints = {"read_only_hint": True} if self.reads else {"destructive_hint": False, "idempotent_hint": self.repeats or None}
        return Described(
            name=self.name,
            description=self.about,
            input_schema=accepted,
            output_schema=given,
            annotations=ToolAnnotations(open_world_hint=False, **hints),
        )

    def read(self, given: dict[str, Any]) -> dict[str, Any]:
        """Check and convert the arguments of a call; null counts as omitted."""
        taken = self.takes
        if unknown := sorted(name for name in given if name not in taken):
            shown = ", ".join(name[:40] for name in unknown[:5])
            raise Invalid(
                f"{self.name} takes no {shown}", hint=f"It takes: {', '.join(taken) or 'nothing'}.", field=unknown[0][:40]
            )
        read = {
            taken[name].name: _read(name, taken[name].annotation, value) for name, value in given.items() if value is not None
        }
        for name, parameter in taken.items():
            if parameter.default is Parameter.empty and parameter.name not in read:
                raise Invalid(f"{self.name} needs {name}", hint=f"Give it as {_describe_type(parameter.annotation)}.", field=name)
        return read


def _kinds(annotation: Any) -> list[Any]:
    """List the types that an annotation allows, apart from None."""
    if get_origin(annotation) in (Union, types.UnionType):
        return [kind for kind in get_args(annotation) if kind is not type(None)]
    return [annotation]


def _schema(annotation: Any) -> dict[str, Any]:
    kinds = _kinds(annotation)
    if get_origin(kinds[0]) is list:
        return {"type": "array", "items": _schema(get_args(kinds[0])[0])}
    # An error lists the values of an enumeration.
    names = [_NAMES[str if issubclass(plain := get_origin(kind) or kind, StrEnum) else plain] for kind in kinds]
    return {"type": names[0] if len(names) == 1 else names}


def _describe_type(annotation: Any) -> str:
    if isinstance(kind := _kinds(annotation)[0], type) and issubclass(kind, StrEnum):
        return f"one of {', '.join(kind)}"
    return " or ".join(_SAID[get_origin(kind) or kind] for kind in _kinds(annotation))


def _read(name: str, annotation: Any, value: Any) -> Any:
    for kind in _kinds(annotation):
        if get_origin(kind) is list:
            if isinstance(value, list):
                return [_read(f"{name}[{place}]", get_args(kind)[0], item) for place, item in enumerate(value)]
        elif _is_one(get_origin(kind) or kind, value):
            return kind(value) if kind is int or issubclass(get_origin(kind) or kind, StrEnum) else value
    raise Invalid(
        f"{name} is {_describe_type(type(value)) if type(value) in _SAID else 'null'}",
        hint=f"Give {_describe_type(annotation)}.",
        field=name,
    )


def _is_one(kind: type, value: Any) -> bool:
    if issubclass(kind, StrEnum):
        return isinstance(value, str) and value in list(kind)
    if isinstance(value, bool) or kind is bool:
        return isinstance(value, bool) and kind is bool
    if kind is float:
        return isinstance(value, (int, float)) and math.isfinite(value)
    if kind is int:
        return isinstance(value, int) or (isinstance(value, float) and value.is_integer())
    return isinstance(value, kind)


# Long texts are cut because they enter the conversation; the CLI shows all of them.
_LONGEST = 20_000


def plain(record: Any) -> dict[str, Any]:
    """Return a record as plain values, without what is empty, long texts cut."""
    return {name: bounded(value) for name, value in record.as_dict().items() if value not in (None, "", [], {})}


def bounded(value: Any) -> Any:
    """Cut all long texts in a value."""
    if isinstance(value, str):
        return cut(value)
    if isinstance(value, list):
        return [bounded(item) for item in value]
    return {name: bounded(item) for name, item in value.items()} if isinstance(value, dict) else value


def cut(text: str, longest: int = _LONGEST) -> str:
    """Cut a text to a length, with the number of omitted characters."""
    return text if len(text) <= longest else f"{text[:longest]}… ({len(text) - longest} more)"


def sendable(value: Any) -> Any:
    """Return a value in which invalid characters are replaced."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, (list, tuple)):
        return [sendable(item) for item in value]
    return {sendable(str(name)): sendable(item) for name, item in value.items()} if isinstance(value, dict) else value


def paged(data: dict[str, Any], page: Any) -> dict[str, Any]:
    """Return the items of a page with its cursor, which is null at the end."""
    return data if page.next is None else {**data, "next": base64.urlsafe_b64encode(str(page.next).encode()).decode()}


def place_of(cursor: str | None) -> str | None:
    """Read a cursor."""
    if cursor is None:
        return None
    try:
        return base64.b64decode(cursor.encode(), altchars=b"-_", validate=True).decode()
    except (binascii.Error, ValueError):
        raise Invalid("that is no cursor", hint="Use `next` of the previous answer, or omit it.", field="cursor") from None
