"""Record steps of a run and tool calls, each with an entry at its start and its end."""

import inspect
import json
import os
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Callable, Generator
from contextvars import ContextVar
from functools import wraps
from math import isfinite
from types import TracebackType
from typing import Any, Self, TypeVar, overload

from decklog.agents.entries import cut_text, describe_call
from decklog.agents.events import CallOutcome
from decklog.agents.texts import storable
from decklog.aio import loops
from decklog.aio.calls import Job, await_despite_cancel
from decklog.aio.transaction import present as transaction_of
from decklog.core.errors import Invalid
from decklog.journal.entry import EntryKind
from decklog.log import Decklog

_MOST_LEVELS = 20
_MOST_ITEMS = 1000
_LONGEST_REPR = 1000
# Python refuses to format longer integers.
_MOST_BITS = 10_000
_RECEIVERS = ("self", "cls")
_encode = json.JSONEncoder(ensure_ascii=False).encode


def to_json_value(value: Any, depth: int = 0) -> Any:
    """Return a value as JSON; use the `repr` of values that are too deep or not JSON."""
    if value is None or (isinstance(value, int) and value.bit_length() <= _MOST_BITS):
        return value
    if isinstance(value, str):
        return cut_text(storable(str(value)))[0]
    if isinstance(value, float):
        return value if isfinite(value) else repr(value)
    if depth < _MOST_LEVELS and isinstance(value, dict) and len(value) <= _MOST_ITEMS:
        return {name_text(name): to_json_value(item, depth + 1) for name, item in value.items()}
    if depth < _MOST_LEVELS and isinstance(value, (list, tuple)) and len(value) <= _MOST_ITEMS:
        return [to_json_value(item, depth + 1) for item in value]
    return _safe_repr(value)


def _safe_repr(value: Any, by: Callable[[Any], str] = repr) -> str:
    """Return the `repr` of an object, with a fallback if that fails."""
    try:
        return str(storable(by(value)[:_LONGEST_REPR]))
    except Exception as problem:  # noqa: BLE001  (a __repr__ may raise anything)
        return f"<{type(value).__name__}: its {by.__name__} failed with {type(problem).__name__}>"


def name_text(name: Any) -> str:
    """Return the name of a value in an object."""
    return str(storable(name)) if type(name) is str else _safe_repr(name, str)


def error_message(problem: BaseException) -> str:
    """Return an error as text: its class and its message."""
    try:
        message = str(problem)
    except Exception:  # noqa: BLE001  (a __str__ may raise anything)
        message = _safe_repr(problem)
    return f"{type(problem).__name__}: {message}".removesuffix(": ")


def callable_name(function: Any) -> str:
    """Return the name of a callable, of the function it wraps, or of its type."""
    inner = getattr(function, "func", function)
    return str(getattr(function, "__name__", None) or getattr(inner, "__name__", None) or type(function).__name__)


def output_text(value: Any) -> str:
    """Return the output of a tool as one text."""
    if value is None:
        return ""
    return value if isinstance(value, str) else _encode(to_json_value(value))


def bind_arguments(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    """Return a call's arguments by parameter name, without self or cls."""
    code = getattr(function, "__code__", None)
    names = code.co_varnames[: code.co_argcount] if code is not None else ()
    given = dict(zip(names, args, strict=False))
    if names and names[0] in _RECEIVERS:
        given.pop(names[0], None)
    if len(args) > len(names):
        given["args"] = list(args[len(names) :])
    return {**given, **kwargs}


async def run_off_loop(log: Decklog, act: Callable[[], Any]) -> bool:
    """Call a function without blocking the event loop, and finish it even if cancelled; return whether it was cancelled."""
    transaction = transaction_of(log)
    if transaction is None and log.is_in_transaction:
        # A synchronous transaction belongs to this thread.
        act()
        return False
    future, was_cancelled = await await_despite_cancel(Job(act), log.submit if transaction is None else transaction.submit)
    future.result()
    return was_cancelled


# The innermost span of this thread or task.
current_span: "ContextVar[LoopSpan | None]" = ContextVar("decklog_span", default=None)


class LoopSpan(ABC):
    """A run, step or call. Enter it with `with` in synchronous loops, and with `async with` in asynchronous ones."""

    def __init__(self, run: "LoopRun | None" = None) -> None:
        # The run that records this span; None if nothing is recorded.
        self.run = run
        self._outer: LoopSpan | None = None
        self._process = 0
        self._outcome: CallOutcome | None = None
        self._output = ""
        self._facts: dict[str, Any] = {}

    # For each kind of span

    @abstractmethod
    def begin(self) -> None:
        """Record the start."""

    @abstractmethod
    def end(self, outcome: CallOutcome, output: str, facts: dict[str, Any]) -> None:
        """Record the end."""

    # Called inside the block

    def returned(self, output: Any, **facts: Any) -> None:
        """Set the output, which is recorded at the end of the block."""
        self._outcome, self._output, self._facts = CallOutcome.OK, output_text(output), facts

    def failed(self, why: Any, **facts: Any) -> None:
        """Mark the span as failed without an exception."""
        self._outcome, self._output, self._facts = CallOutcome.FAILED, output_text(why), facts

    # Start and end

    def finalize(self, problem: BaseException | None) -> None:
        """Record the end with the output that the block set, or with the error that ended it."""
        if os.getpid() != self._process and os.getppid() == self._process:
            # A child forked inside the block leaves it too; only the parent records the end.
            return
        if problem is None:
            self.end(self._outcome or CallOutcome.OK, self._output, self._facts)
        else:
            # A cancelled task, a closed generator or Ctrl-C is an interruption, not a failure.
            outcome = CallOutcome.FAILED if isinstance(problem, Exception) else CallOutcome.INTERRUPTED
            self.end(outcome, error_message(problem), self._facts)

    def enter(self) -> None:
        """Make this the innermost span."""
        self._process = os.getpid()
        self._outer = current_span.get()
        current_span.set(self)

    def leave(self) -> None:
        """Make the outer span the innermost again, unless another one is: generators may be closed anywhere."""
        if current_span.get() is self:
            current_span.set(self._outer)

    def __enter__(self) -> Self:
        self.enter()
        try:
            if self.run is not None:
                self.begin()
        except BaseException:
            self.leave()
            raise
        return self

    def __exit__(self, _: object, problem: BaseException | None, _trace: TracebackType | None) -> None:
        self.leave()
        self.finalize_if_recorded(problem)

    def finalize_if_recorded(self, problem: BaseException | None) -> None:
        """Record the end, if a run records this span."""
        if self.run is not None:
            self.finalize(problem)

    async def __aenter__(self) -> Self:
        self.enter()
        try:
            if self.run is not None and await run_off_loop(self.run.log, self.begin):
                await run_off_loop(self.run.log, lambda: self.finalize(loops.cancellation()))
                raise loops.cancellation()
        except BaseException:
            self.leave()
            raise
        return self

    async def __aexit__(self, _: object, problem: BaseException | None, _trace: TracebackType | None) -> None:
        self.leave()
        if self.run is not None and await run_off_loop(self.run.log, lambda: self.finalize(problem)) and problem is None:
            raise loops.cancellation()


class LoopRun(LoopSpan):
    """A run that records steps and calls."""

    def __init__(self, log: Decklog, agent: str, task_id: str | None) -> None:
        super().__init__(self)
        self.log = log
        self.agent = agent
        self.task_id = task_id

    @property
    @abstractmethod
    def id(self) -> str:
        """The run's id."""


def surrounding_run(log: Decklog) -> dict[str, Any]:
    """Return the surrounding run and task, if they are recorded in this log."""
    here = current_span.get()
    around = None if here is None else here.run
    if around is None or around.log is not log:
        return {}
    return {"run": around.id, **({"task": around.task_id} if around.task_id else {})}


F = TypeVar("F", bound=Callable[..., Any])
# Builds the span of one call from the function's arguments.
SpanFactory = Callable[[tuple[Any, ...], dict[str, Any]], LoopSpan]

# The most yielded values to record; further ones are only counted.
_WRAPPING_MOST_ITEMS = 100


def wrap_function(function: Callable[..., Any], make_span: SpanFactory) -> Any:
    """Return the function with a span around each of its calls."""
    if inspect.isasyncgenfunction(function):
        return _wrap_async_generator(function, make_span)
    if inspect.iscoroutinefunction(function):
        return _wrap_coroutine(function, make_span)
    return _wrap_generator(function, make_span) if inspect.isgeneratorfunction(function) else _wrap_function(function, make_span)


def _wrap_function(function: Callable[..., Any], make_span: SpanFactory) -> Any:
    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        with make_span(args, kwargs) as span:
            found = function(*args, **kwargs)
            span.returned(found)
            return found

    return call


def _wrap_coroutine(function: Callable[..., Any], make_span: SpanFactory) -> Any:
    @wraps(function)
    async def call(*args: Any, **kwargs: Any) -> Any:
        async with make_span(args, kwargs) as span:
            found = await function(*args, **kwargs)
            span.returned(found)
            return found

    return call


class _YieldedValues:
    """Collects the values that a generator yields."""

    def __init__(self) -> None:
        self._items: list[Any] = []
        self._count = 0

    def add(self, item: Any) -> None:
        self._count += 1
        if self._count <= _WRAPPING_MOST_ITEMS:
            self._items.append(item)

    def report(self, span: LoopSpan) -> None:
        is_text = all(isinstance(item, str) for item in self._items)
        span.returned("".join(self._items) if is_text else self._items, items=self._count)


class _SpanSwitch:
    """Makes a generator's span the innermost while the generator runs, but not while its consumer does."""

    def __init__(self, span: LoopSpan) -> None:
        self._inner: LoopSpan | None = span
        self._outer: LoopSpan | None = None

    def __enter__(self) -> None:
        self._outer = current_span.get()
        current_span.set(self._inner)

    def __exit__(self, *_: object) -> None:
        self._inner = current_span.get()
        current_span.set(self._outer)


def _wrap_generator(function: Callable[..., Any], make_span: SpanFactory) -> Any:
    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Generator[Any, Any, Any]:
        span, values = make_span(args, kwargs), _YieldedValues()
        span.__enter__()
        span.leave()
        inside, problem = _SpanSwitch(span), None
        steps = function(*args, **kwargs)
        try:
            with inside:
                item = next(steps)
            while True:
                values.add(item)
                try:
                    sent = yield item
                except GeneratorExit:
                    with inside:
                        steps.close()
                    raise
                except BaseException as thrown:  # noqa: BLE001  (the generator handles what was thrown into it)
                    with inside:
                        item = steps.throw(thrown)
                else:
                    with inside:
                        item = steps.send(sent)
        except StopIteration as over:
            return over.value
        except BaseException as error:
            problem = error
            raise
        finally:
            values.report(span)
            span.finalize_if_recorded(problem)

    return call


def _wrap_async_generator(function: Callable[..., Any], make_span: SpanFactory) -> Any:
    @wraps(function)
    async def call(*args: Any, **kwargs: Any) -> AsyncGenerator[Any, Any]:
        span, values = make_span(args, kwargs), _YieldedValues()
        await span.__aenter__()
        span.leave()
        inside, problem = _SpanSwitch(span), None
        steps = function(*args, **kwargs)
        try:
            with inside:
                item = await anext(steps)
            while True:
                values.add(item)
                try:
                    sent = yield item
                except GeneratorExit:
                    with inside:
                        await steps.aclose()
                    raise
                except BaseException as thrown:  # noqa: BLE001  (the generator handles what was thrown into it)
                    with inside:
                        item = await steps.athrow(thrown)
                else:
                    with inside:
                        item = await steps.asend(sent)
        except StopAsyncIteration:
            return
        except BaseException as error:
            problem = error
            raise
        finally:
            values.report(span)
            if span.run is not None:
                await run_off_loop(span.run.log, lambda: span.finalize(problem))

    return call


STEP, STEP_ENDED = "step", "step.ended"


class LoopPart(LoopSpan):
    """A step or a call of the surrounding run. Outside of a run nothing is recorded."""

    def __init__(self, name: str, run: LoopRun | None = None) -> None:
        super().__init__(run)
        if not name.strip():
            raise Invalid("a step or a tool needs a name", field="name")
        self.name = name
        self.id = ""

    def enter(self) -> None:
        super().enter()
        if self.run is None and self._outer is not None:
            self.run = self._outer.run
        if self.run is not None:
            self.id = self.run.log.parts.ids.new("call")

    @property
    def within(self) -> str | None:
        """The surrounding step or call; None directly in the run."""
        outer = self._outer
        return outer.id if isinstance(outer, LoopPart) and outer.run is self.run else None

    def write(self, kind: EntryKind, subtype: str, body: str, key: str, facts: dict[str, Any]) -> None:
        """Append one entry of this part."""
        assert self.run is not None
        text, cut = cut_text(storable(body))
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

    def end(self, outcome: CallOutcome, output: str, facts: dict[str, Any]) -> None:
        values = {**to_json_value(facts), "step": self.id, "name": self.name, "outcome": outcome.value}
        self.write(EntryKind.EVENT, STEP_ENDED, output or f"{self.name}: {outcome.value}", f"step-ended:{self.id}", values)

    def __call__(self, function: F) -> F:
        """Make each call of a function such a step."""
        return wrap_function(function, lambda _args, _kwargs: LoopStep(self.name, self.run))  # type: ignore[no-any-return]


class LoopCall(LoopPart):
    """One use of a tool: its arguments and its output."""

    def __init__(self, name: str, arguments: dict[str, Any], run: LoopRun | None = None) -> None:
        super().__init__(name, run)
        self._arguments = arguments

    def begin(self) -> None:
        self.write(EntryKind.TOOL, "call", *describe_call(self.id, self.name, to_json_value(self._arguments)))

    def end(self, outcome: CallOutcome, output: str, facts: dict[str, Any]) -> None:
        values = {**(to_json_value(facts) if facts else facts), "call": self.id, "tool": self.name, "outcome": outcome.value}
        self.write(EntryKind.TOOL, "result", output or outcome.value, f"result:{self.id}", values)

    def __call__(self, function: F) -> F:
        """Make each call of a function a use of this tool."""
        return wrap_function(function, _calls_of(self.name, function, self.run))  # type: ignore[no-any-return]


def _calls_of(name: str, function: Callable[..., Any], run: LoopRun | None = None) -> Callable[..., LoopCall]:
    return lambda args, kwargs: LoopCall(name, bind_arguments(function, args, kwargs), run)


def step(name: str) -> LoopStep:
    """Begin a step of the surrounding run: `with step("plan"):`, `async with`, or `@step("plan")` over a function."""
    return LoopStep(name)


@overload
def tool(what: F) -> F: ...
@overload
def tool(what: str, **arguments: Any) -> LoopCall: ...
def tool(what: Any, **arguments: Any) -> Any:
    """Record the use of a tool: `@tool` over a function of any kind, or `with tool("grep", pattern="x") as call:`."""
    if isinstance(what, str):
        return LoopCall(what, arguments)
    return wrap_function(what, _calls_of(callable_name(what), what))
