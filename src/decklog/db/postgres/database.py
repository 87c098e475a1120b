"""PostgreSQL through psycopg 3: many writers, each locking what it decides on."""

import random
import time
from contextlib import contextmanager
from contextvars import copy_context
from threading import Lock, local

import psycopg
from psycopg_pool import ConnectionPool, PoolTimeout

from decklog.db import forks
from decklog.db.base import PARAMETER
from decklog.db.fork_gate import ForkGate
from decklog.db.postgres import errors
from decklog.db.postgres.schema import PostgresSchema
from decklog.errors import Busy, Closed, Invalid, ReadOnly
from decklog.records import Values

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from concurrent.futures import Future, ThreadPoolExecutor
    from typing import Any

    from decklog.clock import Clock
    from decklog.db.base import Row, T

    Connection = psycopg.Connection[Any]

_TRIES = 8
_CHANNEL = "decklog"
# In the order of the function's own parameters.
_APPEND = """
select new_pos, new_hash
  from append_entry(
    :before, :after, :stream, :at, :kind, :subtype, :agent, :agent_id, :group_id, :task_id, :iteration, :phase, :confidence,
    :redacted, :key, :record_table, :record_id, :refs, :body_digest, :payload_digest, :body, :payload, :channel
  )
"""


class PostgresDatabase(PostgresSchema):
    engine = "postgres"
    finds_tags_by_search = False

    def __init__(
        self,
        url: str,
        *,
        values: Values,
        clock: "Clock",
        durability: str = "full",
        read_only: bool = False,
        busy_seconds: float = 30.0,
        pool_size: int = 16,
    ) -> None:
        self.target = url
        self.values = values
        self.clock = clock
        self.read_only = read_only
        self._durability = durability
        self._busy_seconds = busy_seconds
        self._pool_size = pool_size
        self._closed = False
        self._spelled: dict[str, str] = {}
        self._names: dict[str, tuple[str, ...]] = {}
        self._forgotten: list[Any] = []
        self._reset()
        forks.follow(self)

    def _reset(self) -> None:
        """Start with no connection at all, as a new process does."""
        self._local = local()
        self._gate = ForkGate()
        self._opening = Lock()
        self._pool: ConnectionPool[Connection] | None = None
        self._background: ThreadPoolExecutor | None = None
        self._listeners: list[Connection] = []

    # Connections

    def _connections(self) -> "ConnectionPool[Connection]":
        with self._opening:
            self._check_open()
            if self._pool is None:
                self._reach()
                self._pool = self._make_pool()
            return self._pool

    def _make_pool(self) -> "ConnectionPool[Connection]":
        return ConnectionPool(
            self.target,
            min_size=1,
            max_size=self._pool_size,
            timeout=self._busy_seconds,
            kwargs={"autocommit": True},
            configure=self._configure,
            open=True,
        )

    def _check_open(self) -> None:
        if self._closed:
            raise Closed("this log is closed; open it again")

    def _reach(self) -> None:
        """Connect once without the pool, which would take a server that does not answer for one that is busy."""
        try:
            psycopg.connect(self.target, connect_timeout=max(2, int(self._busy_seconds))).close()
        except psycopg.Error as problem:
            raise errors.translate(problem) from problem

    def _configure(self, connection: "Connection") -> None:
        # Our own words about a busy database need a lock wait that ends; 0 would wait for ever.
        connection.execute(f"set lock_timeout = {int(self._busy_seconds * 1000)}")
        connection.execute("set client_min_messages = warning")
        if self._durability != "full":
            connection.execute("set synchronous_commit = off")

    @contextmanager
    def _block(self, begin: str) -> "Iterator[Connection]":
        """Hold a connection and an open transaction; what is not committed inside is rolled back."""
        try:
            with self._gate.passing(), self._connections().connection() as connection:
                connection.execute(begin)
                self._local.connection, self.memo = connection, {}
                try:
                    yield connection
                    connection.execute("commit")
                finally:
                    self._local.connection = None
                    if connection.info.transaction_status != psycopg.pq.TransactionStatus.IDLE:
                        connection.rollback()
        except PoolTimeout as problem:
            raise Busy("all connections to the database are in use", hint="Try again.") from problem
        except psycopg.Error as problem:
            raise errors.translate(problem) from problem

    # Transactions

    @property
    def memo(self) -> "dict[Any, Any]":
        known: dict[Any, Any] = self._local.memo
        return known

    @memo.setter
    def memo(self, value: "dict[Any, Any]") -> None:
        self._local.memo = value

    def _current(self) -> "Connection | None":
        return getattr(self._local, "connection", None)

    def write(self, job: "Callable[[], T]") -> "T":
        if self._current() is not None:
            return self._nested(job)
        self._writable()
        end = time.monotonic() + self._busy_seconds
        for remaining in reversed(range(_TRIES)):
            try:
                with self._block("begin"):
                    return job()
            except Busy:
                if not remaining or time.monotonic() >= end:
                    raise
                time.sleep(random.uniform(0, 0.02))
        raise AssertionError("the last try returns or raises")

    def submit(self, job: "Callable[[], T]") -> "Future[T]":
        self._writable()
        if self._background is None:
            from concurrent.futures import ThreadPoolExecutor

            self._background = ThreadPoolExecutor(self._pool_size, thread_name_prefix="decklog")
        # The job sees its caller's context variables in whichever thread runs it.
        return self._background.submit(copy_context().run, self.write, job)

    def _writable(self) -> None:
        self._check_open()
        if self.read_only:
            raise ReadOnly("this log is open for reading only", hint="Open it without read_only.")

    def _nested(self, job: "Callable[[], T]") -> "T":
        with self._savepoint():
            return job()

    @contextmanager
    def _savepoint(self) -> "Iterator[None]":
        connection = self._here()
        connection.execute("savepoint nested")
        try:
            yield
        except BaseException:
            connection.execute("rollback to savepoint nested")
            connection.execute("release savepoint nested")
            self.memo = {}
            raise
        connection.execute("release savepoint nested")

    @contextmanager
    def transaction(self) -> "Iterator[None]":
        if self._current() is not None:
            with self._savepoint():
                yield
            return
        self._writable()
        with self._block("begin"):
            yield

    def read(self, job: "Callable[[], T]") -> "T":
        if self._current() is not None:
            return job()
        with self._block("begin isolation level repeatable read read only"):
            return job()

    # Statements

    def _spell(self, sql: str) -> str:
        spelled = self._spelled.get(sql)
        if spelled is None:
            spelled = self._spelled[sql] = PARAMETER.sub(r"%(\1)s", sql.replace("%", "%%"))
        return spelled

    def _here(self) -> "Connection":
        connection = self._current()
        assert connection is not None, "statements run inside read(), write() or transaction()"
        return connection

    def _execute(self, sql: str, parameters: "Mapping[str, Any]") -> "psycopg.Cursor[Any]":
        try:
            return self._here().execute(self._spell(sql), parameters)
        except psycopg.Error as problem:
            raise errors.translate(problem) from problem
        except UnicodeEncodeError as problem:
            raise Invalid(f"a value can't be stored: {problem}") from None

    def rows(self, sql: str, parameters: "Mapping[str, Any]") -> "tuple[tuple[str, ...], list[Row]]":
        cursor = self._execute(sql, parameters)
        # Describing forty columns takes psycopg as long as asking for them: it is done once for each statement.
        names = self._names.get(sql)
        if names is None:
            if cursor.description is None:
                return (), []
            names = self._names[sql] = tuple(column.name for column in cursor.description)
        return names, cursor.fetchall()

    def one(self, sql: str, parameters: "Mapping[str, Any]") -> "Row | None":
        row: Row | None = self._execute(sql, parameters).fetchone()
        return row

    def count(self, sql: str, parameters: "Mapping[str, Any]") -> int:
        return self._execute(sql, parameters).rowcount

    def each(self, sql: str, parameters: "Mapping[str, Any]") -> "Iterator[Row]":
        try:
            with self._here().cursor(name=f"each_{time.monotonic_ns()}") as cursor:
                cursor.execute(self._spell(sql), parameters)
                while rows := cursor.fetchmany(2000):
                    yield from rows
        except psycopg.Error as problem:
            raise errors.translate(problem) from problem

    def hold(self, table: str) -> None:
        # Whoever wrote to the table waits for nobody: this waits until they have committed, and what they wrote can be seen.
        self.rows(f"lock table {table} in exclusive mode", {})

    def lock_stream(self, stream: str) -> int | None:
        row = self.one("select no from streams where name = :stream for update", {"stream": stream})
        return row[0] if row else None

    def append_entry(self, values: "Mapping[str, Any]", before: str, after: str) -> "Row":
        return self.one(_APPEND, {**values, "before": before, "after": after, "channel": _CHANNEL}) or ()

    def announce(self, stream: str) -> None:
        if ("announced", stream) not in self.memo:
            self.rows("select pg_notify(:channel, :stream)", {"channel": _CHANNEL, "stream": stream[:200]})
            self.memo["announced", stream] = True

    def wait_for_change(self, seconds: float) -> None:
        try:
            listener: Connection | None = getattr(self._local, "listener", None)
            if listener is None or listener.closed:
                # The first call only starts listening: what was committed before it is found by looking once more.
                self._listen()
                return
            for _ in listener.notifies(timeout=seconds, stop_after=1):
                pass
        except psycopg.Error as problem:
            raise errors.translate(problem) from problem

    def _listen(self) -> None:
        self._check_open()
        listener = self._local.listener = psycopg.connect(self.target, autocommit=True)
        self._listeners.append(listener)
        listener.execute(f"listen {_CHANNEL}")

    def prepare_search(self, stream_no: int | None) -> None:
        from decklog.db.postgres import search
        from decklog.db.text import marks

        if not self.read_only:
            marks.catch_up(self, stream_no, search.INDEX)

    def forget_text(self, positions: "list[int]") -> None:
        from decklog.db.postgres import search

        search.forget(self, positions)

    def search(self, select: str, words: str, **narrowing: "Any") -> "tuple[tuple[str, ...], list[Row]]":
        from decklog.db.postgres import search

        return search.search(self, select, words, **narrowing)

    # Life

    def close(self) -> None:
        if self._background is not None:
            self._background.shutdown(wait=True)
        self._closed = True
        for listener in self._listeners:
            listener.close()
        if self._pool is not None:
            self._pool.close()

    def before_fork(self) -> None:
        self._gate.shut(own=int(self._current() is not None))

    def after_fork_in_parent(self) -> None:
        self._gate.open()

    def after_fork_in_child(self) -> None:
        # The parent's sockets are in this process too; they are kept and never touched, so that closing can't reach the server.
        self._forgotten.append((self._pool, self._local, self._listeners))
        self._reset()


def open_postgres(
    url: str,
    *,
    values: Values,
    clock: "Clock",
    durability: str = "full",
    read_only: bool = False,
    busy_seconds: float = 30.0,
    migrate: bool = False,
) -> PostgresDatabase:
    """Connect to a database; its schema is changed only when `migrate` asks for it."""
    database = PostgresDatabase(
        url, values=values, clock=clock, durability=durability, read_only=read_only, busy_seconds=busy_seconds
    )
    try:
        if migrate:
            database.migrate()
        database.check_version()
    except BaseException:
        database.close()
        raise
    return database
