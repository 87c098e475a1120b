"""Translates SQLite's error codes into Decklog errors. It decides by code, never by the text of a message."""

import os

import apsw

from decklog.core.errors import (
    Busy,
    Conflict,
    Damaged,
    DecklogError,
    Denied,
    DiskFull,
    Invalid,
    NotADatabase,
    NotFound,
    ReadOnly,
    TooLarge,
    Unavailable,
)
from decklog.db.callers import timed_out_error

# Failures to write, which say nothing about what is on the disk.
_WRITING = {
    apsw.SQLITE_IOERR_WRITE,
    apsw.SQLITE_IOERR_FSYNC,
    apsw.SQLITE_IOERR_DIR_FSYNC,
    apsw.SQLITE_IOERR_TRUNCATE,
    apsw.SQLITE_IOERR_SHMOPEN,
    apsw.SQLITE_IOERR_SHMSIZE,
    apsw.SQLITE_IOERR_SHMMAP,
}
_LITTLE_ROOM = 1024 * 1024
# What running a statement raises: an error of SQLite, a value that has no place in a column, a text that is not UTF-8.
TRANSLATED = (apsw.Error, OverflowError, UnicodeError)


_PAST_DECKLOG = "Somebody wrote to the file past Decklog. See: decklog verify"


def translate(problem: Exception, target: str) -> DecklogError:
    """Return the Decklog error for what running a statement raised."""
    if isinstance(problem, UnicodeDecodeError):
        # SQLite returns any bytes as text.
        return Damaged(f"{target} has a text with invalid bytes", hint=_PAST_DECKLOG, is_text=False)
    if not isinstance(problem, apsw.Error):
        return Invalid(f"a value can't be stored: {problem}")
    code = getattr(problem, "result", 0) & 0xFF
    extended = getattr(problem, "extendedresult", 0)
    match code:
        case apsw.SQLITE_BUSY | apsw.SQLITE_LOCKED:
            return Busy(f"{target} is being written by another process", hint="Try again.")
        case apsw.SQLITE_CONSTRAINT:
            return _constraint(problem, extended)
        case apsw.SQLITE_FULL:
            return _full(target)
        case apsw.SQLITE_READONLY | apsw.SQLITE_PERM | apsw.SQLITE_AUTH:
            return ReadOnly(f"{target} can't be written: {problem}", hint="Check the file's owner and permissions.")
        case apsw.SQLITE_NOTADB:
            return NotADatabase(
                f"{target} is not a SQLite database, and was left as it is",
                hint="Name another file, or move this one away.",
                path=target,
            )
        case apsw.SQLITE_IOERR if extended in _WRITING and is_full(target):
            return _full(target)
        case apsw.SQLITE_IOERR if extended in _WRITING:
            return Unavailable(
                f"{target} can't be written: {problem}", hint="Nothing of this was kept. Look at the disk it is on."
            )
        case apsw.SQLITE_CORRUPT | apsw.SQLITE_IOERR | apsw.SQLITE_CANTOPEN:
            return Damaged(
                f"{target} can't be read: {problem}",
                hint="Nothing was changed. Copy the file and its -wal away first; then restore a backup, or recover what can be "
                "read into a new file.",
            )
        case apsw.SQLITE_TOOBIG:
            return TooLarge("this value is larger than SQLite can hold")
        case apsw.SQLITE_INTERRUPT:
            return timed_out_error()
    return Invalid(f"SQLite refused the statement: {problem}")


def _full(target: str) -> DiskFull:
    return DiskFull(
        f"the disk that holds {target} is full; nothing of this write was kept",
        hint="Free some space and try again; `decklog prune` drops old bodies.",
    )


def is_full(target: str) -> bool:
    try:
        room = os.statvfs(os.path.dirname(target) or ".")
    except OSError:
        return False
    return room.f_bavail * room.f_frsize < _LITTLE_ROOM


def _constraint(problem: apsw.Error, extended: int) -> DecklogError:
    match extended:
        case apsw.SQLITE_CONSTRAINT_UNIQUE | apsw.SQLITE_CONSTRAINT_PRIMARYKEY | apsw.SQLITE_CONSTRAINT_ROWID:
            return Conflict(f"there is one already: {problem}")
        case apsw.SQLITE_CONSTRAINT_FOREIGNKEY:
            return NotFound("this refers to something that is not in the log")
        case apsw.SQLITE_CONSTRAINT_TRIGGER:
            return Denied(str(problem).removeprefix("ConstraintError: "))
    return Invalid(f"a value is outside of what its column allows: {problem}")
