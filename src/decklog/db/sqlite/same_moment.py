"""One moment of a SQLite file, read by several processes: each begins a read, and none counts if anybody wrote meanwhile.

SQLite tells a connection by a number whether others have committed since it was asked last. Where the number is the same before
any of the processes began to read and in the read that the last of them began, all of them see the same.
"""

from typing import TYPE_CHECKING

from decklog.db import side_by_side
from decklog.db.side_by_side import Helper, Queue

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from decklog.db.base import T
    from decklog.db.side_by_side import Part
    from decklog.db.sqlite.database import SqliteDatabase

# A log that is written all the time is read by one process after so many.
_TRIES = 50
_VERSION = "pragma data_version"


def read_shared(database: "SqliteDatabase", parts: "Sequence[Part]", job: "Callable[[list[Any]], T]") -> "T":
    """Look at parts in several processes and then run a job, all at one moment."""
    count = 0 if len(parts) < 2 or database.is_at_work else min(len(parts), side_by_side.processes()) - 1
    if not count:
        return database.read(lambda: job([None] * len(parts)))
    queue = Queue(len(parts))
    helpers: list[Helper] = []
    try:
        # Inside of a read, whose connection stays open across the fork: with a file's last one its write-ahead log goes away.
        database.read(lambda: _fork(database, parts, queue, helpers, count))
        return _met(database, parts, queue, helpers, job)
    finally:
        for helper in helpers:
            helper.end()
        queue.close()


def _fork(database: "SqliteDatabase", parts: "Sequence[Part]", queue: Queue, helpers: "list[Helper]", count: int) -> None:
    _version(database)
    for _ in range(count):
        helpers.append(Helper(parts, queue, read=database.read, look=lambda: _version(database)))


def _met(
    database: "SqliteDatabase", parts: "Sequence[Part]", queue: Queue, helpers: "list[Helper]", job: "Callable[[list[Any]], T]"
) -> "T":
    for _ in range(_TRIES):
        # Outside of a read: it is asked anew, and not of a moment that is over.
        with database.connections.readers.held() as reader:
            before = reader.connection.execute(_VERSION).fetchall()
        for helper in helpers:
            helper.begin()
        for helper in helpers:
            helper.wait_until_begun()
        found: list[T] = database.read(
            lambda: [job(side_by_side.taken(parts, queue, helpers))] if _version(database) == before else []  # noqa: B023
        )
        if found:
            return found[0]
    return database.read(lambda: job([None] * len(parts)))


def _version(database: "SqliteDatabase") -> "list[Any]":
    """Read the number by which SQLite tells changes apart, which settles what the read sees."""
    return database.rows(_VERSION, {})[1]
