"""Forks: every open database is told of one, since no engine's connection may be used on both sides of it."""

import os
from contextlib import contextmanager
from threading import Condition
from weakref import WeakSet

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Protocol

    class Forked(Protocol):
        """What minds being forked."""

        def before_fork(self) -> None: ...
        def after_fork_in_parent(self) -> None: ...
        def after_fork_in_child(self) -> None: ...


_LONGEST_WAIT = 10.0
_open_databases: "WeakSet[Forked]" = WeakSet()


def follow(database: "Forked") -> None:
    """Tell a database of every fork, for as long as it lives."""
    _open_databases.add(database)


def _all(act: "Callable[[Forked], None]") -> "Callable[[], None]":
    def hook() -> None:
        for database in list(_open_databases):
            act(database)

    return hook


os.register_at_fork(
    before=_all(lambda database: database.before_fork()),
    after_in_parent=_all(lambda database: database.after_fork_in_parent()),
    after_in_child=_all(lambda database: database.after_fork_in_child()),
)


class ForkGate:
    """Lets a fork wait until no thread is in the middle of something: a child inherits every lock that is held, for ever."""

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
