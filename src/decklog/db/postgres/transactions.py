"""Transactions on PostgreSQL: each has its own connection."""

import math
import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from threading import Lock, local
from typing import TYPE_CHECKING, Any

import psycopg
from psycopg_pool import PoolTimeout

from decklog.core import fork_safety as forks
from decklog.core.errors import Busy, DecklogError, LostWrites, OutcomeUnknown, ReadOnly, Unreachable
from decklog.db.base import Database, T
from decklog.db.callers import CallerBlock, copy_detached_context, current_caller, deadline, run_undo_actions
from decklog.db.postgres import errors
from decklog.db.postgres.connections import BLOCK_SECONDS, VERB_SECONDS, AcknowledgedHeads, Pool, PostgresConnections
from decklog.db.postgres.session import LogConnection as Connection
from decklog.db.postgres.session import NotBegun, NotSent, Session
from decklog.db.schema import REQUIRED, check_open

if TYPE_CHECKING:
    from concurrent.futures import Future, ThreadPoolExecutor
    from contextlib import AbstractContextManager


# A busy server is retried for `busy_seconds`; lost connections are retried this many times.
_MOST_LOSSES = 8
_LONGEST_PAUSE_SECONDS = 0.5
WRITE = (b"begin isolation level read committed",)
READ = (b"begin isolation level repeatable read read only",)
# Planning costs more than these small reads, so reuse a generic plan. Assume cached data: with the default random_page_cost the
# server reads all entries of a small log to find a few.
READ_BY_SAME_PLANS = (*READ, b"set local plan_cache_mode = force_generic_plan", b"set local random_page_cost = 1.1")


class _OpenBlock:
    """An open block of a caller: its connection and its cache."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.block = CallerBlock()
        self.memo: dict[Any, Any] = {}


class PostgresTransactions(Database):
    """The transactions of a log on a server: the connection and the cache of each caller."""

    def __init__(self, connections: PostgresConnections) -> None:
        self.connections = connections
        # The schema version that this process knows, once checked; the database has another one after a migration.
        self.version = 0
        self.acknowledged = AcknowledgedHeads()
        self._forgotten: list[Any] = []
        self._reset()

    def _reset(self) -> None:
        """Reset to the state of a new process, without transactions."""
        # The connection of the running job by thread, and the open blocks by caller.
        self.local = local()
        self._blocks: dict[object, _OpenBlock] = {}
        self._gate = forks.ForkGate()
        self._opening = Lock()
        self._background: ThreadPoolExecutor | None = None
        self._pending: set[Future[Any]] = set()

    @property
    def memo(self) -> dict[Any, Any]:  # type: ignore[override]
        if (held := self._find_open_block()) is not None:
            return held.memo
        known: dict[Any, Any] = self.local.memo
        return known

    def current(self) -> Connection | None:
        """Return the connection of the caller's transaction, if any."""
        connection: Connection | None = getattr(self.local, "connection", None)
        if connection is None and (held := self._find_open_block()) is not None:
            return held.connection
        return connection

    def _find_open_block(self) -> "_OpenBlock | None":
        return self._blocks.get(current_caller()) if self._blocks and getattr(self.local, "connection", None) is None else None

    def if_undone(self, act: Callable[[], None]) -> None:
        connection = self.current()
        if connection is not None:
            connection.undoing.append(act)

    @property
    def is_in_transaction(self) -> bool:
        return bool(self._blocks) and current_caller() in self._blocks

    @contextmanager
    def _working_on(self, connection: Connection, memo: dict[Any, Any]) -> Iterator[None]:
        """Run a job on a connection. A job does not await, so its thread identifies it."""
        self.local.connection, self.local.memo = connection, memo
        try:
            yield
        finally:
            self.local.connection = None

    def connection(self) -> Connection:
        """Return the caller's connection."""
        connection = self.current()
        assert connection is not None, "statements run inside read(), write() or transaction()"
        return connection

    def session(self) -> Session:
        """Return the session of the caller's connection."""
        return self.connection().session

    @contextmanager
    def block(
        self,
        begin: tuple[bytes, ...],
        *,
        patience_seconds: float | None = None,
        at_once: bool = False,
        idle_seconds: float | None = None,
    ) -> Iterator[Connection]:
        """Open a transaction on a connection for a block; roll back on an error.

        It begins with the first statement, or `at_once`: a block that is never retried must not begin on a lost connection.
        The server ends it if this process is frozen for `idle_seconds`.
        """
        if idle_seconds is not None:
            begin = (*begin, b"set local idle_in_transaction_session_timeout = %d" % (idle_seconds * 1000))
        try:
            with (
                self._gate.passing(),
                self._connect_and_begin(begin, patience_seconds, at_once) as connection,
                self._kept_alive(connection, idle_seconds),
            ):
                try:
                    yield connection
                    self._commit(connection, is_read=begin[0] not in WRITE)
                    connection.undoing.clear()
                    self.acknowledged.add(connection.written)
                except OutcomeUnknown:
                    connection.undoing.clear()  # it may be committed
                    raise
                finally:
                    connection.session.end()
                    if not connection.closed and connection.pgconn.transaction_status != psycopg.pq.TransactionStatus.IDLE:
                        try:
                            connection.rollback()
                        except psycopg.Error:
                            # The server rolls back when the connection ends, and the error that led here must not be replaced.
                            connection.close()
                    run_undo_actions(connection.undoing)
                    connection.written.clear()
        except psycopg.Error as problem:
            error = errors.translate(problem)
            if isinstance(error, ReadOnly):
                self.connections.renew()
            raise error from problem
        except ReadOnly:
            self.connections.renew()
            raise
        except LostWrites as problem:
            self.acknowledged.report(problem)
            raise

    def _commit(self, connection: Connection, *, is_read: bool) -> None:
        """End a transaction. If the connection is lost during the commit, the outcome is unknown."""
        session = connection.session
        if session.is_unused:
            return
        if not is_read:
            self._check_version(session)
        session.queue_before_commit()
        last = session.last_queued
        session.queue(b"commit")
        try:
            session.flush()
        except psycopg.Error as problem:
            # The server refused an earlier statement, so nothing is committed.
            was_ended = problem.sqlstate is not None and last is not None and last.result is None
            if not errors.is_lost(problem) or was_ended or isinstance(problem, NotSent):
                raise
            if not is_read:
                raise OutcomeUnknown(
                    f"the connection was lost while a transaction was being committed: {str(problem).strip()}",
                    hint="Check whether it was written before you repeat it; a call with the same key is safe to repeat.",
                ) from problem

    @contextmanager
    def _kept_alive(self, connection: Connection, idle_seconds: float | None) -> Iterator[None]:
        if idle_seconds is None:
            yield
            return
        keep_alive = self.connections.keep_alive
        keep_alive.add(connection, idle_seconds)
        try:
            yield
        finally:
            keep_alive.remove(connection)

    @contextmanager
    def _connect_and_begin(self, begin: tuple[bytes, ...], patience_seconds: float | None, at_once: bool) -> Iterator[Connection]:
        end = time.monotonic() + self.connections.busy_seconds
        while True:
            pool, connection = self._take_connection()
            settings = self.connections.local_settings if self.connections.shares_sessions else ()
            try:
                connection.patience_seconds = patience_seconds
                connection.session.begin((begin[0], *settings, *begin[1:]), dict.fromkeys(settings, connection.check_server))
                # Upkeep jobs have no caller to report a loss to.
                if not getattr(self.local, "is_upkeep", False):
                    self.acknowledged.compare(connection)
                try:
                    if at_once:
                        connection.session.flush()
                        self._check_version(connection.session)
                except NotBegun as problem:
                    # It was lost while idle: the next one may work.
                    if time.monotonic() < end:
                        continue
                    raise retries_exhausted_error(problem) from problem.__cause__
                yield connection
                return
            finally:
                connection.patience_seconds = None
                pool.putconn(connection)

    def _take_connection(self) -> tuple[Pool, Connection]:
        try:
            return self.connections.taken()
        except PoolTimeout as problem:
            self.connections.reach()  # raises if the server is unreachable rather than busy
            raise Busy("all connections to the database are in use", hint="Try again.") from problem

    def _check_version(self, session: Session) -> None:
        """Raise an error if the log was migrated while it was open, unless this transaction has checked that."""
        if self.version and not session.is_checked:
            self.check_version(session, session.rows_of(session.run(REQUIRED.encode()))[0][0])

    def check_version(self, session: Session, found: int) -> None:
        """Raise an error if the schema version is not the one this process knows."""
        session.is_checked = True
        if self.version:
            check_open(found, self.version, "this database")

    def write(self, job: Callable[[], T]) -> T:
        if self.current() is not None:
            return self._nested(job)
        self._check_free()
        self.connections.check_writable()
        end, lost_end = time.monotonic() + self.connections.busy_seconds, math.inf
        tries, losses, idle = 0, 0, VERB_SECONDS
        may_renew = True
        while True:
            try:
                patience = self.connections.patience_seconds
                with (
                    self.block(WRITE, patience_seconds=patience, idle_seconds=idle) as connection,
                    self._working_on(connection, {}),
                ):
                    return job()
            except NotBegun as problem:
                lost_end = self._end_of_losses(lost_end)
                if time.monotonic() >= lost_end:
                    raise retries_exhausted_error(problem) from problem.__cause__
            except ReadOnly:
                # The session may be older than the server's current setting: retry once on a new one.
                if not may_renew:
                    raise
                may_renew = False
            except (Busy, Unreachable) as problem:
                tries += 1
                losses += isinstance(problem, Unreachable)
                if losses >= _MOST_LOSSES or time.monotonic() >= end or not self.connections.was_reached:
                    raise
                idle = min(2 * idle, BLOCK_SECONDS)
                time.sleep(min(random.uniform(0, 0.02) * tries, _LONGEST_PAUSE_SECONDS))

    def _end_of_losses(self, known: float) -> float:
        """Return the end of retries after lost connections, counted from the first loss."""
        return min(known, time.monotonic() + self.connections.busy_seconds)

    def _check_free(self) -> None:
        for held in list(self._blocks.values()):
            if not held.block.is_held():
                held.block.check_free()

    def submit(self, job: Callable[[], T]) -> "Future[T]":
        return self._submit(job, is_upkeep=False)

    def submit_upkeep(self, job: Callable[[], object]) -> None:
        self._submit(job, is_upkeep=True)

    def _submit(self, job: Callable[[], T], *, is_upkeep: bool) -> "Future[T]":
        self.connections.check_writable()
        with self._opening:
            future = self._executor().submit(copy_detached_context().run, self._write_in_background, job, is_upkeep)
            self._pending.add(future)
        future.add_done_callback(self._pending.discard)
        return future

    def _write_in_background(self, job: Callable[[], T], is_upkeep: bool) -> T:
        self.local.is_background = True  # a thread of this log's pool
        self.local.is_upkeep = is_upkeep
        return self.write(job)

    def _executor(self) -> "ThreadPoolExecutor":
        if self._background is None:
            from concurrent.futures import ThreadPoolExecutor

            self._background = ThreadPoolExecutor(self.connections.pool_size, thread_name_prefix="decklog")
        return self._background

    def _nested(self, job: Callable[[], T]) -> T:
        with self._inside(), self._savepoint():
            return job()

    def _inside(self) -> "AbstractContextManager[None]":
        held = self._find_open_block()
        return nullcontext() if held is None else self._working_on(held.connection, held.memo)

    @contextmanager
    def _savepoint(self) -> Iterator[None]:
        connection = self.connection()
        session, actions_before = connection.session, len(connection.undoing)
        left_for_commit = session.before_commit.copy()
        session.depth += 1
        # Unique names: an inner savepoint may still exist when this one is rolled back to.
        name = b"nested_%d" % session.depth
        session.queue(b"savepoint " + name)
        try:
            yield
        except BaseException:
            if not session.unqueue(b"savepoint " + name) and not connection.closed:
                # The outer block handles a failure from before the savepoint.
                with suppress(psycopg.errors.InvalidSavepointSpecification):
                    session.queue(b"rollback to " + name)
                    session.queue(b"release " + name)
                    session.flush()
            self.memo.clear()
            session.before_commit = left_for_commit
            run_undo_actions(connection.undoing, actions_before)
            raise
        finally:
            session.depth -= 1
        session.queue(b"release " + name)

    def transaction(self) -> "AbstractContextManager[None]":
        return self.held(self.connections.patience_seconds)

    @contextmanager
    def held(self, patience_seconds: float | None) -> Iterator[None]:
        """Hold a block open, on a server that may take `patience_seconds` to answer."""
        if self.current() is not None:
            with self._savepoint():
                yield
            return
        self._check_free()
        self.connections.check_writable()
        try:
            with self.block(WRITE, patience_seconds=patience_seconds, at_once=True, idle_seconds=BLOCK_SECONDS) as connection:
                held = _OpenBlock(connection)
                self._blocks[held.block.holder] = held
                try:
                    yield
                finally:
                    del self._blocks[held.block.holder]
                    held.block.leave()
        except NotBegun as problem:
            raise retries_exhausted_error(problem) from problem.__cause__

    def read(self, job: Callable[[], T], *, same_plans: bool = False) -> T:
        if self.current() is not None:
            with self._inside():
                return job()
        begin = READ_BY_SAME_PLANS if same_plans else READ
        lost_end = math.inf
        is_second = False
        while True:
            try:
                return self._read(job, begin)
            except NotBegun as problem:
                lost_end = self._end_of_losses(lost_end)
                if time.monotonic() >= lost_end:
                    raise retries_exhausted_error(problem) from problem.__cause__
            except Unreachable:
                if is_second or not self.connections.was_reached:
                    raise
                is_second = True  # a read is safe to repeat

    def _read(self, job: Callable[[], T], begin: tuple[bytes, ...]) -> T:
        with self.block(begin) as connection, self._working_on(connection, {}):
            until = deadline()
            self.local.is_reading = True
            try:
                if until is not None:
                    left = max(1, round((until - time.monotonic()) * 1000))
                    connection.session.queue(b"set local statement_timeout = %d" % left)
                return job()
            finally:
                self.local.is_reading = False

    @property
    def is_reading(self) -> bool:
        return getattr(self.local, "is_reading", False)

    # Closing and forks

    def close(self) -> None:
        """Commit all submitted jobs, and close all connections."""
        self._check_free()
        if self._background is not None:
            from concurrent.futures import wait

            wait(list(self._pending))
            # A thread of the pool can't wait for its own end.
            self._background.shutdown(wait=not getattr(self.local, "is_background", False))
        self.connections.close()

    def before_fork(self) -> None:
        # Don't wait for transactions of this thread: they can't end before the fork.
        held = sum(held.block.is_of_this_thread() for held in list(self._blocks.values()))
        self._gate.shut(own=held + (getattr(self.local, "connection", None) is not None))

    def after_fork_in_parent(self) -> None:
        self._gate.open()

    def after_fork_in_child(self) -> None:
        self._forgotten.append(self.local)
        self.acknowledged = AcknowledgedHeads(self.acknowledged.record)
        self.connections.leave_to_parent()
        self._reset()


def retries_exhausted_error(problem: NotBegun) -> DecklogError:
    """Return the error for a transaction that could not begin after all retries."""
    cause = problem.__cause__
    assert isinstance(cause, psycopg.Error)
    return errors.translate(cause)
