"""Line-based input and output of a connection."""

import os
import threading
from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_CHUNK = 1 << 18


def lines(descriptor: int) -> "Iterator[bytes]":
    """Yield lines of any length with their line ends; at the end, an incomplete line."""
    parts: list[bytes] = []
    while chunk := os.read(descriptor, _CHUNK):
        start = 0
        while end := chunk.find(b"\n", start) + 1:
            parts.append(chunk[start:end])
            yield parts[0] if len(parts) == 1 else b"".join(parts)
            parts.clear()
            start = end
        if start < len(chunk):
            parts.append(chunk[start:])
    if parts:
        yield b"".join(parts)


class Outlet:
    """Output for lines from several threads: each line is written whole, and a slow reader is waited for."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._lock = threading.Lock()
        self._own: deque[bytes] = deque()
        self.is_gone = False
        # Whether a write waits for the reader.
        self.is_busy = False

    def write(self, line: bytes) -> None:
        """Write a line, waiting for the reader if necessary; do nothing if the reader is gone."""
        with self._lock:
            self._write(line)

    def write_apart(self, line: bytes) -> None:
        """Queue our own line without waiting: a thread that reads from a side must never block on writing to it."""
        self._own.append(line)
        threading.Thread(target=self._write_own, daemon=True).start()

    def _write_own(self) -> None:
        with self._lock:
            while self._own:
                self._write(self._own.popleft())

    def _write(self, line: bytes) -> None:
        rest = memoryview(line)
        self.is_busy = True
        try:
            while rest and not self.is_gone:
                rest = rest[os.write(self._descriptor, rest) :]
        except OSError:
            self.is_gone = True
        self.is_busy = False

    def close(self) -> None:
        """Close the output."""
        with self._lock:
            if not self.is_gone:
                self.is_gone = True
                os.close(self._descriptor)
