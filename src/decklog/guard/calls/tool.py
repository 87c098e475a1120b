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
    """Where commands run, what holds them in, what they see of the environment, how much of their output stays."""

    state: Path
    sandbox: Sandbox
    cap_bytes: int
    passed: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not 0 < self.cap_bytes <= MOST_CAP:
            raise Invalid(f"cap_bytes is {self.cap_bytes}; it is 1 to {MOST_CAP}", field="cap_bytes")
        self.scratch = Path(tempfile.mkdtemp(prefix="decklog-"))

    def close(self) -> None:
        """Remove the scratch directory that the commands shared."""
        shutil.rmtree(self.scratch, ignore_errors=True)

    def folder(self, mark: str) -> Path:
        """Make the folder that a command's supervisor writes to."""
        path = self.state / mark
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        return path


@dataclass(kw_only=True)
class ToolCall:
    """What a tool gets that needs more than a root. `mark` names the call and is carried by every process it starts."""

    log: Decklog
    run_id: str
    task_id: str | None
    root: Root
    guard: Guard
    commands: Commands
    mark: str
    step: str | None = None
    notes: dict[str, Any] = field(default_factory=dict)
    _afterwards: list[Callable[[], None]] = field(default_factory=list)

    def afterwards(self, action: Callable[[], None]) -> None:
        """Register an action for the end of the call."""
        self._afterwards.append(action)

    def keep_traces(self) -> None:
        """Keep all files for a later investigation."""
        self._afterwards.clear()

    def tidy(self) -> None:
        """Run the actions that were registered for the end."""
        while self._afterwards:
            self._afterwards.pop()()

    def say(self, subtype: str, payload: dict[str, Any]) -> None:
        """Record an event during the call."""
        self.log.journal.append(self.run_id, kind="tool", subtype=subtype, payload={"call": self.mark, **payload})


# The names of first parameters that the toolbox fills in; a model never sees them.
PROVIDED = ("root", "call")


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
    `guard` may refuse first, and `expect` returns the facts that `look` compares after a crash.
    """

    function: Callable[..., Any]
    name: str
    action: str
    changes: bool = False
    hidden: tuple[str, ...] = ()
    guard: Callable[[ToolCall, dict[str, Any]], None] | None = None
    expect: Callable[[ToolCall, dict[str, Any]], dict[str, Any]] | None = None
    look: Callable[[ToolCall, Effect], EffectCheck] | None = None

    @classmethod
    def of(cls, function: Callable[..., Any], *, action: str | None = None, **more: Any) -> "Tool":
        """Make a tool of a function; its name and docstring are the tool's."""
        name = function.__name__
        made = cls(function=function, name=name, action=action or name, **more)
        if not made.description:
            raise TypeError(f"{name} has no docstring, so a model can't know what it does")
        assert made.schema
        return made

    @cached_property
    def description(self) -> str:
        """What a model reads about the tool."""
        return cleandoc(self.function.__doc__ or "")

    @property
    def summary(self) -> str:
        return self.description.partition("\n")[0]

    @cached_property
    def provided(self) -> str | None:
        """The first parameter, when the toolbox fills it in."""
        first = next(iter(signature(self.function).parameters), None)
        return first if first in PROVIDED else None

    @cached_property
    def parameters(self) -> list[Parameter]:
        """The parameters that a caller gives."""
        hints = get_type_hints(self.function)
        every = list(signature(self.function).parameters.values())[1 if self.provided else 0 :]
        return [one.replace(annotation=hints[one.name]) for one in every if one.name not in self.hidden]

    @cached_property
    def returns(self) -> Any:
        return get_type_hints(self.function).get("return")

    @cached_property
    def schema(self) -> dict[str, Any]:
        """The JSON schema of the arguments."""
        return schema.schema_of_parameters(self.parameters)

    def read(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """Check a call's arguments, and refuse what does not fit."""
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


def texts(value: Any, change: Callable[[str], str]) -> Any:
    """Return the same plain value with every text in it changed."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, dict):
        return {change(key): texts(item, change) for key, item in value.items()}
    if isinstance(value, list):
        return [texts(item, change) for item in value]
    return value
