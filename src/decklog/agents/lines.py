"""Files of JSON objects, one a line, as programs leave them: growing, cut off at the end, with lines that can't be read."""

import errno
import json
import os
import stat
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import IO, Any

# Lines have some thousand characters: of fewer at a time nearly each would be put together of two.
_READ_AT_ONCE = 256 * 1024
_scan = json.JSONDecoder().scan_once  # type: ignore[attr-defined]


def lines_of(
    path: str,
    start: int = 0,
    unread: "Callable[[], None] | None" = None,
    may_tell: "Callable[[bytes], object] | None" = None,
) -> "Iterator[tuple[dict[str, Any], int]]":
    """Read a file's whole lines that are JSON objects, from a place on, each with the place where it ends.

    An object of which `may_tell` says that it tells nothing is not read, and given as an empty one.
    """
    with opened(path) as file:
        size = file.seek(0, 2)
        # A file that became shorter is another one.
        place = file.seek(start if start <= size else 0)
        for line in file:
            if not line.endswith(b"\n"):
                return
            place += len(line)
            if may_tell is not None and line.startswith(b"{") and line.endswith(b"}\n") and not may_tell(line):
                yield {}, place
                continue
            try:
                found = _read(line)
            except (ValueError, RecursionError):
                found = None
            if isinstance(found, dict):
                yield found, place
            elif unread is not None and line.strip():
                unread()


def opened(path: str) -> "IO[bytes]":
    """Open a plain file: who tells of one names a path, and a pipe or a device at its end would never be read to the end."""
    # To open a pipe would wait for somebody who writes to it.
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "no plain file", path)
    return open(descriptor, "rb", _READ_AT_ONCE)


def _read(line: bytes) -> "Any":
    """Read a line as JSON: most begin as an object and end with it, and need not be asked for more."""
    if line.startswith(b'{"'):
        text = line.decode("utf-8", "surrogatepass")
        try:
            found, end = _scan(text, 0)
        except StopIteration:
            end = 0
        if text[end:] == "\n":
            return found
    return json.loads(line)
