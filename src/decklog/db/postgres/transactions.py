"""Transactions on PostgreSQL: each has a connection of its own, for as long as it lasts."""

import random
import time
from contextlib import contextmanager
from contextvars import copy_context
from threading import local

import psycopg
from psycopg_pool import PoolTimeout

from decklog.db import forks
from decklog.db.postgres import errors
from decklog.db.postgres.connections import Connections
from decklog.errors import Busy

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from concurrent.futures import Future, ThreadPoolExecutor
    from typing import Any

    from decklog.db.base import T

    Connection = psycopg.Connection[Any]

_TRIES = 8


class Transactions:
    """Which connection each thread is working on, and what its transaction has found out so far."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections
        self._forgotten: list[Any] = []
        self._reset()

    def _reset(self) -> None:
        """Start with no transaction at all, as a new process does."""
        self.local = local()
        self._gate = forks.ForkGate()
        self._background: ThreadPoolExecutor | None = None

    @property
    def memo(self) -> "dict[Any, Any]":
        known: dict[Any, Any] = self.local.memo
        return known

    def current(self) -> "Connection | None":
        """Give the connection of the transaction that this thread is in."""
        return getattr(self.local, "connection", None)

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
                self.local.connection, self.local.memo = connection, {}
                try:
                    yield connection
                    connection.execute("commit")
                finally:
                    self.local.connection = None
                    if connection.info.transaction_status != psycopg.pq.TransactionStatus.IDLE:
                        connection.rollback()
        except PoolTimeout as problem:
            raise Busy("all connections to the database are in use", hint="Try again.") from problem
        except psycopg.Error as problem:
            raise errors.translate(problem) from problem

    def write(self, job: "Callable[[], T]") -> "T":
        if self.current() is not None:
            return self._nested(job)
        self._connections.check_writable()
        end = time.monotonic() + self._connections.busy_seconds
        for remaining in reversed(range(_TRIES)):
            try:
                with self.block("begin"):
                    return job()
            except Busy:
                if not remaining or time.monotonic() >= end:
                    raise
                time.sleep(random.uniform(0, 0.02))
        raise AssertionError("the last try returns or raises")

    def submit(self, job: "Callable[[], T]") -> "Future[T]":
        self._connections.check_writable()
        if self._background is None:
            from concurrent.futures import ThreadPoolExecutor

            self._background = ThreadPoolExecutor(self._connections.pool_size, thread_name_prefix="decklog")
        # The job sees its caller's context variables in whichever thread runs it.
        return self._background.submit(copy_context().run, self.write, job)

    def _nested(self, job: "Callable[[], T]") -> "T":
        with self._savepoint():
            return job()

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
        self._connections.check_writable()
        with self.block("begin"):
            yield

    def read(self, job: "Callable[[], T]") -> "T":
        if self.current() is not None:
            return job()
        with self.block("begin isolation level repeatable read read only"):
            return job()

    # Life

    def close(self) -> None:
        """Commit what was submitted, and let go of all connections."""
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
