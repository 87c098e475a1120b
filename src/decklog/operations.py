"""Marks a store's methods as operations; every surface is derived from what is marked here."""

from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial, wraps

from decklog.errors import Invalid, LeaseLost

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar, overload

    P = ParamSpec("P")
    R = TypeVar("R")
    S = TypeVar("S")

    class Database(Protocol):
        def write(self, job: "Callable[[], R]") -> "R": ...


# Refuses to write once a lease is lost; set for as long as somebody works on a task that has been claimed.
lease: "ContextVar[Callable[[Any], None] | None]" = ContextVar("decklog_lease", default=None)
_late: "ContextVar[bool]" = ContextVar("decklog_late", default=False)

_TAKES_ANY_KEYWORD = 0x08  # inspect.CO_VARKEYWORDS, without importing inspect for it


@dataclass(frozen=True)
class Operation:
    """One verb of one store: what it is called, whether it writes, and who may call it."""

    name: str
    writes: bool
    manager_only: bool
    function: "Callable[..., Any]"

    @property
    def summary(self) -> str:
        return (self.function.__doc__ or "").strip().partition("\n")[0]


def _keywords_of(function: "Callable[..., Any]") -> "frozenset[str] | None":
    """Name the keywords a function takes; None when it takes any."""
    code = function.__code__
    if code.co_flags & _TAKES_ANY_KEYWORD:
        return None
    return frozenset(code.co_varnames[1 : code.co_argcount + code.co_kwonlyargcount])


def _refuse(function: "Callable[..., Any]", given: "dict[str, Any]", known: "frozenset[str]") -> Invalid:
    unknown = sorted(given.keys() - known)
    return Invalid(
        f"{function.__qualname__} knows no {', '.join(unknown)}; it takes {', '.join(sorted(known))}",
        unknown=unknown,
    )


def within_lease(db: "Database", job: "Callable[[], R]") -> "R":
    """Write in one transaction, which is refused when whoever writes has lost the task that it writes for."""
    check = lease.get()
    if check is None:
        return db.write(job)

    def checked() -> "R":
        # What the job calls in its turn is part of the same act: the task may be its own no more, once it has ended it.
        token = lease.set(None)
        try:
            check(db)
            return job()
        finally:
            lease.reset(token)

    return db.write(checked)


def even_late(db: "Database", job: "Callable[[], R]") -> "R":
    """Write in one transaction, whoever has the task by now; the job hears from `is_late` when it is another."""
    check = lease.get()
    if check is None:
        return db.write(job)

    def told() -> "R":
        # What the job calls in its turn is part of the same act, and no more refused than the job itself.
        tokens = lease.set(None), _late.set(_has_lost(check, db))
        try:
            return job()
        finally:
            lease.reset(tokens[0])
            _late.reset(tokens[1])

    return db.write(told)


def _has_lost(check: "Callable[[Any], None]", db: "Any") -> bool:
    try:
        check(db)
    except LeaseLost:
        return True
    return False


def is_late() -> bool:
    """Tell whether whoever writes has lost the task that it writes for."""
    return _late.get()


def _proven(function: "Callable[..., Any]", store: "Any", args: "tuple[Any, ...]", kwargs: "dict[str, Any]") -> "Any":
    """Run what only the manager may, under the manager's proof where one is bound."""
    arguments = {**dict(zip(function.__code__.co_varnames[1:], args, strict=False)), **kwargs}
    return store._under_proof(function.__qualname__.lower(), arguments, lambda: function(store, *args, **kwargs))


def _operation(function: "Callable[..., Any]", through: str, *, writes: bool, manager_only: bool, late: bool = False) -> "Any":
    known = _keywords_of(function)

    @wraps(function)
    def operation(store: "Any", /, *args: "Any", **kwargs: "Any") -> "Any":
        if kwargs and known is not None and not kwargs.keys() <= known:
            raise _refuse(function, kwargs, known)
        try:
            if through == "none":
                return function(store, *args, **kwargs)
            if through == "read":
                return store._db.read(lambda: function(store, *args, **kwargs))
            write = partial(even_late if late else within_lease, store._db)
            if manager_only:
                return write(lambda: _proven(function, store, args, kwargs))
            return write(lambda: function(store, *args, **kwargs))
        except OverflowError as problem:
            # Times and columns have their limits, and only a number that the caller gave can be beyond them.
            raise Invalid(f"a number given to {function.__qualname__} is too large: {problem}") from problem

    operation.__operation__ = Operation(  # type: ignore[attr-defined]
        name=function.__name__, writes=writes, manager_only=manager_only, function=operation
    )
    return operation


def reads(function: "Callable[Concatenate[S, P], R]") -> "Callable[Concatenate[S, P], R]":
    """Mark a verb that only reads; all its statements see one consistent moment."""
    return _operation(function, "read", writes=False, manager_only=False)  # type: ignore[no-any-return]


def reads_in_steps(function: "Callable[Concatenate[S, P], R]") -> "Callable[Concatenate[S, P], R]":
    """Mark a reading verb that opens its own transactions, because it waits or gives its results bit by bit."""
    return _operation(function, "none", writes=False, manager_only=False)  # type: ignore[no-any-return]


def _marker(through: str) -> "Any":
    def mark(function: "Any" = None, *, manager_only: bool = False, late: bool = False) -> "Any":
        if function is None:
            return lambda inner: _operation(inner, through, writes=True, manager_only=manager_only, late=late)
        return _operation(function, through, writes=True, manager_only=manager_only)

    return mark


if TYPE_CHECKING:

    class Marker(Protocol):
        @overload
        def __call__(self, function: Callable[Concatenate[S, P], R]) -> Callable[Concatenate[S, P], R]: ...
        @overload
        def __call__(
            self, *, manager_only: bool = False, late: bool = False
        ) -> Callable[[Callable[Concatenate[S, P], R]], Callable[Concatenate[S, P], R]]: ...


# Marks a verb that writes: it runs in one transaction, all of it or nothing. `manager_only` keeps it off every surface that
# agents reach, and where a manager is bound it runs only under the manager's proof; `late` lets it write after a lease was lost.
writes: "Marker" = _marker("write")

# Marks a writing verb that opens its own transactions, because it waits between them or keeps what it refuses. One that is for
# the manager alone asks for its proof itself.
writes_in_steps: "Marker" = _marker("none")


def operations_of(store_class: type) -> "Iterator[Operation]":
    """List the operations of a store, in the order they are written."""
    seen = set()
    for owner in store_class.__mro__:
        for member in vars(owner).values():
            operation = getattr(member, "__operation__", None)
            if operation is not None and operation.name not in seen:
                seen.add(operation.name)
                yield operation
