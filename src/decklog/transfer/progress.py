"""Progress of long work, what it did, and work in short transactions."""

import time
from collections.abc import Callable
from dataclasses import asdict
from typing import Any, TypeVar

# Called with what is being done, how much of it is done, and how much there is (0 when that is not known).
Progress = Callable[[str, int, int], None]


def silent(_what: str, _done: int, _whole: int) -> None:
    """Report nothing."""


class WorkResult:
    """The base of the data classes with what some work did."""

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)  # type: ignore[call-overload, no-any-return]


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
