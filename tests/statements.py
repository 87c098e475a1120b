"""The statements that a log runs: counted where a claim is about how many there are."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from decklog import Decklog


@contextmanager
def statements(log: Decklog) -> Iterator[list[tuple[str, Any]]]:
    """Collect the statements that this thread runs in a block, with their parameters: texts are indexed in another thread."""
    executed: list[tuple[str, Any]] = []
    inside = False
    thread = threading.get_ident()

    def noting(plain: Callable[..., Any]) -> Callable[..., Any]:
        def noted(sql: str, parameters: Any) -> Any:
            nonlocal inside
            if threading.get_ident() != thread:
                return plain(sql, parameters)
            # One way of asking may be made of another.
            is_first, inside = not inside, True
            if is_first:
                executed.append((sql, parameters))
            try:
                return plain(sql, parameters)
            finally:
                inside = inside and not is_first

        return noted

    ways = {name: getattr(log.db, name) for name in ("rows", "one")}
    for name, plain in ways.items():
        setattr(log.db, name, noting(plain))
    try:
        yield executed
    finally:
        for name in ways:
            delattr(log.db, name)
