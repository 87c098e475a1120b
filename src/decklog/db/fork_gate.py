"""Lets a fork wait until no thread is in the middle of something: a child inherits every lock that is held, for ever."""

from contextlib import contextmanager
from threading import Condition

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

_LONGEST_WAIT = 10.0


class ForkGate:
    def __init__(self) -> None:
        self._changed = Condition()
        self._inside = 0
        self._is_shut = False

    @contextmanager
    def passing(self) -> "Iterator[None]":
        """Keep forks away for the length of a block, or wait for one that is under way."""
        with self._changed:
            while self._is_shut:
                self._changed.wait()
            self._inside += 1
        try:
            yield
        finally:
            with self._changed:
                self._inside -= 1
                self._changed.notify_all()

    def shut(self, *, own: int) -> None:
        """Let nobody in, and wait for those inside but for the caller's own; not for ever, since one may wait for another."""
        with self._changed:
            self._is_shut = True
            self._changed.wait_for(lambda: self._inside <= own, _LONGEST_WAIT)

    def open(self) -> None:
        with self._changed:
            self._is_shut = False
            self._changed.notify_all()
