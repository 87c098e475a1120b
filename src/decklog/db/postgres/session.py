"""The statements of one PostgreSQL connection, inside of its transaction.

They are prepared and run by psycopg's `pq` module: its cursors take twice as long for a statement that finds one row.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from functools import cached_property, partial
from itertools import count
from threading import RLock
from typing import TYPE_CHECKING, Any, Self

import psycopg
from psycopg import generators
from psycopg.adapt import PyFormat, Transformer
from psycopg.errors import error_from_result
from psycopg.pq import ExecStatus, TransactionStatus

from decklog.db.base import Row
from decklog.db.postgres import errors

if TYPE_CHECKING:
    from psycopg.abc import PQGen
    from psycopg.pq.abc import PGconn, PGresult


Take = Callable[[list[Row]], None]
# Position and hash of a stream's last entry.
Head = tuple[int, str]
# How long a signal such as Ctrl-C may wait, as in psycopg.
_SECONDS_BETWEEN_SIGNALS = 0.1
# After a longer pause inside of a transaction the server may have ended it.
_QUIET_SECONDS = 0.1
_ROWS_PER_FETCH = 2000
_MOST_PREPARED = 500
_PREPARE = b"prepare"
_GOOD = (ExecStatus.TUPLES_OK, ExecStatus.COMMAND_OK)
_IN_TRANSACTION = (TransactionStatus.INTRANS, TransactionStatus.INERROR)


class NotBegun(Exception):
    """The connection was lost before the transaction began: nothing has happened, and it may be run again."""


class NotSent(psycopg.OperationalError):
    """The connection was lost before a statement was sent."""

    def __init__(self, text: str, sqlstate: str | None) -> None:
        super().__init__(text)
        self.sqlstate = sqlstate


class Statement:
    """A statement that waits to be sent, and its result."""

    __slots__ = ("result", "send", "sql", "take")

    def __init__(self, sql: bytes, send: Callable[[], None], take: "Take | None" = None) -> None:
        self.sql = sql
        self.send = send
        # Gets the rows as soon as they are there.
        self.take = take
        self.result: PGresult | None = None


class Session:
    """Runs the statements of a connection; those that need no answer are sent with the next one that does."""

    def __init__(self, connection: "LogConnection") -> None:
        self._connection = connection
        self._transformer = Transformer(connection)
        # The statements that were run, by their text and types, with the names of those that are prepared.
        self._prepared: dict[tuple[bytes, tuple[int, ...]], bytes | None] = {}
        self._numbers = count(1)
        # Whether a name that is given to a statement is known to the next transaction.
        self.may_prepare = True
        # Whether the server may know other statements than these.
        self._is_stale = False
        self._waiting: list[Statement] = []
        # How many of them begin the transaction.
        self._opening = 0
        # Identifies the open transaction.
        self.transaction: object = None
        # Whether the server has begun it, and whether it was checked that its schema is the one that is known here.
        self.has_begun = self.is_checked = False
        # How many savepoints it is in.
        self.depth = 0
        # Statements that run before the commit, by what they are about: the last one counts.
        self.before_commit: dict[object, tuple[bytes, Sequence[Any]]] = {}
        # Keeps the pings of another thread apart from statements.
        self._lock = RLock()
        # Why the connection is gone, if a ping or a message of the server said so.
        self._lost: NotSent | None = None
        connection.add_notice_handler(self._note_end)
        self.used_at = self._answered_at = time.monotonic()
        # How long the server waits for the next statement of the write transaction that is open; 0 without one.
        self.idle_seconds = 0.0

    def begin(self, commands: Sequence[bytes], takes: "Mapping[bytes, Take] | None" = None) -> None:
        """Begin a transaction with the next statement; `takes` get the rows of commands that return some."""
        self._drop(0)
        for command in commands:
            self.queue(command, take=(takes or {}).get(command))
        if self._is_stale or len(self._prepared) > _MOST_PREPARED:
            self._is_stale = False
            self._prepared.clear()
            self.queue(b"deallocate all")
        self._opening = len(self._waiting)
        self.before_commit = {}
        self.transaction, self.has_begun, self.is_checked = object(), False, False

    @property
    def is_unused(self) -> bool:
        """Return whether nothing was run or queued in the transaction."""
        return not self.has_begun and len(self._waiting) == self._opening

    def end(self) -> None:
        """Forget the transaction, and what was not sent of it."""
        self._drop(0)
        self.transaction = None

    def queue(
        self, sql: bytes, parameters: Sequence[Any] = (), take: "Take | None" = None, *, is_single: bool = False
    ) -> Statement:
        """Run a statement before the next one, sent together with it. With parameters, it is prepared when it comes again.

        The text of a single one never comes again.
        """
        statement = Statement(sql, partial(self._connection.pgconn.send_query_params, sql, None), take)
        if parameters:
            statement.send = self._bind(sql, parameters, is_single)
        self._waiting.append(statement)
        return statement

    def queue_before_commit(self) -> None:
        """Queue the statements that were left for the commit."""
        waiting, self.before_commit = self.before_commit, {}
        for sql, parameters in waiting.values():
            self.queue(sql, parameters)

    def unqueue(self, sql: bytes) -> bool:
        """Drop a statement and all behind it from the queue; return False if it was sent before."""
        places = [place for place, statement in enumerate(self._waiting) if statement.sql == sql]
        self._drop(places[0] if places else 0)
        return bool(places)

    @property
    def last_queued(self) -> Statement | None:
        return self._waiting[-1] if self._waiting else None

    def _drop(self, place: int) -> None:
        """Drop statements from the queue."""
        self._forget_prepared(self._waiting[place:])
        del self._waiting[place:]

    def _forget_prepared(self, batch: list[Statement]) -> None:
        """Forget all names where one of these may not have been prepared."""
        if any(statement.sql == _PREPARE for statement in batch):
            self._prepared.clear()
            self._is_stale = True

    def run(self, sql: bytes, parameters: Sequence[Any] = ()) -> "PGresult":
        """Run what is queued and then a statement."""
        statement = self.queue(sql, parameters)
        self._exchange()
        assert statement.result is not None
        return statement.result

    def flush(self) -> None:
        """Run what is queued."""
        if self._waiting:
            self._exchange()

    def _bind(self, sql: bytes, parameters: Sequence[Any], is_single: bool) -> Callable[[], None]:
        """Return what sends a statement with its parameters."""
        pgconn, transformer = self._connection.pgconn, self._transformer
        values = transformer.dump_sequence(parameters, [PyFormat.AUTO] * len(parameters))
        types, formats = transformer.types or (), transformer.formats
        key = sql, types
        name = self._prepared.get(key)
        if name is None and key in self._prepared:
            name = b"decklog_%d" % next(self._numbers)
            self._waiting.append(Statement(_PREPARE, partial(pgconn.send_prepare, name, sql, types)))
        if self.may_prepare and not is_single:
            self._prepared[key] = name
        if name is None:
            return partial(pgconn.send_query_params, sql, values, types, formats)
        return partial(pgconn.send_query_prepared, name, values, formats)

    def rows_of(self, result: "PGresult") -> list[Row]:
        """Load the rows of a result."""
        if not result.ntuples:
            return []
        self._transformer.set_pgresult(result)
        return self._transformer.load_rows(0, result.ntuples, tuple)

    def _exchange(self) -> None:
        """Send what is queued, and wait for all results."""
        connection, batch = self._connection, self._waiting
        self._waiting = []
        with self._lock:
            try:
                self._check_usable()
                with connection.lock:
                    results = connection.wait(_exchanging(connection.pgconn, batch))
                for statement, result in zip(batch, results, strict=True):
                    if result.status not in _GOOD:
                        raise error_from_result(result, connection.info.encoding)
                    statement.result = result
            except psycopg.Error as problem:
                self._forget_prepared(batch)
                self._give_up_lost(problem)
                raise
            finally:
                self.used_at = self._answered_at = time.monotonic()
        self.has_begun = True
        for statement, result in zip(batch, results, strict=True):
            if statement.take is not None:
                statement.take(self.rows_of(result))

    def each(self, sql: bytes, parameters: Sequence[Any]) -> Iterator[Row]:
        """Run a query and yield its rows one by one, without holding them all."""
        name, transaction = b"each_%d" % time.monotonic_ns(), self.transaction
        fetch = b"fetch forward %d from %b" % (_ROWS_PER_FETCH, name)
        self.queue(b"declare %b no scroll cursor for %b" % (name, sql), parameters, is_single=True)
        while rows := self.rows_of(self.run(fetch)):
            yield from rows
            if len(rows) < _ROWS_PER_FETCH:
                break
        # One that is left before its last row is closed by the end of the transaction.
        if self.transaction is transaction:
            self.queue(b"close " + name)

    @contextmanager
    def exclusive(self) -> "Iterator[LogConnection]":
        """Hold the connection for a block of statements that psycopg runs, such as a copy."""
        self.flush()
        with self._lock:
            try:
                self._check_usable()
                yield self._connection
            except psycopg.Error as problem:
                self._give_up_lost(problem)
                raise
            finally:
                self.used_at = self._answered_at = time.monotonic()

    def _note_end(self, diagnostic: "psycopg.errors.Diagnostic") -> None:
        """Remember why the server ended the session, if it reported that while nothing was asked."""
        if diagnostic.severity_nonlocalized == "FATAL":
            self._lost = NotSent(str(diagnostic.message_primary), diagnostic.sqlstate)

    def _check_usable(self) -> None:
        if self._lost is not None:
            raise self._lost
        if time.monotonic() - self._answered_at > _QUIET_SECONDS:
            self._check_alive()  # so that it is known whether a commit was sent

    def _give_up_lost(self, problem: psycopg.Error) -> None:
        """Close a connection that is lost, and raise NotBegun where nothing has happened yet."""
        if errors.is_lost(problem):
            self._connection.close()
            if not self.has_begun:
                raise NotBegun from problem

    def ping(self) -> None:
        """Show the server that this client is alive, if an open transaction waits for it; called by another thread."""
        if self._lock.acquire(blocking=False):
            try:
                self._check_alive()
            except NotSent as problem:
                self._lost = problem  # for the thread that uses the connection
            finally:
                self._lock.release()

    def stop_pings(self) -> None:
        """Wait for a ping that is under way, and send no more."""
        with self._lock:
            self.idle_seconds = 0.0

    def _check_alive(self) -> None:
        """Run an empty statement in an open transaction. Raise NotSent if the server has ended it."""
        connection = self._connection
        if not self.idle_seconds or connection.closed or connection.info.transaction_status not in _IN_TRANSACTION:
            return
        quiet_seconds = time.monotonic() - self._answered_at
        try:
            connection.execute(b"")
        except psycopg.Error as problem:
            connection.close()
            # The code of an error that came while nothing was asked may be lost.
            raise NotSent(str(problem), errors.IDLE if quiet_seconds >= self.idle_seconds else problem.sqlstate) from problem
        self._answered_at = time.monotonic()


def _exchanging(pgconn: "PGconn", batch: list[Statement]) -> "PQGen[list[PGresult]]":
    """Send statements and yield to psycopg until all results are there; several go in pipeline mode."""
    if len(batch) == 1:
        batch[0].send()
        single: list[PGresult] = yield from generators.execute(pgconn)
        return single
    pgconn.enter_pipeline_mode()
    for statement in batch:
        statement.send()
    pgconn.pipeline_sync()
    yield from generators.send(pgconn)
    results: list[PGresult] = []
    try:
        for _ in batch:
            while (result := (yield from generators.fetch(pgconn))) is not None:
                results.append(result)
        yield from generators.fetch_many(pgconn)  # of the synchronisation
    except psycopg.OperationalError:
        if all(result.status in _GOOD for result in results):
            raise
        return results  # the server reported why it ended the session
    pgconn.exit_pipeline_mode()
    return results


class LogConnection(psycopg.Connection[Any]):
    """A connection that gives up a server which is silent for `patience_seconds`; None waits for ever."""

    patience_seconds: float | None = None

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        # What is undone if the transaction that is open on it is rolled back, and the heads that it wrote.
        self.undoing: list[Callable[[], None]] = []
        self.written: dict[str, Head] = {}
        # Whether this server was found to have the acknowledged entries of this process.
        self.is_compared = False
        # When the server behind a pooler was started, as the last transaction saw it.
        self.server_started_at: datetime | None = None
        self.made_at = time.monotonic()
        # What it listens to.
        self.channels: set[str] = set()

    def check_server(self, rows: list[Row]) -> None:
        """Check with the settings of a transaction that the pooler still leads to the same server.

        Raise NotBegun if not: the transaction is run again, and compares the acknowledged entries first.
        """
        before, self.server_started_at = self.server_started_at, rows[0][0]
        if before not in (None, self.server_started_at):
            self.is_compared = False
            raise NotBegun from psycopg.OperationalError("the pooler leads to another server")

    @cached_property
    def session(self) -> Session:
        """Runs the statements of transactions."""
        return Session(self)

    @classmethod
    def connect(  # type: ignore[override]
        cls, conninfo: str = "", *, reached: list[Self] | None = None, **how: Any
    ) -> Self:
        """Connect, or take the connection that has reached the server already."""
        return reached.pop() if reached else super().connect(conninfo, **how)

    def wait(self, gen: Any, interval: float = _SECONDS_BETWEEN_SIGNALS, timeout: float | None = None) -> Any:
        try:
            return super().wait(gen, interval, self.patience_seconds if timeout is None else timeout)
        except psycopg.OperationalError as problem:
            if problem.sqlstate is None and timeout is None:
                # It may still answer to what was asked: this connection can't be used for anything else.
                self.close()
            raise
