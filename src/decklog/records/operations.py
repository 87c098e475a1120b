"""Mark methods of stores as operations. The CLI, MCP and async interfaces are derived from them."""

from collections.abc import Callable, Generator, Hashable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial, wraps
from inspect import CO_VARARGS, CO_VARKEYWORDS
from time import perf_counter
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar, overload

from decklog.core.errors import Denied, Invalid, LeaseLost
from decklog.core.metrics import CALL_SECONDS

P = ParamSpec("P")
R = TypeVar("R")
S = TypeVar("S")


class WritableDatabase(Protocol):
    def write(self, job: Callable[[], R]) -> R: ...


# Raises LeaseLost; set inside the block of a claim.
lease: ContextVar[Callable[[Any], None] | None] = ContextVar("decklog_lease", default=None)
# True while an agent's call runs: operations of the owner are refused, also when another operation calls them.
is_agent_call: ContextVar[bool] = ContextVar("decklog_of_an_agent", default=False)
_late: ContextVar[bool] = ContextVar("decklog_late", default=False)


@dataclass(frozen=True, kw_only=True, slots=True)
class Operation:
    """One verb of one store: what it is called, whether it writes, and who may call it."""

    name: str
    writes: bool
    owner_only: bool
    function: Callable[..., Any]
    # In one `read` or `write` transaction, in several (`none`), or step by step (`answer`, `follow`).
    through: str
    # Starts the generator of a stepwise verb, for async callers.
    steps: Callable[..., Generator[Any, Any, Any]] | None
    # Whether the result is a resource that the caller must use or release.
    hands_out: bool

    @property
    def summary(self) -> str:
        return (self.function.__doc__ or "").strip().partition("\n")[0]


@dataclass(frozen=True, slots=True)
class WaitStep:
    """A step of a verb that waits. A thread runs the steps; an async task awaits them."""

    how: str
    job: Callable[[], Any] | None = None
    # Called with the outcome, or None, if the caller is cancelled.
    undo: Callable[[Any], object] | None = None
    seconds: float = 0.0
    stream: str | None = None
    # Tasks that wait for the same thing share a queue; only the first polls. `patience` is the time limit.
    queue: Hashable = None
    patience: float = 0.0


def read_step(job: Callable[[], Any]) -> WaitStep:
    """Return a step that runs a job in one read transaction."""
    return WaitStep("read", job)


def write_step(job: Callable[[], Any], *, undo: Callable[[Any], object] | None = None) -> WaitStep:
    """Return a step that runs a job in one write transaction."""
    return WaitStep("write", job, undo=undo)


def call_step(job: Callable[[], Any], *, undo: Callable[[Any], object] | None = None) -> WaitStep:
    """Return a step that calls another verb."""
    return WaitStep("none", job, undo=undo)


def wait_step(seconds: float, stream: str | None, *, queue: Hashable = None, patience: float = 0.0) -> WaitStep:
    """Return a step that waits for a commit to a stream, or to any, or for a timeout."""
    return WaitStep("wait", seconds=seconds, stream=stream, queue=queue, patience=patience)


def check_wait(db: Any) -> None:
    """Raise Invalid inside a transaction: it blocks other writers, so waiting would never end."""
    if db.is_in_transaction:
        raise Invalid(
            "this can't wait inside a transaction, which blocks the writer that it waits for",
            hint="Wait before or after the block of log.transaction(), or call it without a time to wait.",
        )


def check_committed(db: Any, what: str) -> None:
    """Raise Invalid inside a transaction, where a cursor may refer to an entry that is rolled back."""
    if db.is_in_transaction:
        raise Invalid(
            f"{what} can't be used inside a transaction: its entries may still be rolled back, and a reader would skip others",
            hint="Call it before or after the block of log.transaction(); journal.find shows entries inside it.",
        )


def _run_step(db: Any, step: WaitStep) -> Any:
    if step.how == "write":
        return db.write(step.job)
    if step.how == "wait":
        check_wait(db)
        return db.wait_for_change(step.seconds, step.stream)
    assert step.job is not None
    return step.job() if step.how == "none" else getattr(db, step.how)(step.job)


def _run_steps(call: str, db: Any, steps: Generator[WaitStep, Any, R]) -> R:
    """Run the steps of a verb in this thread and return its result. Steps that don't wait are measured."""
    found: Any = None
    while True:
        started = perf_counter()
        try:
            step = steps.send(found)
        except StopIteration as over:
            answer: R = over.value
            return answer
        found = _run_step(db, step)
        if step.how != "wait":
            CALL_SECONDS.observe(call, perf_counter() - started)


def _yield_items(_: str, db: Any, steps: Generator[WaitStep | list[R], Any, None]) -> Iterator[R]:
    """Run the steps of a verb in this thread and yield the items of its lists."""
    found: Any = None
    while True:
        try:
            step = steps.send(found)
        except StopIteration:
            return
        if isinstance(step, WaitStep):
            found = _run_step(db, step)
        else:
            yield from step
            found = None


_STEPWISE: dict[str, Callable[[str, Any, Any], Any]] = {"answer": _run_steps, "follow": _yield_items}


def _accepted_keywords(function: Callable[..., Any]) -> frozenset[str] | None:
    """Return the keywords that a function accepts; None if it accepts any."""
    code = function.__code__
    named = code.co_varnames[1 : code.co_argcount + code.co_kwonlyargcount]
    if not code.co_flags & CO_VARKEYWORDS:
        return frozenset(named)
    fields = keyword_fields(function)
    return None if fields is None else frozenset([*named, *fields])


def keyword_fields(function: Callable[..., Any]) -> dict[str, Any] | None:
    """Return the types of the keywords that `**fields: Unpack[SomeTypedDict]` adds to a function; None without such a type."""
    code = function.__code__
    if not code.co_flags & CO_VARKEYWORDS:
        return {}
    place = code.co_argcount + code.co_kwonlyargcount + bool(code.co_flags & CO_VARARGS)
    given = getattr(function.__annotations__.get(code.co_varnames[place]), "__args__", ())
    return dict(given[0].__annotations__) if given else None


def _unknown_keywords(function: Callable[..., Any], given: dict[str, Any], known: frozenset[str]) -> Invalid:
    unknown, takes = sorted(given.keys() - known), ", ".join(sorted(known))
    return Invalid(f"{function.__qualname__} takes no {', '.join(unknown)}; it takes {takes}", unknown=unknown)


def within_lease(db: WritableDatabase, job: Callable[[], R]) -> R:
    """Run a job in one write transaction; raise LeaseLost if the task's lease is lost."""
    check = lease.get()
    if check is None:
        return db.write(job)

    def checked() -> R:
        # Nested verbs belong to the same act: the job may have finished the task.
        token = lease.set(None)
        try:
            check(db)
            return job()
        finally:
            lease.reset(token)

    return db.write(checked)


def write_even_late(db: WritableDatabase, job: Callable[[], R]) -> R:
    """Run a job in one write transaction even after the lease is lost; `is_late` is then true."""
    check = lease.get()
    if check is None:
        return db.write(job)

    def marked() -> R:
        # Nested verbs belong to the same act and are not refused either.
        tokens = lease.set(None), _late.set(_has_lost(check, db))
        try:
            return job()
        finally:
            lease.reset(tokens[0])
            _late.reset(tokens[1])

    return db.write(marked)


def _has_lost(check: Callable[[Any], None], db: Any) -> bool:
    try:
        check(db)
    except LeaseLost:
        return True
    return False


def is_late() -> bool:
    """Return whether this job writes for a task whose lease is lost."""
    return _late.get()


def _run_signed(function: Callable[..., Any], store: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Run an operation of the owner, with a signature if an owner key is registered."""
    arguments = {**dict(zip(function.__code__.co_varnames[1:], args, strict=False)), **kwargs}
    return store._run_signed(function.__qualname__.lower(), arguments, lambda: function(store, *args, **kwargs))


def _build_starter(function: Callable[..., Any], known: frozenset[str] | None) -> Callable[..., Any]:
    """Return a function that starts the generator of a stepwise verb."""

    def steps(store: Any, /, *args: Any, **kwargs: Any) -> Any:
        if known is not None and not kwargs.keys() <= known:
            raise _unknown_keywords(function, kwargs, known)
        return function(store, *args, **kwargs)

    return steps


def _build_operation(
    function: Callable[..., Any],
    through: str,
    *,
    writes: bool,
    owner_only: bool = False,
    late: bool = False,
    prepares: bool = False,
    hands_out: bool = False,
) -> Any:
    known = _accepted_keywords(function)
    name, is_step, is_read, stepwise = function.__name__, prepares or through == "none", through == "read", _STEPWISE.get(through)

    @wraps(function)
    def operation(store: Any, /, *args: Any, **kwargs: Any) -> Any:
        if known is not None and not kwargs.keys() <= known:
            raise _unknown_keywords(function, kwargs, known)
        if owner_only and is_agent_call.get():
            raise Denied(f"{function.__qualname__} is for the owner; agents have no such verb", hint="Ask a person for it.")
        started, call = perf_counter(), f"{type(store).__name__.lower()}.{name}"
        try:
            if is_step:
                return function(store, *args, **kwargs)
            if stepwise is not None:
                return stepwise(call, store._db, function(store, *args, **kwargs))
            job = partial(_run_signed, function, store, args, kwargs) if owner_only else partial(function, store, *args, **kwargs)
            if is_read:
                return store._db.read(job)
            if lease.get() is None:
                return store._db.write(job)
            return write_even_late(store._db, job) if late else within_lease(store._db, job)
        except OverflowError as problem:
            # Only a number from the caller can exceed the limits of times and columns.
            raise Invalid(f"a number given to {function.__qualname__} is too large: {problem}") from problem
        finally:
            if stepwise is None:
                CALL_SECONDS.observe(call, perf_counter() - started)

    operation.__operation__ = Operation(  # type: ignore[attr-defined]
        name=name,
        writes=writes,
        owner_only=owner_only,
        function=operation,
        through=through,
        steps=None if stepwise is None else _build_starter(function, known),
        hands_out=hands_out,
    )
    return operation


def reads(function: Callable[Concatenate[S, P], R]) -> Callable[Concatenate[S, P], R]:
    """Mark a verb that reads in one transaction."""
    return _build_operation(function, "read", writes=False)  # type: ignore[no-any-return]


def reads_in_steps(function: Callable[Concatenate[S, P], R]) -> Callable[Concatenate[S, P], R]:
    """Mark a reading verb that opens its own transactions, because it waits or yields results."""
    return _build_operation(function, "none", writes=False)  # type: ignore[no-any-return]


def waits_to_read(function: Callable[Concatenate[S, P], Generator[WaitStep, Any, R]]) -> Callable[Concatenate[S, P], R]:
    """Mark a reading verb that waits: it yields its steps, and returns its answer."""
    return _build_operation(function, "answer", writes=False)  # type: ignore[no-any-return]


def waits_to_write(function: Callable[Concatenate[S, P], Generator[WaitStep, Any, R]]) -> Callable[Concatenate[S, P], R]:
    """Mark a writing verb that waits: it yields its steps, and returns its answer."""
    return _build_operation(function, "answer", writes=True)  # type: ignore[no-any-return]


def follows(
    function: Callable[Concatenate[S, P], Generator[WaitStep | list[R], Any, None]],
) -> Callable[Concatenate[S, P], Iterator[R]]:
    """Mark a reading verb that does not end: it yields steps, and lists of items for the caller."""
    return _build_operation(function, "follow", writes=False)  # type: ignore[no-any-return]


def prepares_to_write(function: Callable[Concatenate[S, P], R]) -> Callable[Concatenate[S, P], R]:
    """Mark a verb that prepares its write outside of its transaction (`within_lease`), so that others do not wait for it."""
    return _build_operation(function, "write", writes=True, prepares=True)  # type: ignore[no-any-return]


def _marker(through: str) -> Any:
    def mark(function: Any = None, **options: bool) -> Any:
        def marked(verb: Any) -> Any:
            return _build_operation(verb, through, writes=True, **options)

        return marked if function is None else marked(function)

    return mark


class Marker(Protocol):
    @overload
    def __call__(self, function: Callable[Concatenate[S, P], R]) -> Callable[Concatenate[S, P], R]: ...
    @overload
    def __call__(
        self, *, owner_only: bool = False, late: bool = False, hands_out: bool = False
    ) -> Callable[[Callable[Concatenate[S, P], R]], Callable[Concatenate[S, P], R]]: ...


# Mark a verb that writes in one transaction. `owner_only`: agents can't call it, and it needs a signature if an owner key is
# registered. `late`: it may write after a lease was lost. `hands_out`: it is rolled back if the awaiting task is cancelled.
writes: Marker = _marker("write")

# Mark a writing verb that opens its own transactions, because it waits between them or records refusals. With `owner_only` it
# asks for the signature itself.
writes_in_steps: Marker = _marker("none")


def operations_of(store_class: type) -> Iterator[Operation]:
    """List the operations of a store, in the order they are written."""
    seen = set()
    for owner in store_class.__mro__:
        for member in vars(owner).values():
            operation = getattr(member, "__operation__", None)
            if operation is not None and operation.name not in seen:
                seen.add(operation.name)
                yield operation
