"""Transactions on PostgreSQL: each has a connection of its own, for as long as it lasts."""

import random
import time
from contextlib import contextmanager, nullcontext
from threading import Lock, local

import psycopg
from psycopg_pool import PoolTimeout

from decklog.db import forks
from decklog.db.callers import Block, caller, own_context
from decklog.db.deadlines import deadline
from decklog.db.postgres import errors
from decklog.db.postgres.connections import Connections
from decklog.db.postgres.reading import Forgotten
from decklog.errors import Busy, OutcomeUnknown, SchemaTooNew, Unreachable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from concurrent.futures import Future, ThreadPoolExecutor
    from contextlib import AbstractContextManager
    from typing import Any

    from decklog.db.base import T
    from decklog.db.postgres.connections import PatientConnection as Connection
    from decklog.db.postgres.connections import Pool

_TRIES = 8
WRITE = "begin isolation level read committed"
READ = "begin isolation level repeatable read read only"
# To plan takes the server longer than to read what a page shows; and left to itself it plans anew whenever a range is bound.
READ_BY_SAME_PLANS = f"{READ}; set local plan_cache_mode = force_generic_plan"
_READS = (READ, READ_BY_SAME_PLANS)


class _Held:
    """A block that a caller holds open: its connection, and what it has found out so far."""

    def __init__(self, connection: "Connection") -> None:
        self.connection = connection
        self.block = Block()
        self.memo: dict[Any, Any] = {}


class Transactions:
    """Which connection each caller is working on, and what its transaction has found out so far."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections
        # The schema that this process knows, once that is settled; another one means that it was migrated meanwhile.
        self.version = 0
        self._forgotten: list[Any] = []
        self._reset()

    def _reset(self) -> None:
        """Start with no transaction at all, as a new process does."""
        # The connection of the job that a thread is running right now, and those of the blocks that callers hold open.
        self.local = local()
        self._held: dict[object, _Held] = {}
        self._gate = forks.ForkGate()
        self._opening = Lock()
        self._background: ThreadPoolExecutor | None = None
        self._untold: set[Future[Any]] = set()

    @property
    def memo(self) -> "dict[Any, Any]":
        if (held := self._holding()) is not None:
            return held.memo
        known: dict[Any, Any] = self.local.memo
        return known

    def current(self) -> "Connection | None":
        """Give the connection of the transaction that the caller is in."""
        connection: Connection | None = getattr(self.local, "connection", None)
        if connection is None and (held := self._holding()) is not None:
            return held.connection
        return connection

    def _holding(self) -> "_Held | None":
        return self._held.get(caller()) if self._held and getattr(self.local, "connection", None) is None else None

    def if_undone(self, act: "Callable[[], None]") -> None:
        connection = self.current()
        if connection is not None:
            connection.undoing.add(act)

    def is_held(self) -> bool:
        """Say whether the caller holds a block open."""
        return bool(self._held) and caller() in self._held

    @contextmanager
    def _at_work(self, connection: "Connection", memo: "dict[Any, Any]") -> "Iterator[None]":
        """Run a job on a connection: it does not await, so it is known by its thread from here on."""
        self.local.connection, self.local.memo = connection, memo
        try:
            yield
        finally:
            self.local.connection = None

    def here(self) -> "Connection":
        connection = self.current()
        assert connection is not None, "statements run inside read(), write() or transaction()"
        return connection

    @contextmanager
    def block(self, begin: str, *, patience_seconds: float | None = None) -> "Iterator[Connection]":
        """Hold a connection and an open transaction; what is not committed inside is rolled back."""
        try:
            with self._gate.passing(), self._begun(begin, patience_seconds) as connection:
                try:
                    yield connection
                    _commit(connection, is_read=begin in _READS)
                    connection.undoing.keep()
                except OutcomeUnknown:
                    connection.undoing.keep()  # what nobody knows to be undone is not taken back
                    raise
                finally:
                    if not connection.closed and connection.info.transaction_status != psycopg.pq.TransactionStatus.IDLE:
                        connection.rollback()
                    connection.undoing.undo()
        except psycopg.Error as problem:
            raise errors.translate(problem) from problem

    @contextmanager
    def _begun(self, begin: str, patience_seconds: float | None) -> "Iterator[Connection]":
        end = time.monotonic() + self._connections.busy_seconds
        while True:
            pool, connection = self._taken()
            try:
                connection.patience_seconds = patience_seconds
                try:
                    self._begin(connection, begin)
                except psycopg.Error as problem:
                    # It was lost while nobody used it, and nothing has happened yet: the next one may be sound.
                    if errors.is_lost(problem) and time.monotonic() < end:
                        continue
                    raise
                yield connection
                return
            finally:
                connection.patience_seconds = None
                pool.putconn(connection)

    def _taken(self) -> "tuple[Pool, Connection]":
        try:
            pool = self._connections.pool()
            return pool, pool.getconn()
        except PoolTimeout as problem:
            self._connections.reach()  # a server that can't be reached is no busy one
            raise Busy("all connections to the database are in use", hint="Try again.") from problem

    def _begin(self, connection: "Connection", begin: str) -> None:
        if begin in _READS:
            connection.reader.ask(begin.encode())
            return
        if not self.version:
            connection.execute(begin.encode())
            return
        # Both in one go: whoever has the log open when it is migrated must not write to tables it does not know.
        cursor = connection.execute(f"{begin}; select max(version) from schema_steps".encode())
        cursor.nextset()
        row = cursor.fetchone()
        found = row[0] if row else None
        if found != self.version:
            raise SchemaTooNew(
                f"this database was migrated to schema {found} while this process had it open at {self.version}",
                hint="Restart this process with the newer Decklog.",
                found=found,
                supported=self.version,
            )

    def write(self, job: "Callable[[], T]") -> "T":
        if self.current() is not None:
            return self._nested(job)
        self._check_free()
        self._connections.check_writable()
        end = time.monotonic() + self._connections.busy_seconds
        for remaining in reversed(range(_TRIES)):
            try:
                patience = self._connections.patience_seconds
                with self.block(WRITE, patience_seconds=patience) as connection, self._at_work(connection, {}):
                    return job()
            except (Busy, Unreachable):
                if not remaining or time.monotonic() >= end or not self._connections.was_reached:
                    raise
                time.sleep(random.uniform(0, 0.02) * (_TRIES - remaining))
        raise AssertionError("the last try returns or raises")

    def _check_free(self) -> None:
        for held in list(self._held.values()):
            if not held.block.is_held():
                held.block.check_free()

    def submit(self, job: "Callable[[], T]") -> "Future[T]":
        self._connections.check_writable()
        with self._opening:
            future = self._executor().submit(own_context().run, self._write_in_background, job)
            self._untold.add(future)
        future.add_done_callback(self._untold.discard)
        return future

    def _write_in_background(self, job: "Callable[[], T]") -> "T":
        self.local.is_background = True  # the thread is of this log's own, and does nothing else
        return self.write(job)

    def _executor(self) -> "ThreadPoolExecutor":
        if self._background is None:
            from concurrent.futures import ThreadPoolExecutor

            self._background = ThreadPoolExecutor(self._connections.pool_size, thread_name_prefix="decklog")
        return self._background

    def _nested(self, job: "Callable[[], T]") -> "T":
        with self._inside(), self._savepoint():
            return job()

    def _inside(self) -> "AbstractContextManager[None]":
        held = self._holding()
        return nullcontext() if held is None else self._at_work(held.connection, held.memo)

    @contextmanager
    def _savepoint(self) -> "Iterator[None]":
        connection = self.here()
        connection.execute("savepoint nested")
        mark = connection.undoing.mark()
        try:
            yield
        except BaseException:
            connection.execute("rollback to savepoint nested")
            connection.execute("release savepoint nested")
            self.memo.clear()
            connection.undoing.undo(mark)
            raise
        connection.execute("release savepoint nested")

    def transaction(self) -> "AbstractContextManager[None]":
        return self.held(self._connections.patience_seconds)

    @contextmanager
    def held(self, patience_seconds: float | None) -> "Iterator[None]":
        """Hold a block open, on a server that may be silent for so long."""
        if self.current() is not None:
            with self._savepoint():
                yield
            return
        self._check_free()
        self._connections.check_writable()
        with self.block(WRITE, patience_seconds=patience_seconds) as connection:
            held = _Held(connection)
            self._held[held.block.holder] = held
            try:
                yield
            finally:
                del self._held[held.block.holder]
                held.block.leave()

    def read(self, job: "Callable[[], T]", begin: str = READ) -> "T":
        if self.current() is not None:
            with self._inside():
                return job()
        try:
            return self._read(job, begin)
        except Forgotten:
            return self._read(job, begin)
        except Unreachable:
            if not self._connections.was_reached:
                raise
            return self._read(job, begin)  # nothing was changed, so that it can be asked again

    def _read(self, job: "Callable[[], T]", begin: str) -> "T":
        with self.block(begin) as connection, self._at_work(connection, {}):
            until = deadline()
            self.local.is_reading = True
            try:
                if until is not None:
                    left = max(1, round((until - time.monotonic()) * 1000))
                    connection.execute(f"set local statement_timeout = {left}".encode())
                return job()
            finally:
                self.local.is_reading = False

    def is_reading(self) -> bool:
        """Say whether the caller is inside of a read."""
        return getattr(self.local, "is_reading", False)

    # Life

    def close(self) -> None:
        """Commit what was submitted, and let go of all connections."""
        self._check_free()
        if self._background is not None:
            from concurrent.futures import wait

            wait(list(self._untold))
            # What is tied to a job runs in a thread of these, which can't wait for its own end.
            self._background.shutdown(wait=not getattr(self.local, "is_background", False))
        self._connections.close()

    def before_fork(self) -> None:
        self._gate.shut(own=int(self.current() is not None))

    def after_fork_in_parent(self) -> None:
        self._gate.open()

    def after_fork_in_child(self) -> None:
        self._forgotten.append(self.local)
        self._connections.leave_to_parent()
        self._reset()


def _commit(connection: "Connection", *, is_read: bool) -> None:
    """End a transaction; when the connection is lost at this moment, only the server knows how."""
    try:
        if is_read:
            connection.reader.ask(b"commit")
        else:
            connection.execute("commit")
    except psycopg.Error as problem:
        if not errors.is_lost(problem):
            raise
        if not is_read:
            raise OutcomeUnknown(
                f"the connection was lost while a transaction was being committed: {str(problem).strip()}",
                hint="Look whether it is on record before you write it again; a verb with the same key may be repeated as it is.",
            ) from problem
