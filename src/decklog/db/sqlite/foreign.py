"""Other products' SQLite files: one that nobody may write to, and one kept next to a log, in their schema."""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import apsw

from decklog.core.errors import Busy, Damaged
from decklog.db import packing
from decklog.db.sqlite import errors
from decklog.db.sqlite.file import address_of

_WAIT_MILLISECONDS = 5000
LOG = "log"
# The log has all of it, so after a power cut the file must be whole but need not be the newest. Each call reads what waits in
# the write-ahead log, and making the two one costs two waits for the disk: neither too much of it, nor too often.
_PAGES_WAITING = 100


@contextmanager
def held(path: str) -> Iterator[None]:
    """Keep everybody else from writing to a file, which is whole in itself from then on: it has no write-ahead log.

    Open the file for nothing else meanwhile: closing it gives up the lock of the whole process.
    """
    try:
        connection = apsw.Connection(path, flags=apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_NOFOLLOW)
        try:
            _take(connection)
            yield
        finally:
            connection.close(True)
    except (apsw.BusyError, apsw.LockedError) as problem:
        hint = "Stop the programs that use it, and try again."
        raise Busy(f"{path} is in use, and was left as it is", hint=hint, path=path) from problem
    except apsw.Error as problem:
        raise Damaged(f"{path} can't be held: {problem}", path=path) from problem


def _take(connection: apsw.Connection) -> None:
    connection.set_busy_timeout(_WAIT_MILLISECONDS)
    if connection.execute("pragma journal_mode = delete").get != "delete":
        raise apsw.BusyError("others have it open")
    connection.execute("begin exclusive")


class ForeignFile:
    """The file, open, with the log attached for reading. Triggers of the file are for others, and not for us."""

    def __init__(self, path: str, log_path: str) -> None:
        self.path = path
        self._log_path = log_path
        with self._translated():
            self._connection = apsw.Connection(path, flags=apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_URI)
            packing.add_decompress_function(self._connection)
            try:
                self._prepare()
            except BaseException:
                self._connection.close(True)
                raise
        self._identity = _identity(path)

    def _prepare(self) -> None:
        connection = self._connection
        connection.set_busy_timeout(_WAIT_MILLISECONDS)
        connection.config(apsw.SQLITE_DBCONFIG_ENABLE_TRIGGER, 0)
        connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        connection.wal_autocheckpoint(_PAGES_WAITING)
        connection.execute("pragma synchronous = normal")
        connection.execute(f"attach ? as {LOG}", (address_of(os.path.abspath(self._log_path)) + "?mode=ro",))

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except apsw.Error as problem:
            raise errors.translate(problem, self.path) from problem

    @property
    def is_in_place(self) -> bool:
        """Whether the file at the path is still the one that is open."""
        return _identity(self.path) == self._identity

    def rows(self, sql: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Run one statement; give all its rows."""
        with self._translated():
            return self._connection.execute(sql, tuple(parameters)).fetchall()

    def value(self, sql: str, parameters: Sequence[Any] = ()) -> Any:
        """Run one statement; give the first value of its first row, None when there is none."""
        found = self.rows(sql, parameters)
        return found[0][0] if found else None

    def changed(self, sql: str, parameters: Sequence[Any] = ()) -> int:
        """Run one statement that writes; say how many rows it wrote."""
        self.rows(sql, parameters)
        return self._connection.changes()

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Hold one transaction, all or nothing, that sees one moment of the log."""
        self.rows("begin immediate")
        try:
            yield
            self.rows("commit")
        except BaseException:
            if self._connection.in_transaction:
                self.rows("rollback")
            raise

    def close(self) -> None:
        self._connection.close(True)


def _identity(path: str) -> tuple[int, int] | None:
    try:
        found = os.stat(path)
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino


def put_in_place(made: str, path: str) -> None:
    """Put a file that is whole where another was: what waits in the other's write-ahead log is none of the new one's."""
    for ending in ("-wal", "-shm"):
        if os.path.exists(path + ending):
            os.unlink(path + ending)
    os.replace(made, path)
