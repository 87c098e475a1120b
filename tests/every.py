"""Run many cases in one test. With cheap cases, one test for each would cost more than the cases."""

import inspect
from collections.abc import Callable, Iterable
from typing import Any

import pytest


def every(
    names: str | tuple[str, ...], argvalues: Iterable[Any], *, ids: list[str] | Callable[[Any], object] | None = None
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Run a test with every case, like `pytest.mark.parametrize`, and list the failed cases."""
    cases = list(argvalues)
    single = isinstance(names, str)
    labels = [str(ids(case)) for case in cases] if callable(ids) else ids or [repr(case) for case in cases]

    def decorate(test: Callable[..., None]) -> Callable[..., None]:
        def run_cases(**fixtures: Any) -> None:
            assert cases
            failed = {}
            for name, case in zip(labels, cases, strict=True):
                arguments = {names: case} if single else dict(zip(names, case, strict=True))
                try:
                    test(**arguments, **fixtures)
                except (Exception, pytest.fail.Exception) as problem:  # noqa: BLE001 - report any failure, and run the other cases
                    failed[name] = f"{type(problem).__name__}: {problem}"
            assert failed == {}, "\n".join(f"{name}: {what}" for name, what in failed.items())

        case_names = {names} if single else set(names)
        parameters = inspect.signature(test).parameters
        run_cases.__signature__ = inspect.Signature([parameters[name] for name in parameters if name not in case_names])
        run_cases.__name__, run_cases.__doc__, run_cases.__module__ = test.__name__, test.__doc__, test.__module__
        return run_cases

    return decorate
