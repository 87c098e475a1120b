"""Functions of every kind with a span around each call: plain ones, those that are awaited, and both kinds of generators."""

import inspect
from functools import wraps
from typing import TYPE_CHECKING

from decklog.plugins.adapters.loops.span import LoopSpan, present
from decklog.plugins.adapters.waiting import away

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Generator
    from typing import Any

    # Makes the span of one call from what the function is called with.
    Spans = Callable[[tuple[Any, ...], dict[str, Any]], LoopSpan]

# Values of a generator are recorded up to this number, and counted beyond it.
_MOST_ITEMS = 100


def wrapped(function: "Callable[..., Any]", spans: "Spans") -> "Any":
    """Return the function with a span around each of its calls."""
    if inspect.isasyncgenfunction(function):
        return _async_generator(function, spans)
    if inspect.iscoroutinefunction(function):
        return _coroutine(function, spans)
    return _generator(function, spans) if inspect.isgeneratorfunction(function) else _plain(function, spans)


def _plain(function: "Callable[..., Any]", spans: "Spans") -> "Any":
    @wraps(function)
    def call(*args: "Any", **kwargs: "Any") -> "Any":
        with spans(args, kwargs) as span:
            found = function(*args, **kwargs)
            span.returned(found)
            return found

    return call


def _coroutine(function: "Callable[..., Any]", spans: "Spans") -> "Any":
    @wraps(function)
    async def call(*args: "Any", **kwargs: "Any") -> "Any":
        async with spans(args, kwargs) as span:
            found = await function(*args, **kwargs)
            span.returned(found)
            return found

    return call


class _Given:
    """What a generator gave so far."""

    def __init__(self) -> None:
        self._items: list[Any] = []
        self._count = 0

    def add(self, item: "Any") -> None:
        self._count += 1
        if self._count <= _MOST_ITEMS:
            self._items.append(item)

    def report(self, span: LoopSpan) -> None:
        is_text = all(isinstance(item, str) for item in self._items)
        span.returned("".join(self._items) if is_text else self._items, items=self._count)


class _Aside:
    """Runs a generator with its own innermost span, and its consumer with theirs."""

    def __init__(self, span: LoopSpan) -> None:
        self._inner: LoopSpan | None = span
        self._outer: LoopSpan | None = None

    def __enter__(self) -> None:
        self._outer = present.get()
        present.set(self._inner)

    def __exit__(self, *_: object) -> None:
        self._inner = present.get()
        present.set(self._outer)


def _generator(function: "Callable[..., Any]", spans: "Spans") -> "Any":
    @wraps(function)
    def call(*args: "Any", **kwargs: "Any") -> "Generator[Any, Any, Any]":
        span, given = spans(args, kwargs), _Given()
        span.__enter__()
        span.leave()
        aside, problem = _Aside(span), None
        steps = function(*args, **kwargs)
        try:
            with aside:
                item = next(steps)
            while True:
                given.add(item)
                try:
                    sent = yield item
                except GeneratorExit:
                    with aside:
                        steps.close()
                    raise
                except BaseException as thrown:  # noqa: BLE001  (the generator handles what was thrown into it)
                    with aside:
                        item = steps.throw(thrown)
                else:
                    with aside:
                        item = steps.send(sent)
        except StopIteration as over:
            return over.value
        except BaseException as error:
            problem = error
            raise
        finally:
            given.report(span)
            span.settle_if_recorded(problem)

    return call


def _async_generator(function: "Callable[..., Any]", spans: "Spans") -> "Any":
    @wraps(function)
    async def call(*args: "Any", **kwargs: "Any") -> "AsyncGenerator[Any, Any]":
        span, given = spans(args, kwargs), _Given()
        await span.__aenter__()
        span.leave()
        aside, problem = _Aside(span), None
        steps = function(*args, **kwargs)
        try:
            with aside:
                item = await anext(steps)
            while True:
                given.add(item)
                try:
                    sent = yield item
                except GeneratorExit:
                    with aside:
                        await steps.aclose()
                    raise
                except BaseException as thrown:  # noqa: BLE001  (the generator handles what was thrown into it)
                    with aside:
                        item = await steps.athrow(thrown)
                else:
                    with aside:
                        item = await steps.asend(sent)
        except StopAsyncIteration:
            return
        except BaseException as error:
            problem = error
            raise
        finally:
            given.report(span)
            if (log := span.log_of()) is not None:
                await away(log, lambda: span.settle(problem))

    return call
