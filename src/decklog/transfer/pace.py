"""Work in short transactions, so that others who write wait only a moment."""

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

# How long one transaction should take.
_SECONDS = 0.02


class Pace:
    """Chooses how much is done in one transaction by how long the last one took."""

    def __init__(self, size: int, *, most: int) -> None:
        self.size = self._least = size
        self._most = most

    def timed(self, work: "Callable[[], T]") -> "T":
        """Do one part of the work; the next one may be larger or smaller."""
        begin = time.monotonic()
        done = work()
        seconds = time.monotonic() - begin
        if seconds < _SECONDS / 2:
            self.size = min(2 * self.size, self._most)
        elif seconds > 2 * _SECONDS:
            self.size = max(self.size // 2, self._least)
        return done
