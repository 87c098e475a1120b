"""The two ends of a connection: lines as they come, and lines as they go."""

import os
import threading
from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_CHUNK = 1 << 18


def lines(descriptor: int) -> "Iterator[bytes]":
    """Read lines of any length, each with its end as it came; at the end what was left without one."""
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
    """Where lines go. One is written whole before the next begins, whoever writes it; a reader who is slow is waited for."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._lock = threading.Lock()
        self._own: deque[bytes] = deque()
        self.is_gone = False
        # Whether somebody waits for the reader.
        self.is_busy = False

    def write(self, line: bytes) -> None:
        """Write a line, and wait until the reader has room for it; a reader who went away is told nothing more."""
        with self._lock:
            self._write(line)

    def write_apart(self, line: bytes) -> None:
        """Write a line of our own without waiting: who reads from one side must never wait for it to read from us."""
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
        """Say that nothing more comes."""
        with self._lock:
            if not self.is_gone:
                self.is_gone = True
                os.close(self._descriptor)
