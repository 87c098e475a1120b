"""A tool: a typed function with a docstring, and what the toolbox must know besides."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from inspect import Parameter, cleandoc, signature
from typing import TYPE_CHECKING, Any, get_type_hints

from decklog.guard.calls import schema
from decklog.guard.calls.call import ToolCall

if TYPE_CHECKING:
    from decklog.stores.effects.effects import Effect

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
    guard: "Callable[[ToolCall, dict[str, Any]], None] | None" = None
    expect: "Callable[[ToolCall, dict[str, Any]], dict[str, Any]] | None" = None
    look: "Callable[[ToolCall, Effect], EffectCheck] | None" = None

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
