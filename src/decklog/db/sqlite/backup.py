"""Copying a SQLite log while it is written, and putting another file in its place."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import apsw

from decklog.core.disk import sync
from decklog.core.errors import Busy, Conflict
from decklog.db.sqlite import errors
from decklog.db.sqlite.file import address_of, holders_of

_PAGES = 4096


def copy(source: apsw.Connection, path: str, progress: Callable[[int, int], None]) -> None:
    """Copy a database as it is at this moment into a new file of mode 0600; writers go on meanwhile."""
    # One read transaction over all steps: without it every commit of another process would start the copy anew.
    os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    destination = apsw.Connection(path)
    try:
        # Nobody knows the file until it is whole, so it is synced once, at the end.
        destination.execute("pragma synchronous = off")
        source.execute("begin")
        source.execute("select count(*) from sqlite_schema").fetchall()
        with destination.backup("main", source, "main") as backup:
            while not backup.done:
                backup.step(_PAGES)
                progress(backup.page_count - backup.remaining, backup.page_count)
    except apsw.Error as problem:
        raise errors.translate(problem, path) from problem
    finally:
        if source.in_transaction:
            source.execute("rollback")
        destination.close()
    sync(path)


def copy_file(path: str, copied: str, progress: Callable[[int, int], None]) -> None:
    """Copy a database file that no log object has open, with what its WAL holds."""
    # A file without a WAL that nobody has open is read as it is: otherwise SQLite creates files next to it.
    name = address_of(path, still=not os.path.exists(f"{path}-wal") and not holders_of(path))
    try:
        connection = apsw.Connection(name, flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI)
    except apsw.Error as problem:
        raise errors.translate(problem, path) from problem
    try:
        copy(connection, copied, progress)
    finally:
        connection.close()


@contextmanager
def alone(path: str) -> Iterator[None]:
    """Keep every other process out of a file, whose WAL is folded into it; `Busy` when one has it open.

    Leaving the WAL mode is something that SQLite allows only to the last one who has a file open.
    """
    try:
        connection = apsw.Connection(path, flags=apsw.SQLITE_OPEN_READWRITE)
    except apsw.Error as problem:
        raise errors.translate(problem, path) from problem
    try:
        if not _is_alone(connection, path):
            raise Busy(
                f"other processes have {path} open",
                hint="End them first (`decklog doctor` shows who), then try again.",
                path=path,
            )
        yield
    finally:
        if connection.in_transaction:
            connection.execute("rollback")
        connection.close()


def _is_alone(connection: apsw.Connection, path: str) -> bool:
    try:
        connection.execute("pragma locking_mode = exclusive")
        mode = connection.execute("pragma journal_mode = delete").fetchall()
        connection.execute("begin exclusive")
    except (apsw.BusyError, apsw.LockedError):
        return False
    except apsw.Error as problem:
        raise errors.translate(problem, path) from problem
    return bool(mode) and mode[0][0] == "delete"


def use_wal(path: str) -> None:
    """Put a file back into the mode that logs are used in."""
    connection = apsw.Connection(path, flags=apsw.SQLITE_OPEN_READWRITE)
    connection.execute("pragma journal_mode = wal")
    connection.close()


def publish(partial: str, path: str, *, overwrite: bool) -> None:
    """Rename a finished file in one step; raise Conflict if the name is taken."""
    if overwrite:
        os.replace(partial, path)
    else:
        try:
            os.link(partial, path)
        except FileExistsError:
            raise Conflict(f"{path} exists already and was not changed", hint="Name another file.", path=path) from None
        os.unlink(partial)
    sync(os.path.dirname(path))
