"""Translates PostgreSQL's error codes into Decklog errors."""

import psycopg

from decklog.core.errors import (
    Busy,
    Conflict,
    DecklogError,
    Denied,
    DiskFull,
    Invalid,
    NotFound,
    ReadOnly,
    Unavailable,
    Unreachable,
)
from decklog.db.callers import timed_out_error

_BUSY = {"40001", "40P01", "55P03"}  # serialization failure, deadlock, lock timeout
_TOO_MANY = {"53300", "53400"}  # connections, configuration limit
# Ended by an administrator, crashed, starting or stopping, dropped, idle for too long (in a transaction or not).
IDLE = "25P03"
# A session without the statements that were prepared in it is another one, or was reset.
_FORGOTTEN = "26000"
_LOST = {"57P01", "57P02", "57P03", "57P04", "57P05", IDLE, "25P04", _FORGOTTEN}


def is_lost(problem: psycopg.Error) -> bool:
    """Return whether the connection is gone, so that nothing of an uncommitted transaction was kept."""
    state = problem.sqlstate
    if state is None:
        return isinstance(problem, (psycopg.OperationalError, psycopg.InterfaceError))
    return state in _LOST or state.startswith("08")


def is_full(problem: psycopg.Error) -> bool:
    """Return whether the server refused a connection because it has no more. Such an error has no code, only a text."""
    return any(words in str(problem) for words in ("too many", "no more connections", "connection slots"))


def translate(problem: psycopg.Error) -> DecklogError:
    """Return the Decklog error for a psycopg error, by its SQLSTATE."""
    state = problem.sqlstate or ""
    text = (problem.diag.message_primary or str(problem)).strip()
    if state in _BUSY:
        return Busy(f"another transaction is in the way: {text}", hint="Try again.")
    if state in _TOO_MANY:
        hint = "Try again; raise max_connections, or let fewer processes have the log open."
        return Busy(f"the server has no connection to spare: {text}", hint=hint)
    if state == IDLE:
        hint = "Nothing of it was kept. Begin it anew."
        return Busy("the server ended this transaction: the process was frozen, or did nothing for too long", hint=hint)
    if is_lost(problem):
        # A connection that was not made has no error code.
        hint = "Try again; if it stays so, check the address, that the server runs, and its max_connections."
        return Unreachable(f"the database can't be reached: {text}", hint=hint)
    match state:
        case "23505":
            return Conflict(f"there is one already: {text}")
        case "23514" if "no partition of relation" in text:
            return Conflict("the run is archived", hint="Bring it back: decklog archive restore FILE")
        case "23503":
            return NotFound("this refers to something that is not in the log")
        case "P0001":
            return Denied(text)
        case "42501":
            return Denied(f"this PostgreSQL role may not do that: {text}")
        case "25006":
            return ReadOnly(f"the database takes no writes: {text}")
        case "53100":
            return DiskFull("the database's disk is full; nothing of this write was kept")
        case "57014":
            return timed_out_error()
    if isinstance(problem, psycopg.OperationalError):
        return Unavailable(f"the database can't be used: {text}", hint="Check the address, the user and the server's own log.")
    return Invalid(f"PostgreSQL refused the statement: {text}")
