"""Steps of a run, and calls of tools: entries where they begin and where they end."""

from typing import TYPE_CHECKING, overload

from decklog.agents.entries import call_told, cut_of
from decklog.agents.events import CallOutcome
from decklog.agents.texts import storable
from decklog.core.errors import Invalid
from decklog.journal.entry import EntryKind
from decklog.plugins.adapters.loops.span import LoopSpan
from decklog.plugins.adapters.loops.values import arguments_of, as_json, name_of
from decklog.plugins.adapters.loops.wrapping import wrapped

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeVar

    from decklog.plugins.adapters.loops.run import Recorded

    F = TypeVar("F", bound=Callable[..., Any])

STEP, STEP_ENDED = "step", "step.ended"


class LoopPart(LoopSpan):
    """A step or a call: a part of the run that it is begun in. Outside of one nothing is recorded."""

    def __init__(self, name: str, run: "Recorded | None" = None) -> None:
        super().__init__()
        if not name.strip():
            raise Invalid("a step or a tool needs a name", field="name")
        self.name = name
        self.run = run
        self.id = ""

    def enter(self) -> None:
        super().enter()
        if self.run is None and self._outer is not None:
            self.run = self._outer.recording
        if self.run is not None:
            self.id = self.run.new_id()

    @property
    def recording(self) -> "Recorded | None":
        return self.run

    @property
    def within(self) -> str | None:
        """The step or call around it; None where that is the run itself."""
        outer = self._outer
        return outer.id if isinstance(outer, LoopPart) and outer.run is self.run else None

    def write(self, kind: EntryKind, subtype: str, body: str, key: str, facts: "dict[str, Any]") -> None:
        """Append one entry of this part."""
        assert self.run is not None
        text, cut = cut_of(storable(body))
        payload = {name: value for name, value in {**facts, "within": self.within, **cut}.items() if value is not None}
        self.run.log.journal.append(
            self.run.id,
            text,
            kind=kind,
            subtype=subtype,
            key=key,
            payload=payload,
            agent=self.run.agent,
            task_id=self.run.task_id,
        )


class LoopStep(LoopPart):
    """A named part of a loop."""

    def begin(self) -> None:
        self.write(EntryKind.EVENT, STEP, self.name, f"step:{self.id}", {"step": self.id})

    def end(self, outcome: CallOutcome, output: str, facts: "dict[str, Any]") -> None:
        values = {**as_json(facts), "step": self.id, "name": self.name, "outcome": outcome.value}
        self.write(EntryKind.EVENT, STEP_ENDED, output or f"{self.name}: {outcome.value}", f"step-ended:{self.id}", values)

    def __call__(self, function: "F") -> "F":
        """Make each call of a function such a step."""
        return wrapped(function, lambda _args, _kwargs: LoopStep(self.name, self.run))  # type: ignore[no-any-return]


class LoopCall(LoopPart):
    """One use of a tool: what it was given, and what it gave."""

    def __init__(self, name: str, arguments: "dict[str, Any]", run: "Recorded | None" = None) -> None:
        super().__init__(name, run)
        self._arguments = arguments

    def begin(self) -> None:
        self.write(EntryKind.TOOL, "call", *call_told(self.id, self.name, as_json(self._arguments)))

    def end(self, outcome: CallOutcome, output: str, facts: "dict[str, Any]") -> None:
        values = {**(as_json(facts) if facts else facts), "call": self.id, "tool": self.name, "outcome": outcome.value}
        self.write(EntryKind.TOOL, "result", output or outcome.value, f"result:{self.id}", values)

    def __call__(self, function: "F") -> "F":
        """Make each call of a function a use of this tool."""
        return wrapped(function, _calls_of(self.name, function, self.run))  # type: ignore[no-any-return]


def _calls_of(name: str, function: "Callable[..., Any]", run: "Recorded | None" = None) -> "Callable[..., LoopCall]":
    return lambda args, kwargs: LoopCall(name, arguments_of(function, args, kwargs), run)


def step(name: str) -> LoopStep:
    """Begin a step of the run around it: `with step("plan"):`, `async with`, or `@step("plan")` over a function."""
    return LoopStep(name)


@overload
def tool(what: "F") -> "F": ...
@overload
def tool(what: str, **arguments: "Any") -> LoopCall: ...
def tool(what: "Any", **arguments: "Any") -> "Any":
    """Record the use of a tool: `@tool` over a function of any kind, or `with tool("grep", pattern="x") as call:`."""
    if isinstance(what, str):
        return LoopCall(what, arguments)
    return wrapped(what, _calls_of(name_of(what), what))
