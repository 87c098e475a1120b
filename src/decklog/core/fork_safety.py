"""Fork safety: open databases are notified of a fork, because no connection may be used in both processes.

A fork waits while a thread holds locks of a library: the child could never release them.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from threading import Condition, Lock, RLock, get_ident
from time import monotonic
from typing import TYPE_CHECKING, Any, Protocol, TypeVar
from weakref import WeakSet, ref

A = TypeVar("A")
T = TypeVar("T")


class ForkListener(Protocol):
    """An object that is notified of forks."""

    def before_fork(self) -> None: ...
    def after_fork_in_parent(self) -> None: ...
    def after_fork_in_child(self) -> None: ...


_LONGEST_WAIT = 10.0
_open_databases: WeakSet[ForkListener] = WeakSet()


def notify_of_forks(database: ForkListener) -> None:
    """Notify a database of every fork, for as long as it lives."""
    _open_databases.add(database)


# All fork-safe locks by creation, and those acquired for the current fork.
_locks: list[ref[RLock]] = []
_held_locks: list[RLock] = []


def create_lock() -> RLock:
    """Create a lock that is never held by another thread at the moment of a fork.

    A thread that holds it may acquire locks that were created before it, and none that were created later.
    """
    new_lock = RLock()
    _locks.append(ref(new_lock, _locks.remove))
    return new_lock


# Held while a cached property is computed. It is acquired before all others, since the computation may need any of them.
_property_lock = RLock()


if TYPE_CHECKING:
    # Type checkers treat it as cached_property.
    from functools import cached_property as fork_safe_property

    __all__ = ["fork_safe_property"]
else:

    class fork_safe_property:
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
            attributes = vars(owner)
            with _property_lock:
                if self._name not in attributes:
                    attributes[self._name] = self._make(owner)
            return attributes[self._name]


class ForkGate:
    """Delays a fork while threads are in sections with locks that the child would inherit locked."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._changed = Condition(self._lock)
        # The number of open sections by thread.
        self._inside: dict[int, int] = {}
        self._is_shut = False

    def enter(self) -> int:
        """Begin a section, and return the token for `leave`. Wait for a running fork, unless this thread is in a section."""
        thread = get_ident()
        with self._lock:
            while self._is_shut and thread not in self._inside:
                self._changed.wait()
            self._inside[thread] = self._inside.get(thread, 0) + 1
        return thread

    def leave(self, entered: int) -> None:
        """End a section. It may end in another thread than it began in."""
        with self._lock:
            self._inside[entered] -= 1
            if not self._inside[entered]:
                del self._inside[entered]
            if self._is_shut:
                self._changed.notify_all()

    @contextmanager
    def passing(self) -> Iterator[None]:
        """Run a block as a section."""
        entered = self.enter()
        try:
            yield
        finally:
            self.leave(entered)

    def shut(self, own: int | None = None) -> None:
        """Block new sections, and wait up to a time limit for others to end.

        `own` is the number of sections not to wait for; by default those of this thread.
        """
        with self._changed:
            self._is_shut = True
            if own is None:
                own = self._inside.get(get_ident(), 0)
            self._changed.wait_for(lambda: sum(self._inside.values()) <= own, _LONGEST_WAIT)

    def open(self) -> None:
        with self._changed:
            self._is_shut = False
            self._changed.notify_all()


# Calls that hold locks of a library.
_calls = ForkGate()


def delay_forks(call: Callable[[A], T]) -> Callable[[A], T]:
    """Delay forks during each call of a function with one argument, which must not block."""

    @wraps(call)
    def called(argument: A) -> T:
        gate = _calls
        entered = gate.enter()
        try:
            return call(argument)
        finally:
            gate.leave(entered)

    return called


def _before_fork() -> None:
    # Databases first: a running transaction may need such a call before it ends.
    for database in list(_open_databases):
        database.before_fork()
    _calls.shut()
    end = monotonic() + _LONGEST_WAIT
    for lock in (_property_lock, *filter(None, (reference() for reference in reversed(list(_locks))))):
        if lock.acquire(timeout=max(0.0, end - monotonic())):
            _held_locks.append(lock)


def _release_locks() -> None:
    while _held_locks:
        _held_locks.pop().release()


def _after_in_parent() -> None:
    _release_locks()
    _calls.open()
    for database in list(_open_databases):
        database.after_fork_in_parent()


def _after_in_child() -> None:
    global _calls
    _release_locks()
    _calls = ForkGate()
    for database in list(_open_databases):
        database.after_fork_in_child()


os.register_at_fork(before=_before_fork, after_in_parent=_after_in_parent, after_in_child=_after_in_child)
