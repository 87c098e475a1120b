"""Statements by the calls of libpq: around a short one, psycopg's cursors take five times as long.

What needs no answer of its own is sent with the statement that follows, so that both go to the server and back together.
"""

import select
import time
from collections import OrderedDict
from contextlib import suppress
from typing import TYPE_CHECKING

import psycopg
from psycopg import pq
from psycopg.adapt import PyFormat, Transformer
from psycopg.errors import error_from_result

from decklog.db.postgres import errors

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any, TypeVar

    from decklog.db.base import Row
    from decklog.db.postgres.connections import PatientConnection

    Result = pq.abc.PGresult
    T = TypeVar("T")

# From this time on a statement's plan is kept: of what is asked once, the server would be told more than it needs.
_OFTEN = 2
_MOST_KEPT = 500
_CANCEL_SECONDS = 2.0
# After a longer pause inside of a transaction the server may have ended it.
_QUIET_SECONDS = 0.1
_NO_SUCH_STATEMENT = "26000"
_IN_TRANSACTION = (pq.TransactionStatus.INTRANS, pq.TransactionStatus.INERROR)
_GOOD = (pq.ExecStatus.TUPLES_OK, pq.ExecStatus.COMMAND_OK)


class Again(Exception):
    """Nothing of a transaction has happened, and it may be begun anew. It is no error, and whoever hears it does so."""


class Forgotten(Again):
    """The server has let go of statements that were prepared."""


class NotBegun(Again):
    """The connection was lost while nobody used it."""


class NotSent(psycopg.OperationalError):
    """The connection was lost before a statement was sent."""

    def __init__(self, cause: psycopg.Error, *, was_idle: bool) -> None:
        super().__init__(str(cause))
        self.sqlstate = errors.IDLE if was_idle else cause.sqlstate


class Silent(psycopg.OperationalError):
    """A server says nothing at all for longer than anyone should wait."""


class Statement:
    """A statement with its parameters as they are sent, and what is done with its rows."""

    __slots__ = ("formats", "is_done", "is_single", "result", "sql", "take", "tells_check", "types", "values")

    def __init__(self, sql: bytes, take: "Callable[[list[Row]], None] | None" = None) -> None:
        self.sql = sql
        self.take = take
        # Its text never comes again, and is not worth remembering.
        self.is_single = False
        self.types: tuple[int, ...] = ()
        self.values: Sequence[Any] = ()
        self.formats: Any = None
        self.is_done = False
        self.result: Result | None = None
        # Whether its rows tell what is asked before the first statements of a transaction.
        self.tells_check = False


class _Preparing(Statement):
    """What has the server prepare a statement."""

    __slots__ = ()

    def __init__(self, statement: Statement) -> None:
        super().__init__(statement.sql)
        self.types = statement.types


class PipelineConnection:
    """Speaks to the server through one connection, and knows which statements are prepared there."""

    def __init__(self, connection: "PatientConnection") -> None:
        self._connection = connection
        self._pgconn = connection.pgconn
        self._transformer = Transformer(connection)
        self._socket = select.poll()
        self._socket.register(self._pgconn.socket, select.POLLIN)
        # How often each was asked, by its text and the types of its parameters, or the name under which it is prepared.
        self._known: OrderedDict[tuple[bytes, tuple[int, ...]], int | bytes] = OrderedDict()
        self._number = 0
        # Names that are no longer needed, until the next transaction begins.
        self._spent: list[bytes] = []
        self._waiting: list[Statement] = []
        self._begin: Statement | None = None
        self._check: Statement | None = None
        # Why the connection is gone, where a ping found out.
        self._lost: NotSent | None = None
        self._answered_at = time.monotonic()
        # How many savepoints the transaction is in.
        self.depth = 0

    # What is asked

    def begin(self, command: bytes) -> None:
        """Begin a transaction with the next statement."""
        self._waiting.clear()
        self._begin = self.later(command)

    def check(self, sql: bytes, take: "Callable[[list[Row]], None]") -> None:
        """Ask something before the first statements, unless one of them tells it too."""
        self._check = self.later(sql, take=take)

    def later(self, sql: bytes, parameters: "Sequence[Any]" = (), take: "Callable[[list[Row]], None] | None" = None) -> Statement:
        """Run a statement before the next one, sent together with it; `take` is given its rows."""
        statement = self._dumped(sql, parameters, take)
        self._waiting.append(statement)
        return statement

    def rows(self, sql: bytes, parameters: "Sequence[Any]") -> "tuple[Result, list[Row]]":
        """Run a statement with its parameters in order; give its result, which names its columns, and all rows."""
        result = self._run(self._dumped(sql, parameters))
        return result, self._rows_of(result)

    def single_later(self, sql: bytes, parameters: "Sequence[Any]" = ()) -> None:
        """Run a statement whose text never comes again before the next one, sent together with it."""
        self.later(sql, parameters).is_single = True

    def single_rows(self, sql: bytes) -> "list[Row]":
        """Run a statement whose text never comes again; give all rows."""
        statement = self._dumped(sql, ())
        statement.is_single = True
        return self._rows_of(self._run(statement))

    def count(self, sql: bytes, parameters: "Sequence[Any]") -> int:
        """Run a statement without a result; say how many rows it wrote."""
        return self._run(self._dumped(sql, parameters)).command_tuples or 0

    def ask(self, command: bytes) -> None:
        """Run a command that has neither parameters nor rows."""
        if self._waiting:
            self._together([self._dumped(command, ())])
        else:
            self._checked(self._answered(lambda: self._pgconn.send_query(command), self._last_result))

    def flush(self) -> None:
        """Run what waits for the next statement, for somebody who speaks to the server in another way."""
        if self._waiting:
            self._together([])

    @property
    def transaction(self) -> object:
        """What tells the transaction that is open from all others; None when there is none."""
        return self._begin

    @property
    def has_begun(self) -> bool:
        """Whether the server has heard of the transaction."""
        return self._begin is None or self._begin.is_done

    @property
    def last_waiting(self) -> Statement | None:
        """The last of what waits for the next statement."""
        return self._waiting[-1] if self._waiting else None

    def take_back(self, statement: Statement) -> bool:
        """Take a statement back with all behind it, if it has not been sent; what came later is not wanted in any case."""
        is_waiting = statement in self._waiting
        del self._waiting[self._waiting.index(statement) if is_waiting else 0 :]
        return is_waiting

    def forget(self) -> None:
        """Let go of what was not sent: the transaction is over."""
        self._waiting.clear()
        self._begin = self._check = None

    # How it is sent

    def _dumped(self, sql: bytes, parameters: "Sequence[Any]", take: "Callable[[list[Row]], None] | None" = None) -> Statement:
        statement = Statement(sql, take)
        if parameters:
            transformer = self._transformer
            statement.values = transformer.dump_sequence(parameters, [PyFormat.AUTO] * len(parameters))
            statement.types, statement.formats = transformer.types or (), transformer.formats
        return statement

    def _run(self, statement: Statement) -> "Result":
        known = self._known.get((statement.sql, statement.types), 0)
        if self._waiting or (isinstance(known, int) and known + 1 >= _OFTEN):
            return self._together([statement])
        return self._checked(self._answered(lambda: self._send(statement, self._name_of(statement)), self._last_result))

    def _together(self, last: "list[Statement]") -> "Result":
        """Send what waits and what comes last; give the last result."""
        batch, self._waiting = [*self._waiting, *last], []
        if self._check is not None:
            if any(statement.tells_check for statement in batch):
                batch.remove(self._check)
            self._check = None
        asked: list[Statement] = []
        results = self._answered(lambda: self._send_all(batch, asked), lambda: self._all_results(asked))
        for statement in asked:
            if isinstance(statement, _Preparing) and not statement.is_done:
                # What was sent before it has failed, and it was passed over.
                self._known.pop((statement.sql, statement.types), None)
        for statement, result in zip(asked, results, strict=True):
            self._checked(result)
            if statement.take is not None:
                statement.result = result
                statement.take(self._rows_of(result))
        return results[-1]

    def _send_all(self, batch: "list[Statement]", asked: "list[Statement]") -> None:
        """Send statements, and what prepares them; list all that is asked."""
        self._pgconn.enter_pipeline_mode()
        for statement in batch:
            name = self._name_of(statement, asked)
            self._send(statement, name)
            asked.append(statement)
            if statement is self._begin:
                # Here, because in a transaction that has failed the server would not hear of it.
                for spent in self._spent:
                    asked.append(Statement(b"deallocate " + spent))
                    self._send(asked[-1], None)
                self._spent.clear()
        self._pgconn.pipeline_sync()

    def _send(self, statement: Statement, name: bytes | None) -> None:
        values, formats = statement.values, statement.formats
        if name is None:
            self._pgconn.send_query_params(statement.sql, values, param_types=statement.types, param_formats=formats)
        else:
            self._pgconn.send_query_prepared(name, values, param_formats=formats)

    def _name_of(self, statement: Statement, asked: "list[Statement] | None" = None) -> bytes | None:
        """Return the name under which a statement is prepared; None while it was not asked often enough.

        It is prepared on the way, among what is asked together.
        """
        if statement.is_single:
            return None
        key = statement.sql, statement.types
        known = self._known.get(key, 0)
        if isinstance(known, bytes):
            self._known.move_to_end(key)
            return known
        name = None
        if asked is not None and known + 1 >= _OFTEN:
            self._number += 1
            name = f"decklog_{self._number}".encode()
            self._pgconn.send_prepare(name, statement.sql, statement.types)
            asked.append(_Preparing(statement))
        self._known[key] = known + 1 if name is None else name
        if len(self._known) > _MOST_KEPT:
            _, oldest = self._known.popitem(last=False)
            if isinstance(oldest, bytes):
                self._spent.append(oldest)
        return name

    # What comes back

    def _rows_of(self, result: "Result") -> "list[Row]":
        if not result.ntuples:
            return []
        self._transformer.set_pgresult(result)
        return self._transformer.load_rows(0, result.ntuples, tuple)

    def _checked(self, result: "Result") -> "Result":
        if result.status in _GOOD:
            return result
        problem = error_from_result(result, self._connection.info.encoding)
        if problem.sqlstate == _NO_SUCH_STATEMENT:
            self._known.clear()
            raise Forgotten from problem
        raise self._not_begun(problem)

    def _not_begun(self, problem: psycopg.Error) -> Exception:
        if self.has_begun or not errors.is_lost(problem):
            return problem
        again = NotBegun()
        again.__cause__ = problem
        return again

    def ping(self) -> None:
        """Send an empty query if an open transaction waits for this client; called by another thread."""
        lock = self._connection.lock
        if not lock.acquire(blocking=False):
            return
        try:
            self._check_alive()
        except NotSent as problem:
            self._lost = problem  # for the thread that uses the connection
        finally:
            lock.release()

    def _check_alive(self) -> None:
        """Exchange an empty query with the server in an open transaction. Raise NotSent if it has ended the transaction."""
        idle_seconds = self._connection.idle_seconds
        if not idle_seconds or self._connection.closed or self._pgconn.transaction_status not in _IN_TRANSACTION:
            return
        silent_seconds = time.monotonic() - self._answered_at
        try:
            self._exchange(lambda: self._pgconn.send_query(b""), self._last_result)
        except psycopg.Error as problem:
            # libpq does not pass on the code of an error that came while nothing was asked.
            raise NotSent(problem, was_idle=silent_seconds >= idle_seconds) from problem

    def _answered(self, send: "Callable[[], None]", receive: "Callable[[], T]") -> "T":
        """Send, and wait for what comes back; a signal interrupts it, and then the statement is not waited for."""
        # The lock is psycopg's own. It keeps pings and statements apart.
        with self._connection.lock:
            if self._lost is not None:
                raise self._lost
            self._connection.used_at = time.monotonic()
            if self._connection.used_at - self._answered_at > _QUIET_SECONDS:
                self._check_alive()  # so that it is known whether a commit was sent
            try:
                return self._exchange(send, receive)
            finally:
                self._connection.used_at = time.monotonic()

    def _exchange(self, send: "Callable[[], None]", receive: "Callable[[], T]") -> "T":
        try:
            send()
            received = receive()
            self._answered_at = time.monotonic()
            return received
        except BaseException as problem:
            # Its answer may still come: this connection can't be used for anything else.
            if not self._connection.closed:
                if not isinstance(problem, psycopg.Error):
                    with suppress(psycopg.Error):
                        self._connection.cancel_safe(timeout=_CANCEL_SECONDS)
                self._connection.close()
            if isinstance(problem, psycopg.Error):
                told = self._not_begun(problem)
                raise told from told.__cause__
            raise

    def _last_result(self) -> "Result":
        self._flush_out()
        result = None
        while (following := self._next()) is not None:
            result = following
        if result is None:
            raise psycopg.OperationalError("the server gave no answer")
        return result

    def _all_results(self, asked: "list[Statement]") -> "list[Result]":
        """Return the results of what was sent together, each of which an empty one follows."""
        self._flush_out()
        pgconn = self._pgconn
        is_busy, get_result = pgconn.is_busy, pgconn.get_result
        results: list[Result] = []
        for statement in asked:
            if is_busy():
                self._wait()
            result = get_result()
            if result is None:
                raise psycopg.OperationalError("the server gave no answer")
            if result.status in _GOOD:
                statement.is_done = True
            elif errors.is_lost(problem := error_from_result(result, self._connection.info.encoding)):
                raise problem  # the connection is gone, and nothing follows
            results.append(result)
            get_result()
        if is_busy():
            self._wait()
        last = get_result()
        if last is None or last.status != pq.ExecStatus.PIPELINE_SYNC:
            raise psycopg.OperationalError("the server gave no answer")
        pgconn.exit_pipeline_mode()
        return results

    def _flush_out(self) -> None:
        pgconn, end = self._pgconn, self._end()
        if not pgconn.flush():
            return
        # Not `select.select`, which knows no file beyond the thousandth of a process.
        both_ways = select.poll()
        both_ways.register(pgconn.socket, select.POLLIN | select.POLLOUT)
        while pgconn.flush():
            # Neither side may wait for the other to read: what comes is taken while there is more to send.
            left = _left(end)
            if not both_ways.poll(None if left is None else left * 1000):
                raise Silent("the server does not answer")
            pgconn.consume_input()

    def _next(self) -> "Result | None":
        if self._pgconn.is_busy():
            self._wait()
        return self._pgconn.get_result()

    def _wait(self) -> None:
        """Wait until the next result has come."""
        pgconn, end = self._pgconn, self._end()
        while True:
            left = _left(end)
            if not self._socket.poll(None if left is None else left * 1000):
                raise Silent("the server does not answer")
            pgconn.consume_input()
            if not pgconn.is_busy():
                return

    def _end(self) -> float | None:
        patience = self._connection.patience_seconds
        return None if patience is None else time.monotonic() + patience


def _left(end: float | None) -> float | None:
    return None if end is None else max(end - time.monotonic(), 0.0)
