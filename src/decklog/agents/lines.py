"""Files of JSON objects, one a line, as programs leave them: growing, cut off at the end, with lines that can't be read."""

import json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any


def lines_of(path: str, start: int = 0, unread: "Callable[[], None] | None" = None) -> "Iterator[tuple[dict[str, Any], int]]":
    """Read a file's whole lines that are JSON objects, from a place on, each with the place where it ends."""
    with open(path, "rb") as file:
        size = file.seek(0, 2)
        # A file that became shorter is another one.
        place = file.seek(start if start <= size else 0)
        for line in file:
            if not line.endswith(b"\n"):
                return
            place += len(line)
            try:
                found = json.loads(line)
            except (ValueError, RecursionError):
                found = None
            if isinstance(found, dict):
                yield found, place
            elif unread is not None and line.strip():
                unread()
