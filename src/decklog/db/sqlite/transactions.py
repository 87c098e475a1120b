"""Transactions on SQLite: one writer at a time in all processes, and readers that never wait for it."""

import os
import time
from _thread import get_ident
from contextlib import contextmanager

import apsw

from decklog.db import forks
from decklog.db.sqlite import errors, file
from decklog.db.sqlite.fair_lock import FairLock
from decklog.db.sqlite.group_commit import GroupCommit, Ticket
from decklog.db.sqlite.readers import Readers
from decklog.db.sqlite.upkeep import SqliteUpkeep
from decklog.errors import Busy, Closed, Conflict, ReadOnly, SchemaTooNew
from decklog.records import Values

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from typing import Any

    from decklog.clock import Clock
    from decklog.db.base import T

_COUNTDOWN = (4, 3, 2, 1, 0)
_STATEMENTS_KEPT = 300


class SqliteTransactions(SqliteUpkeep):
    """One connection that writes and some that read, and whose turn it is."""

    def __init__(
        self,
        path: str,
        *,
        values: Values,
        clock: "Clock",
        durability: str = "full",
        read_only: bool = False,
        busy_seconds: float = 30.0,
    ) -> None:
        self.target = path
        self.values = values
        self.clock = clock
        self.read_only = read_only
        self._synchronous = "full" if durability == "full" else "normal"
        self._busy_seconds = busy_seconds
        self._closed = False
        self._forgotten: list[apsw.Connection] = []
        self._names: dict[str, tuple[str, ...]] = {}
        self._spelled: dict[str, tuple[str, Callable[[Mapping[str, Any]], Any]]] = {}
        self.version = 0
        self._reset()
        forks.follow(self)

    def _reset(self) -> None:
        """Start with no connection at all, as a new process does."""
        self._writer: apsw.Connection | None = None
        self._readers = Readers(self._connect_reader)
        self._owner: int | None = None
        self._group = GroupCommit(self._commit_one, self._commit_all)
        self._lock: FairLock | None = None
        self._seen_version: int | None = None
        self.memo = {}

    # Connections

    def connect(self) -> apsw.Connection:
        """Open one more connection with our settings."""
        flags = apsw.SQLITE_OPEN_READONLY if self.read_only else apsw.SQLITE_OPEN_READWRITE
        try:
            connection = apsw.Connection(self._name(), flags=flags | apsw.SQLITE_OPEN_URI, statementcachesize=_STATEMENTS_KEPT)
            # Without this, SQLite plans a statement with an order anew for each value that is bound: four times the cost of
            # finding the task to claim.
            connection.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)
            connection.set_busy_timeout(int(self._busy_seconds * 1000))
            connection.execute("pragma foreign_keys = on")
            connection.execute(f"pragma synchronous = {self._synchronous}")
            connection.execute("pragma cache_size = -16384")
        except apsw.Error as problem:
            raise errors.translate(problem, self.target) from problem
        return connection

    def _name(self) -> str:
        # Without a WAL there is nothing to coordinate, and a read-only folder can't hold the shared memory file.
        still = self.read_only and not os.path.exists(self.target + "-wal")
        return file.address_of(self.target, still=still and not os.access(os.path.dirname(self.target), os.W_OK))

    @property
    def lock(self) -> FairLock:
        if self._lock is None:
            self._lock = FairLock(self.target + "-lock", self._busy_seconds)
        return self._lock

    def _connect_reader(self) -> apsw.Connection:
        self._check_open()
        return self.connect()

    def _writing(self) -> apsw.Connection:
        if self._writer is None:
            self._check_open()
            self._writer = self.connect()
        return self._writer

    def _check_open(self) -> None:
        if self._closed:
            raise Closed(f"the log {self.target} is closed; open it again")

    # Transactions

    def write(self, job: "Callable[[], T]") -> "T":
        if self._owner == get_ident():
            return self._nested(job)
        self._writable()
        result: T = self._group.run(job)
        return result

    def submit(self, job: "Callable[[], T]") -> "Any":
        from concurrent.futures import Future

        self._writable()
        future: Future[T] = Future()
        future.set_running_or_notify_cancel()  # from here on it will be written, so nobody can cancel it
        self._group.queue(job, future)
        return future

    def _writable(self) -> None:
        self._check_open()
        if self.read_only:
            raise ReadOnly(f"the log {self.target} is open for reading only", hint="Open it without read_only.")

    def _nested(self, job: "Callable[[], T]") -> "T":
        with self._savepoint():
            return job()

    @contextmanager
    def _savepoint(self) -> "Iterator[None]":
        connection = self._writing()
        if not connection.in_transaction:
            # A full disk takes the whole transaction with it; what followed would be committed piece by piece.
            raise Conflict("this transaction was rolled back when an error came up in it", hint="Begin it anew.")
        connection.execute("savepoint nested")
        try:
            yield
        except BaseException:
            if connection.in_transaction:
                connection.execute("rollback to nested")
                connection.execute("release nested")
            self.memo = {}
            raise
        connection.execute("release nested")

    def _commit_one(self, job: "Callable[[], Any]") -> "Any":
        end = time.monotonic() + self._busy_seconds
        for remaining in _COUNTDOWN:
            try:
                self._begin()
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

    def _commit_all(self, batch: "list[Ticket]") -> None:
        """Run the jobs in one transaction; when one fails, run them again, each in a savepoint of its own."""
        try:
            self._commit_one(lambda: self._run_plain(batch))
        except Exception:
            self._commit_apart(batch)
        except BaseException:
            for ticket in batch:
                ticket.error = Busy("the thread that was writing this was interrupted; try again")
            raise

    def _commit_apart(self, batch: "list[Ticket]") -> None:
        try:
            self._commit_one(lambda: self._run_apart(batch))
        except Exception as problem:
            for ticket in batch:
                ticket.error = problem

    def _run_plain(self, batch: "list[Ticket]") -> None:
        for ticket in batch:
            ticket.result = ticket.job()

    def _run_apart(self, batch: "list[Ticket]") -> None:
        for ticket in batch:
            ticket.error = None
            try:
                ticket.result = self._nested(ticket.job)
            except Exception as problem:
                if not self._writing().in_transaction:
                    raise
                ticket.error = problem

    def _begin(self) -> None:
        """Take the lock and start a transaction. What was found out before still holds if nobody else has written since."""
        connection = self._writing()
        self.lock.acquire()
        try:
            connection.execute("begin immediate")
            if connection.data_version() != self._seen_version:
                self.memo = {}
                self._check_schema(connection)
        except BaseException as problem:
            if connection.in_transaction:
                connection.execute("rollback")
            self.lock.release()
            if isinstance(problem, apsw.Error):
                raise errors.translate(problem, self.target) from problem
            raise
        self._committed = False
        self._owner = get_ident()

    def _commit(self) -> None:
        connection = self._writing()
        try:
            connection.execute("commit")
        except apsw.Error as problem:
            raise errors.translate(problem, self.target) from problem
        self._seen_version = connection.data_version()
        self._committed = True

    def _end(self) -> None:
        """Roll back what was not committed, and let the next writer in."""
        self._owner = None
        connection = self._writing()
        if not self._committed:
            # SQLite may have rolled back by itself, as it does when the disk is full: what was found out is void.
            self.memo = {}
        try:
            if connection.in_transaction:
                connection.execute("rollback")
        finally:
            self.lock.release()

    def _check_schema(self, connection: apsw.Connection) -> None:
        row = connection.execute("pragma user_version").fetchone()
        found = row[0] if row else 0
        if found != self.version:
            raise SchemaTooNew(
                f"{self.target} was migrated to schema {found} while this process had it open at {self.version}",
                hint="Restart this process with the newer Decklog.",
                found=found,
                supported=self.version,
            )

    @contextmanager
    def transaction(self) -> "Iterator[None]":
        if self._owner == get_ident():
            with self._savepoint():
                yield
            return
        self._writable()
        self._group.alone()
        try:
            self._begin()
            try:
                yield
                self._commit()
            finally:
                self._end()
        finally:
            self._group.done()

    def read(self, job: "Callable[[], T]") -> "T":
        if self._owner == get_ident():
            return job()
        if self._readers.mine().reading:
            return job()
        with self._readers.held() as reader:
            reader.reading = True
            try:
                reader.connection.execute("begin")
                return job()
            finally:
                reader.reading = False
                self._end_read(reader.connection)

    def _end_read(self, connection: apsw.Connection) -> None:
        try:
            if connection.in_transaction:
                connection.execute("commit")
        except apsw.Error as problem:
            raise errors.translate(problem, self.target) from problem

    # Life

    def close(self) -> None:
        """Commit what was submitted, and let go of the file."""
        inside = self._owner == get_ident()
        if not inside:
            self._group.alone(after_all=True)
        try:
            self._closed = True
            self._readers.close()
            self._close_writer()
        finally:
            if not inside:
                self._group.done()

    def _close_writer(self) -> None:
        if self._writer is not None:
            self._writer.close()
            self._writer = None
        # Each connection counts changes for itself: the number of the next one may be the same by chance.
        self._seen_version = None
        self.memo = {}
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def before_fork(self) -> None:
        # SQLite's locks do not pass to a child, but its bookkeeping of them and its mutexes do: no connection may live across
        # a fork, and no thread may be inside of SQLite.
        if self._owner != get_ident():
            self._group.alone()
            self._close_writer()
        self._readers.freeze()

    def after_fork_in_parent(self) -> None:
        self._readers.thaw()
        if self._owner != get_ident():
            self._group.done()

    def after_fork_in_child(self) -> None:
        if self._lock is not None:
            # While the child has this file open too, its parent's death would not free the lock.
            self._lock.close()
        # A transaction of the forking thread itself stays the parent's: closing its connection here would roll it back.
        if self._writer is not None:
            self._forgotten.append(self._writer)
        self._reset()
