"""What `functools` and `contextlib` have that short calls need.

Those two bring `collections`, `operator` and more with them, and make forty classes: a tenth of a short call, for a few functions
of some lines each. They do here what they do there.
"""

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from contextlib import contextmanager as contextmanager
    from contextlib import nullcontext as nullcontext
    from contextlib import suppress as suppress
    from functools import cache as cache
    from functools import wraps as wraps
    from types import TracebackType
    from typing import Any

# What a function has that its wrapper takes over. Python 3.14 finds the types of parameters when somebody asks for them.
_TAKEN_OVER = (
    *("__module__", "__name__", "__qualname__", "__doc__", "__type_params__"),
    "__annotate__" if sys.version_info >= (3, 14) else "__annotations__",
)


class _Block:
    """Runs a generator up to its yield before a block, and to its end after it."""

    __slots__ = ("_generator",)

    def __init__(self, generator: "Generator[Any, None, None]") -> None:
        self._generator = generator

    def __enter__(self) -> "Any":
        for value in self._generator:
            return value
        raise RuntimeError("generator didn't yield")

    def __exit__(
        self, kind: "type[BaseException] | None", problem: "BaseException | None", trace: "TracebackType | None"
    ) -> bool:
        if kind is None:
            for _ in self._generator:
                self._generator.close()
                raise RuntimeError("generator didn't stop")
            return False
        problem = kind() if problem is None else problem
        try:
            self._generator.throw(problem)
        except BaseException as raised:
            if raised is problem:
                # It went through, and tells where it comes from, not by which ways.
                problem.__traceback__ = trace
                return False
            if isinstance(raised, StopIteration):
                return True
            # Python wraps it where it leaves a generator, whose own end it would otherwise mean.
            if isinstance(problem, StopIteration) and type(raised) is RuntimeError and raised.__cause__ is problem:
                problem.__traceback__ = trace
                return False
            raise
        self._generator.close()
        raise RuntimeError("generator didn't stop after throw()")


class _Nothing:
    """A block like any other, around which nothing is done."""

    def __init__(self, value: "Any" = None) -> None:
        self._value = value

    def __enter__(self) -> "Any":
        return self._value

    def __exit__(self, *_problem: object) -> None:
        return None


class _Passed:
    """Ends a block at the first error of some kinds, and goes on after it."""

    def __init__(self, *kinds: type[BaseException]) -> None:
        self._kinds = kinds

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: "type[BaseException] | None", *_where: object) -> bool:
        return kind is not None and issubclass(kind, self._kinds)


def _taking_over(function: "Callable[..., Any]") -> "Callable[[Any], Any]":
    """Let a wrapper look like the function that it wraps."""

    def taken(wrapper: "Any") -> "Any":
        for name in _TAKEN_OVER:
            if hasattr(function, name):
                setattr(wrapper, name, getattr(function, name))
        wrapper.__dict__.update(function.__dict__)
        wrapper.__wrapped__ = function
        return wrapper

    return taken


def _kept(function: "Callable[..., Any]") -> "Any":
    """Remember what a function gave for the same arguments, for ever."""
    try:
        from _functools import _lru_cache_wrapper as remembering  # type: ignore[import-not-found]
    except ImportError:  # not every Python has it
        from functools import cache as whole

        return whole(function)
    return _taking_over(function)(remembering(function, None, False, lambda *figures: figures))


def _around(function: "Callable[..., Any]") -> "Any":
    """Make of a function that yields once what does something before a block and after it."""

    @_taking_over(function)
    def block(*arguments: "Any", **named: "Any") -> _Block:
        return _Block(function(*arguments, **named))

    return block


if not TYPE_CHECKING:  # to a reader of types they are Python's own
    cache, wraps = _kept, _taking_over
    contextmanager, nullcontext, suppress = _around, _Nothing, _Passed
