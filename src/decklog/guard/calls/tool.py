"""A tool: a typed function with a docstring, and how the toolbox guards and repeats it."""

import dataclasses
import math
import shutil
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property
from inspect import Parameter, cleandoc, signature
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

from decklog.core.errors import Invalid
from decklog.guard.calls import schema
from decklog.guard.calls.guard import Guard
from decklog.guard.files.root import Root
from decklog.guard.sandbox.sandbox import Sandbox
from decklog.log import Decklog
from decklog.stores.effects.effects import Effect

MOST_CAP = 4 * 1024 * 1024


@dataclass(kw_only=True)
class Commands:
    """Settings of commands: their state folder, sandbox, passed variables, and the limit of stored output."""

    state: Path
    sandbox: Sandbox
    cap_bytes: int
    passed: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not 0 < self.cap_bytes <= MOST_CAP:
            raise Invalid(f"cap_bytes is {self.cap_bytes}; it must be 1 to {MOST_CAP}", field="cap_bytes")
        self.scratch = Path(tempfile.mkdtemp(prefix="decklog-"))

    def close(self) -> None:
        """Remove the scratch directory that the commands shared."""
        shutil.rmtree(self.scratch, ignore_errors=True)

    def folder(self, mark: str) -> Path:
        """Create the folder that a command's supervisor writes to."""
        path = self.state / mark
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        return path


@dataclass(kw_only=True)
class ToolCall:
    """Context of a tool call. All processes that it starts have its `mark` in their environment."""

    log: Decklog
    run_id: str
    task_id: str | None
    root: Root
    guard: Guard
    commands: Commands
    mark: str
    step: str | None = None
    notes: dict[str, Any] = field(default_factory=dict)
    _end_actions: list[Callable[[], None]] = field(default_factory=list)

    def on_end(self, action: Callable[[], None]) -> None:
        """Register an action for the end of the call."""
        self._end_actions.append(action)

    def keep_files(self) -> None:
        """Keep all files for a later investigation."""
        self._end_actions.clear()

    def run_end_actions(self) -> None:
        """Run the actions that were registered for the end."""
        while self._end_actions:
            self._end_actions.pop()()

    def record_event(self, subtype: str, payload: dict[str, Any]) -> None:
        """Record an event during the call."""
        self.log.journal.append(self.run_id, kind="tool", subtype=subtype, payload={"call": self.mark, **payload})


# Names of first parameters that the toolbox supplies; they are hidden from models.
INJECTED = ("root", "call")


@dataclass(frozen=True)
class EffectCheck:
    """Result of a check: the side effect happened (with its result), did not (False), or is unknown (None)."""

    happened: bool | None
    result: Any = None


Check = Callable[["Effect"], EffectCheck]


@dataclass(frozen=True, kw_only=True)
class Tool:
    """One tool of a toolbox.

    `action` is the permission that trust checks. A tool that `changes` something records a side effect if its call has a step:
    `guard` may refuse first, and `expect` returns the facts that `verify` compares after a crash.
    """

    function: Callable[..., Any]
    name: str
    action: str
    changes: bool = False
    hidden: tuple[str, ...] = ()
    guard: Callable[[ToolCall, dict[str, Any]], None] | None = None
    expect: Callable[[ToolCall, dict[str, Any]], dict[str, Any]] | None = None
    verify: Callable[[ToolCall, Effect], EffectCheck] | None = None

    @classmethod
    def of(cls, function: Callable[..., Any], *, action: str | None = None, **more: Any) -> "Tool":
        """Create a tool from a function, with its name and docstring."""
        name = function.__name__
        tool = cls(function=function, name=name, action=action or name, **more)
        if not tool.description:
            raise TypeError(f"{name} has no docstring, so a model has no description of it")
        assert tool.schema
        return tool

    @cached_property
    def description(self) -> str:
        """The description of the tool for a model."""
        return cleandoc(self.function.__doc__ or "")

    @property
    def summary(self) -> str:
        return self.description.partition("\n")[0]

    @cached_property
    def injected(self) -> str | None:
        """The name of the first parameter if the toolbox supplies it, else None."""
        first = next(iter(signature(self.function).parameters), None)
        return first if first in INJECTED else None

    @cached_property
    def parameters(self) -> list[Parameter]:
        """The parameters for callers."""
        hints = get_type_hints(self.function)
        every = list(signature(self.function).parameters.values())[1 if self.injected else 0 :]
        return [parameter.replace(annotation=hints[parameter.name]) for parameter in every if parameter.name not in self.hidden]

    @cached_property
    def returns(self) -> Any:
        return get_type_hints(self.function).get("return")

    @cached_property
    def schema(self) -> dict[str, Any]:
        """The JSON schema of the arguments."""
        return schema.build_parameters_schema(self.parameters)

    def read(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """Check and convert a call's arguments; raise Invalid for a wrong one."""
        return schema.read_arguments(self.name, self.parameters, arguments)

    def as_dict(self) -> dict[str, Any]:
        """Describe the tool to a model."""
        return {"name": self.name, "description": self.description, "input_schema": self.schema}


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


def map_texts(value: Any, change: Callable[[str], str]) -> Any:
    """Return a plain value with a function applied to all its texts."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, dict):
        return {change(key): map_texts(item, change) for key, item in value.items()}
    if isinstance(value, list):
        return [map_texts(item, change) for item in value]
    return value
