"""Until when the reads of a thread must be done, where somebody waits who would rather hear that it takes too long."""

import time
from contextlib import contextmanager
from threading import local
from typing import TYPE_CHECKING

from decklog.core.errors import TimedOut

if TYPE_CHECKING:
    from collections.abc import Iterator

_told = local()


@contextmanager
def within(seconds: float) -> "Iterator[None]":
    """Return the reads of a block so many seconds altogether."""
    before, _told.at = getattr(_told, "at", None), time.monotonic() + seconds
    try:
        yield
    finally:
        _told.at = before


def deadline() -> float | None:
    """Return when a read of this thread is stopped, by the monotonic clock; None is never. One too late never begins."""
    at: float | None = getattr(_told, "at", None)
    if at is not None and time.monotonic() >= at:
        raise overdue()
    return at


def overdue() -> TimedOut:
    """Say that a read was stopped."""
    return TimedOut("it took longer than it was given, and was stopped", hint="Ask for less.")
