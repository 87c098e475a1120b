"""Says in our words what PostgreSQL's error codes mean."""

import psycopg

from decklog.errors import Busy, Conflict, DecklogError, Denied, DiskFull, Invalid, NotFound, ReadOnly, TimedOut, Unavailable

_BUSY = {"40001", "40P01", "55P03"}  # serialization failure, deadlock, lock timeout


def translate(problem: psycopg.Error) -> DecklogError:
    """Give the Decklog error for a psycopg error, by its SQLSTATE."""
    state = problem.sqlstate or ""
    text = (problem.diag.message_primary or str(problem)).strip()
    if state in _BUSY:
        return Busy(f"another transaction is in the way: {text}", hint="Try again.")
    match state:
        case "23505":
            return Conflict(f"there is one already: {text}")
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
            return TimedOut("the statement took too long and was stopped")
    if isinstance(problem, psycopg.OperationalError):
        return Unavailable(f"the database can't be reached: {text}", hint="Check the address and that the server runs.")
    return Invalid(f"PostgreSQL refused the statement: {text}")
