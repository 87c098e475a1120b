"""Upkeep of a SQLite file: giving freed space back, and looking at its WAL."""

import apsw

from decklog.db import sqlite_errors

TYPE_CHECKING = False
if TYPE_CHECKING:
    from decklog.db.sqlite import SqliteDatabase


def compact(database: "SqliteDatabase") -> None:
    """Write the file anew without what was dropped, and merge the text index, which remembers dropped words until then."""
    database.write(lambda: database.count("insert into entry_text (entry_text) values ('optimize')", {}))
    connection = database.connect()
    database.lock.acquire()
    try:
        connection.execute("vacuum")
        connection.execute("pragma wal_checkpoint(truncate)")
    except apsw.Error as problem:
        raise sqlite_errors.translate(problem, database.target) from problem
    finally:
        database.lock.release()
        connection.close()


def wal_frames(database: "SqliteDatabase") -> int:
    """Count the pages of the WAL that SQLite holds for whole."""
    connection = database.connect()
    try:
        row = connection.execute("pragma wal_checkpoint(noop)").fetchone()
    except apsw.Error as problem:
        raise sqlite_errors.translate(problem, database.target) from problem
    finally:
        connection.close()
    return int(row[1]) if row else 0
