"""Another product's SQLite file, held so that nobody writes to it while it is put aside."""

from contextlib import contextmanager

import apsw

from decklog.errors import Busy, Damaged

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

_WAIT_MILLISECONDS = 5000


@contextmanager
def held(path: str) -> "Iterator[None]":
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
