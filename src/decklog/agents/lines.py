"""Reader of JSON Lines files that programs write: growing, cut off at the end, with unreadable lines."""

import errno
import json
import os
import stat
from collections.abc import Callable, Iterator
from typing import IO, Any

# Lines have some thousand characters; a smaller buffer would split nearly each of them.
_READ_AT_ONCE = 256 * 1024


def lines_of(
    path: str,
    start: int = 0,
    unread: Callable[[], None] | None = None,
    has_events: Callable[[bytes], object] | None = None,
) -> Iterator[tuple[dict[str, Any], int]]:
    """Yield the complete lines of a file that are JSON objects, from an offset on, each with its end offset.

    An object that `has_events` rejects is not parsed and is yielded as an empty dict.
    """
    with opened(path) as file:
        size = file.seek(0, 2)
        # A file that became shorter is a different file.
        place = file.seek(start if start <= size else 0)
        for line in file:
            if not line.endswith(b"\n"):
                return
            place += len(line)
            if has_events is not None and line.startswith(b"{") and line.endswith(b"}\n") and not has_events(line):
                yield {}, place
                continue
            try:
                found = json.loads(line)
            except (ValueError, RecursionError):
                found = None
            if isinstance(found, dict):
                yield found, place
            elif unread is not None and line.strip():
                unread()


def opened(path: str) -> IO[bytes]:
    """Open a regular file. Other programs supply the path, and a pipe or a device would never end."""
    # Without O_NONBLOCK, opening a pipe waits for a writer.
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "no plain file", path)
    return open(descriptor, "rb", _READ_AT_ONCE)
