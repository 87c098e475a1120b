"""Transactions on SQLite: one writer among all processes, and readers that never wait for it."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import get_ident, main_thread
from typing import Any

import apsw

from decklog.core.errors import Busy, Conflict
from decklog.db.base import Database, T
from decklog.db.callers import CallerBlock, deadline, run_undo_actions
from decklog.db.schema import check_open
from decklog.db.sqlite import errors
from decklog.db.sqlite.connections import ReadConnection, SqliteConnections
from decklog.db.sqlite.group_commit import GroupCommit, Ticket

_COUNTDOWN = (4, 3, 2, 1, 0)
# SQLite steps between checks of a deadline.
_STEPS_BETWEEN_CHECKS = 2_000


class SqliteTransactions(Database):
    """The transactions of a log in a SQLite file, and the cache of the open one."""

    def __init__(self, connections: SqliteConnections) -> None:
        self.connections = connections
        # The schema version that this process knows; the file has another one after a migration.
        self.version = 0
        # Always the same dictionary; cleared when it may be outdated.
        self.memo = {}
        self._undo_actions: list[Callable[[], None]] = []
        self._reset()

    def _reset(self) -> None:
        """Reset to the state of a new process, without transactions."""
        # The thread that is running a job, and the open block of a caller.
        self.owner: int | None = None
        self.block: CallerBlock | None = None
        self._group = GroupCommit(self._commit_one, self._commit_all)
        self._seen_version: int | None = None
        self.memo.clear()
        self._undo_actions.clear()

    @property
    def is_in_transaction(self) -> bool:
        return self.block is not None and self.block.is_held()

    @property
    def is_writing(self) -> bool:
        """Whether the caller is inside the open transaction."""
        return self.owner == get_ident() or self.is_in_transaction

    @property
    def is_reading(self) -> bool:
        return not self.is_writing and self.connections.readers.is_reading()

    def _check_free(self) -> None:
        if (block := self.block) is not None:
            block.check_free()

    @contextmanager
    def _working_in_block(self) -> Iterator[None]:
        """Run a job in the caller's block. A job does not await, so its thread identifies it."""
        self.owner = get_ident()
        try:
            yield
        finally:
            self.owner = None

    def if_undone(self, act: Callable[[], None]) -> None:
        if self.is_writing:
            self._undo_actions.append(act)

    def write(self, job: Callable[[], T]) -> T:
        if self.owner == get_ident():
            return self._nested(job)
        if self.block is not None:
            if self.block.is_held():
                with self._working_in_block():
                    return self._nested(job)
            self.block.check_free()
        self.connections.check_writable()
        result: T = self._group.run(job)
        return result

    def submit(self, job: Callable[[], T]) -> Any:
        from concurrent.futures import Future

        self.connections.check_writable()
        future: Future[T] = Future()
        future.set_running_or_notify_cancel()  # it can't be cancelled any more
        self._group.queue(job, future)
        return future

    def _nested(self, job: Callable[[], T]) -> T:
        with self._savepoint():
            return job()

    @contextmanager
    def _savepoint(self) -> Iterator[None]:
        connection = self.connections.writing()
        if not connection.in_transaction:
            # A full disk rolls back the whole transaction; later statements would commit one by one.
            raise Conflict("this transaction was rolled back after an error", hint="Start a new one.")
        connection.execute("savepoint nested")
        actions_before = len(self._undo_actions)
        try:
            yield
        except BaseException:
            if connection.in_transaction:
                connection.execute("rollback to nested")
                connection.execute("release nested")
            self.memo.clear()
            run_undo_actions(self._undo_actions, actions_before)
            raise
        connection.execute("release nested")

    def _commit_one(self, job: Callable[[], Any]) -> Any:
        end = time.monotonic() + self.connections.busy_seconds
        for remaining in _COUNTDOWN:
            try:
                self._begin()
                self.owner = get_ident()
                try:
                    result = job()
                    self._commit()
                finally:
                    self._end()
                return result
            except Busy:
                if not remaining or time.monotonic() >= end:
                    raise
        raise AssertionError("the last try returns or raises")

    def _commit_all(self, batch: list[Ticket]) -> None:
        """Run the jobs in one transaction; when one fails, run them again, each in a savepoint."""
        try:
            self._commit_one(lambda: self._run_plain(batch))
        except BaseException as problem:
            if not _is_of_a_job(problem):
                self._fail(batch, Busy("the writing thread was interrupted; try again"))
                raise
            self._commit_apart(batch)

    def _commit_apart(self, batch: list[Ticket]) -> None:
        try:
            self._commit_one(lambda: self._run_apart(batch))
        except BaseException as problem:
            self._fail(batch, problem)
            if not _is_of_a_job(problem):
                raise

    def _fail(self, batch: list[Ticket], problem: BaseException) -> None:
        for ticket in batch:
            ticket.error = problem

    def _run_plain(self, batch: list[Ticket]) -> None:
        for ticket in batch:
            ticket.result = ticket.job()

    def _run_apart(self, batch: list[Ticket]) -> None:
        for ticket in batch:
            ticket.error = None
            try:
                ticket.result = self._nested(ticket.job)
            except BaseException as problem:
                if not _is_of_a_job(problem) or not self.connections.writing().in_transaction:
                    raise
                ticket.error = problem

    def _begin(self) -> None:
        """Acquire the lock and start a transaction. The cache stays valid if nobody else has written since."""
        connections = self.connections
        cursor, lock = connections.writing_cursor(), connections.lock
        connection = cursor.connection
        lock.acquire()
        try:
            cursor.execute("begin immediate")
            connections.check_in_place()
            if connection.data_version() != self._seen_version:
                self.memo.clear()
                [(required,)] = connection.execute("pragma user_version")
                check_open(required, self.version, connections.path)
        except BaseException as problem:
            if connection.in_transaction:
                connection.execute("rollback")
            lock.release()
            if isinstance(problem, apsw.Error):
                raise errors.translate(problem, connections.path) from problem
            raise
        self._committed = False

    def _commit(self) -> None:
        connections = self.connections
        cursor = connections.writing_cursor()
        try:
            cursor.execute("commit")
        except apsw.Error as problem:
            raise errors.translate(problem, connections.path) from problem
        self._seen_version = cursor.connection.data_version()
        self._committed = True
        self._undo_actions.clear()
        connections.checkpoints.after_commit()

    def _end(self) -> None:
        """Roll back an uncommitted transaction, and release the lock."""
        self.owner = None
        connections = self.connections
        try:
            if not self._committed:
                # SQLite rolls back when the disk is full, so clear the cache in any case.
                self.memo.clear()
                connection = connections.writing()
                if connection.in_transaction:
                    connection.execute("rollback")
        finally:
            connections.lock.release()
            if self._undo_actions:
                run_undo_actions(self._undo_actions)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        if self.is_writing:
            with self._savepoint():
                yield
            return
        self._check_free()
        self.connections.check_writable()
        self._group.alone()
        try:
            self._begin()
            block = self.block = CallerBlock()
            try:
                yield
                self.connections.check_in_place()
                self._commit()
            finally:
                self.block = None
                block.leave()
                self._end()
        finally:
            self._group.done()

    def read(self, job: Callable[[], T], *, same_plans: bool = False) -> T:  # noqa: ARG002 - it plans without the values
        if self.owner == get_ident():
            return job()
        if self.is_in_transaction:
            with self._working_in_block():
                return job()
        if self.connections.readers.is_reading():
            return job()
        self.connections.check_in_place_now_and_then()
        reader = self.connections.readers.acquire()
        try:
            return self._read_with(reader, job)
        finally:
            reader.lock.release()

    def _read_with(self, reader: ReadConnection, job: Callable[[], T]) -> T:
        until = deadline()
        reader.reading = True
        try:
            if until is not None:
                reader.connection.set_progress_handler(lambda: time.monotonic() > until, _STEPS_BETWEEN_CHECKS)
            reader.connection.execute("begin")
            return job()
        finally:
            reader.reading = False
            if not reader.is_closed:
                if until is not None:
                    reader.connection.set_progress_handler(None)
                self._end_read(reader.connection)

    def _end_read(self, connection: apsw.Connection) -> None:
        try:
            if connection.in_transaction:
                connection.execute("commit")
        except apsw.Error as problem:
            # SQLite reports a damaged page again at the end, although the read has ended.
            if not isinstance(problem, apsw.CorruptError) or connection.in_transaction:
                raise errors.translate(problem, self.connections.path) from problem

    # Closing and forks

    def close(self) -> None:
        """Commit all submitted jobs, and close the file."""
        is_inside = self.is_writing
        if not is_inside:
            self._check_free()
            self._group.wait_until_answered()
            self._group.alone(after_all=True)
        try:
            self.connections.close()
            self._forget()
        finally:
            if not is_inside:
                self._group.done()

    def _forget(self) -> None:
        # Data versions are per connection, so that of the next one may be equal by chance.
        self._seen_version = None
        self.memo.clear()

    def _is_in_this_thread(self) -> bool:
        return self.is_writing or (self.block is not None and self.block.is_of_this_thread())

    def before_fork(self) -> None:
        # A child inherits SQLite's mutexes and lock bookkeeping, but not its locks. So no connection may survive a fork, and
        # no thread may be inside SQLite.
        if not self._is_in_this_thread():
            self._group.alone()
            self.connections.close_writer()
            self._forget()
        self.connections.readers.freeze()

    def after_fork_in_parent(self) -> None:
        self.connections.readers.thaw()
        if not self._is_in_this_thread():
            self._group.done()

    def after_fork_in_child(self) -> None:
        self.connections.leave_to_parent()
        self._reset()


def _is_of_a_job(problem: BaseException) -> bool:
    """Return whether a job raised this error. In the main thread it may come from a signal handler."""
    if isinstance(problem, Exception):
        return True
    return get_ident() != main_thread().ident
