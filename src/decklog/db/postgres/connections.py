"""The connections to one PostgreSQL database: a pool of those that work, and those that listen."""

from contextlib import contextmanager
from threading import Lock

import psycopg
from psycopg_pool import ConnectionPool

from decklog.db.postgres import errors
from decklog.errors import Closed, ReadOnly

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    Connection = psycopg.Connection[Any]

CHANNEL = "decklog"


class Connections:
    """Opens connections in one way only, and keeps what is open."""

    def __init__(
        self, url: str, *, durability: str = "full", read_only: bool = False, busy_seconds: float = 30.0, pool_size: int = 16
    ) -> None:
        self.url = url
        self.read_only = read_only
        self.busy_seconds = busy_seconds
        self.pool_size = pool_size
        self._durability = durability
        self._is_closed = False
        self._forgotten: list[Any] = []
        self._reset()

    def _reset(self) -> None:
        """Start with no connection at all, as a new process does."""
        self._opening = Lock()
        self._pool: ConnectionPool[Connection] | None = None
        self._listening: Connection | None = None

    def pool(self) -> "ConnectionPool[Connection]":
        """Give the pool, which is made when it is first needed."""
        with self._opening:
            self.check_open()
            if self._pool is None:
                self._reach()
                self._pool = self._make_pool()
            return self._pool

    def _make_pool(self) -> "ConnectionPool[Connection]":
        return ConnectionPool(
            self.url,
            min_size=1,
            max_size=self.pool_size,
            timeout=self.busy_seconds,
            kwargs={"autocommit": True},
            configure=self._configure,
            open=True,
        )

    def check_open(self) -> None:
        if self._is_closed:
            raise Closed("this log is closed; open it again")

    def check_writable(self) -> None:
        self.check_open()
        if self.read_only:
            raise ReadOnly("this log is open for reading only", hint="Open it without read_only.")

    def _reach(self) -> None:
        """Connect once without the pool, which would take a server that does not answer for one that is busy."""
        try:
            psycopg.connect(self.url, connect_timeout=max(2, int(self.busy_seconds))).close()
        except psycopg.Error as problem:
            raise errors.translate(problem) from problem

    def _configure(self, connection: "Connection") -> None:
        # Our own words about a busy database need a lock wait that ends; 0 would wait for ever.
        connection.execute(f"set lock_timeout = {int(self.busy_seconds * 1000)}")
        connection.execute("set client_min_messages = warning")
        if self._durability != "full":
            connection.execute("set synchronous_commit = off")

    @contextmanager
    def listening(self) -> "Iterator[Connection]":
        """Hold a connection that hears of what is appended."""
        self.check_open()
        with psycopg.connect(self.url, autocommit=True) as connection:
            self._listening = connection
            try:
                connection.execute(f"listen {CHANNEL}".encode())
                yield connection
            finally:
                self._listening = None

    def close(self) -> None:
        self._is_closed = True
        if self._pool is not None:
            self._pool.close()

    def leave_to_parent(self) -> None:
        """Forget in a forked child what its parent has open."""
        # The parent's sockets are in this process too; they are kept and never touched, so that closing can't reach the server.
        self._forgotten.append((self._pool, self._listening))
        self._reset()
