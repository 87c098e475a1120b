"""Record the statements that a log runs, for tests that count them."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from decklog import Decklog


@contextmanager
def statements(log: Decklog) -> Iterator[list[tuple[str, Any]]]:
    """Collect the statements that this thread runs in a block, with their parameters. Another thread indexes texts."""
    executed: list[tuple[str, Any]] = []
    inside = False
    thread = threading.get_ident()

    def record(execute: Callable[..., Any]) -> Callable[..., Any]:
        def recorded(sql: str, parameters: Any) -> Any:
            nonlocal inside
            if threading.get_ident() != thread:
                return execute(sql, parameters)
            # One of these methods may call another.
            is_first, inside = not inside, True
            if is_first:
                executed.append((sql, parameters))
            try:
                return execute(sql, parameters)
            finally:
                inside = inside and not is_first

        return recorded

    methods = {name: getattr(log.db, name) for name in ("rows", "one")}
    for name, method in methods.items():
        setattr(log.db, name, record(method))
    try:
        yield executed
    finally:
        for name in methods:
            delattr(log.db, name)
