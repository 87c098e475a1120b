"""What short calls use in the place of `functools` and `contextlib` does what those do."""

import contextlib
import functools
import inspect
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from decklog import wrapping


def _told(make: Callable[[Any], Any], body: Callable[[], Iterator[Any]], raised: BaseException | None) -> tuple[Any, ...]:
    """Tell what comes of a block around which a generator runs."""
    try:
        with make(body)() as value:
            if raised is not None:
                raise raised
    except BaseException as problem:  # noqa: BLE001
        return type(problem), str(problem), problem is raised, type(problem.__cause__)
    return "went on", value


def _plain() -> Iterator[int]:
    yield 1


def _passes() -> Iterator[int]:
    try:
        yield 1
    except ValueError:
        return


def _again() -> Iterator[int]:
    try:
        yield 1
    finally:
        len("done")


def _other() -> Iterator[int]:
    try:
        yield 1
    except ValueError as problem:
        raise KeyError("another") from problem


def _twice() -> Iterator[int]:
    try:
        yield 1
    except ValueError:
        yield 2
    yield 3


def _never() -> Iterator[int]:
    return
    yield 1


def test_a_block_ends_as_one_of_contextlib_does() -> None:
    for body in (_plain, _passes, _again, _other, _twice, _never):
        for kind in (None, ValueError, KeyError, StopIteration, RuntimeError, GeneratorExit, KeyboardInterrupt):
            ours, theirs = (
                _told(make, body, None if kind is None else kind("x"))
                for make in (wrapping.contextmanager, contextlib.contextmanager)
            )
            assert ours == theirs, (body.__name__, kind)


def test_errors_are_passed_over_and_nothing_is_done() -> None:
    with wrapping.suppress(LookupError, OSError):
        raise KeyError("x")
    with pytest.raises(ValueError, match="x"), wrapping.suppress(LookupError):
        raise ValueError("x")
    with wrapping.nullcontext(3) as value:
        assert value == 3


def _wrapped(one: int, *, two: str = "2") -> str:
    """Say it."""
    return two * one


def test_a_wrapper_looks_like_what_it_wraps() -> None:
    ours, theirs = (wraps(_wrapped)(lambda *_: None) for wraps in (wrapping.wraps, functools.wraps))
    for name in ("__module__", "__name__", "__qualname__", "__doc__", "__annotations__", "__wrapped__"):
        assert getattr(ours, name) == getattr(theirs, name)
    assert inspect.signature(ours) == inspect.signature(_wrapped)


def test_what_was_computed_is_kept() -> None:
    asked: list[object] = []

    @wrapping.cache
    def doubled(number: int, *, more: int = 0) -> int:
        asked.append(number)
        return 2 * number + more

    assert (doubled(2), doubled(2), doubled(2, more=1), asked) == (4, 4, 5, [2, 2])
    doubled.cache_clear()
    assert (doubled(2), asked) == (4, [2, 2, 2])
