"""Fork safety: open databases are notified of a fork, because no connection may be used in both processes.

A fork waits while a thread holds locks of a library: the child could never release them.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from threading import Lock, RLock, get_ident
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any, Protocol, TypeVar
from weakref import WeakSet, ref

A = TypeVar("A")
T = TypeVar("T")


class Forked(Protocol):
    """What minds being forked."""

    def before_fork(self) -> None: ...
    def after_fork_in_parent(self) -> None: ...
    def after_fork_in_child(self) -> None: ...


_LONGEST_WAIT = 10.0
_open_databases: WeakSet[Forked] = WeakSet()


def follow(database: Forked) -> None:
    """Tell a database of every fork, for as long as it lives."""
    _open_databases.add(database)


# Those that a fork takes first, so that no other thread holds one, in the order in which they were made; and those that it has.
_locks: list[ref[RLock]] = []
_taken: list[RLock] = []


def lock() -> RLock:
    """Make a lock that a child does not find held by a thread which stayed with its parent.

    Who holds it may take another that was made before it, and none that was made later.
    """
    made = RLock()
    _locks.append(ref(made, _locks.remove))
    return made


# Held while something is made that is then kept. It is taken before all others, since what is made may take any of them.
_making = RLock()


if TYPE_CHECKING:
    # To those who check types it is the same. Named so that it counts as one of this module's own.
    from functools import cached_property as once

    __all__ = ["once"]
else:

    class once:
        """A `functools.cached_property` that is computed by one thread and safe to fork.

        The lock of `cached_property` before Python 3.12 would stay locked in a child forked meanwhile.
        """

        def __init__(self, make: Callable[[Any], Any]) -> None:
            self._make = make
            self.__doc__ = make.__doc__

        def __set_name__(self, owner: type, name: str) -> None:
            self._name = name

        def __get__(self, owner: Any, kind: type | None = None) -> Any:
            if owner is None:
                return self
            kept = vars(owner)
            with _making:
                if self._name not in kept:
                    kept[self._name] = self._make(owner)
            return kept[self._name]


# The threads that are in the middle of a call which no fork may come into, and whether one is under way.
_inside: dict[int, None] = {}
_forking = Lock()


def apart(call: Callable[[A], T]) -> Callable[[A], T]:
    """Keep forks away from each call of a function that takes one argument and waits for nobody: a fork waits for its end."""

    @wraps(call)
    def called(argument: A) -> T:
        me = get_ident()
        if me in _inside:
            return call(argument)
        _inside[me] = None
        try:
            while _forking.locked():
                del _inside[me]
                with _forking:
                    _inside[me] = None
            return call(argument)
        finally:
            _inside.pop(me, None)

    return called


def _before() -> None:
    try:
        # The databases first: who is in the middle of a transaction may have to make such a call before it ends.
        for database in list(_open_databases):
            database.before_fork()
    finally:
        _forking.acquire()
    me, end = get_ident(), monotonic() + _LONGEST_WAIT
    while _inside.keys() - {me} and monotonic() < end:
        sleep(0.0005)
    for lock in (_making, *filter(None, (made() for made in reversed(list(_locks))))):
        if lock.acquire(timeout=max(0.0, end - monotonic())):
            _taken.append(lock)


def _let_go() -> None:
    while _taken:
        _taken.pop().release()


def _after_in_parent() -> None:
    _let_go()
    _forking.release()
    for database in list(_open_databases):
        database.after_fork_in_parent()


def _after_in_child() -> None:
    for other in _inside.keys() - {get_ident()}:
        del _inside[other]
    _let_go()
    _forking.release()
    for database in list(_open_databases):
        database.after_fork_in_child()


os.register_at_fork(before=_before, after_in_parent=_after_in_parent, after_in_child=_after_in_child)


class ForkGate:
    """Delays a fork until no thread holds a lock that the child would inherit locked."""

    def __init__(self) -> None:
        from threading import Condition  # which most calls do without

        self._changed = Condition()
        self._inside = 0
        self._is_shut = False

    @contextmanager
    def passing(self) -> Iterator[None]:
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
