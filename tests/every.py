"""One test of very many cases that share everything: as many tests would cost more than what they look at."""

import inspect
from collections.abc import Callable, Iterable
from typing import Any

import pytest


def every(
    names: str | tuple[str, ...], argvalues: Iterable[Any], *, ids: list[str] | Callable[[Any], object] | None = None
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Try a test with every case, as `pytest.mark.parametrize` would, and name those that fail."""
    cases = list(argvalues)
    single = isinstance(names, str)
    labels = [str(ids(case)) for case in cases] if callable(ids) else ids or [repr(case) for case in cases]

    def trying_all(test: Callable[..., None]) -> Callable[..., None]:
        def try_all(**fixtures: Any) -> None:
            assert cases
            failed = {}
            for name, case in zip(labels, cases, strict=True):
                arguments = {names: case} if single else dict(zip(names, case, strict=True))
                try:
                    test(**arguments, **fixtures)
                except (Exception, pytest.fail.Exception) as problem:  # noqa: BLE001 - whatever it is, it is told, and the others are tried
                    failed[name] = f"{type(problem).__name__}: {problem}"
            assert failed == {}, "\n".join(f"{name}: {what}" for name, what in failed.items())

        own = {names} if single else set(names)
        fixtures_taken = [one for name, one in inspect.signature(test).parameters.items() if name not in own]
        try_all.__signature__ = inspect.Signature(fixtures_taken)
        try_all.__name__, try_all.__doc__, try_all.__module__ = test.__name__, test.__doc__, test.__module__
        return try_all

    return trying_all
