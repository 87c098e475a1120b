"""Transactions on PostgreSQL: each has a connection of its own, for as long as it lasts."""

import random
import time
from contextlib import contextmanager, nullcontext
from threading import local

import psycopg
from psycopg_pool import PoolTimeout

from decklog.db import forks
from decklog.db.callers import Block, caller, own_context
from decklog.db.postgres import errors
from decklog.db.postgres.connections import Connections
from decklog.errors import Busy

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from concurrent.futures import Future, ThreadPoolExecutor
    from contextlib import AbstractContextManager
    from typing import Any

    from decklog.db.base import T

    Connection = psycopg.Connection[Any]

_TRIES = 8


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
        self._forgotten: list[Any] = []
        self._reset()

    def _reset(self) -> None:
        """Start with no transaction at all, as a new process does."""
        # The connection of the job that a thread is running right now, and those of the blocks that callers hold open.
        self.local = local()
        self._held: dict[object, _Held] = {}
        self._gate = forks.ForkGate()
        self._background: ThreadPoolExecutor | None = None

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
    def block(self, begin: str) -> "Iterator[Connection]":
        """Hold a connection and an open transaction; what is not committed inside is rolled back."""
        try:
            with self._gate.passing(), self._connections.pool().connection() as connection:
                connection.execute(begin)
                try:
                    yield connection
                    connection.execute("commit")
                finally:
                    if connection.info.transaction_status != psycopg.pq.TransactionStatus.IDLE:
                        connection.rollback()
        except PoolTimeout as problem:
            raise Busy("all connections to the database are in use", hint="Try again.") from problem
        except psycopg.Error as problem:
            raise errors.translate(problem) from problem

    def write(self, job: "Callable[[], T]") -> "T":
        if self.current() is not None:
            return self._nested(job)
        self._check_free()
        self._connections.check_writable()
        end = time.monotonic() + self._connections.busy_seconds
        for remaining in reversed(range(_TRIES)):
            try:
                with self.block("begin") as connection, self._at_work(connection, {}):
                    return job()
            except Busy:
                if not remaining or time.monotonic() >= end:
                    raise
                time.sleep(random.uniform(0, 0.02))
        raise AssertionError("the last try returns or raises")

    def _check_free(self) -> None:
        for held in list(self._held.values()):
            if not held.block.is_held():
                held.block.check_free()

    def submit(self, job: "Callable[[], T]") -> "Future[T]":
        self._connections.check_writable()
        if self._background is None:
            from concurrent.futures import ThreadPoolExecutor

            self._background = ThreadPoolExecutor(self._connections.pool_size, thread_name_prefix="decklog")
        # The job sees its caller's context variables in whichever thread runs it.
        return self._background.submit(own_context().run, self.write, job)

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
        try:
            yield
        except BaseException:
            connection.execute("rollback to savepoint nested")
            connection.execute("release savepoint nested")
            self.memo.clear()
            raise
        connection.execute("release savepoint nested")

    @contextmanager
    def transaction(self) -> "Iterator[None]":
        if self.current() is not None:
            with self._savepoint():
                yield
            return
        self._check_free()
        self._connections.check_writable()
        with self.block("begin") as connection:
            held = _Held(connection)
            self._held[held.block.holder] = held
            try:
                yield
            finally:
                del self._held[held.block.holder]
                held.block.leave()

    def read(self, job: "Callable[[], T]") -> "T":
        if self.current() is not None:
            with self._inside():
                return job()
        with self.block("begin isolation level repeatable read read only") as connection, self._at_work(connection, {}):
            return job()

    # Life

    def close(self) -> None:
        """Commit what was submitted, and let go of all connections."""
        self._check_free()
        if self._background is not None:
            self._background.shutdown(wait=True)
        self._connections.close()

    def before_fork(self) -> None:
        self._gate.shut(own=int(self.current() is not None))

    def after_fork_in_parent(self) -> None:
        self._gate.open()

    def after_fork_in_child(self) -> None:
        self._forgotten.append(self.local)
        self._connections.leave_to_parent()
        self._reset()
