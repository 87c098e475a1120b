"""All errors: five base classes, each with a stable code.

Every message names the thing, its state and the next step; `details` has the same facts as data.
"""

from typing import Any


class DecklogError(Exception):
    """The base of every error Decklog raises."""

    code = "error"
    retryable = False

    def __init__(self, message: str, *, hint: str | None = None, **details: Any) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.details = details
        if hint is not None:
            self.add_note(hint)  # a traceback shows it too

    def as_dict(self) -> dict[str, Any]:
        """Return the error as JSON values, the same for every interface."""
        return {
            "code": self.code,
            "message": self.message,
            "hint": self.hint,
            "retryable": self.retryable,
            "details": self.details,
        }


class Invalid(DecklogError):
    """The request or the data can't be used as it is."""

    code = "invalid"


class NotFound(DecklogError):
    """There is no such record, run, file or other thing."""

    code = "not_found"


class Conflict(DecklogError):
    """The current state does not allow this."""

    code = "conflict"


class Denied(DecklogError):
    """This is not permitted in any state."""

    code = "denied"


class Unavailable(DecklogError):
    """A problem that the caller did not cause: something is missing, unreachable, full, damaged, busy or closed."""

    code = "unavailable"

    def __init__(self, message: str, *, hint: str | None = None, **details: Any) -> None:
        # Here, and not at the top: hooks import the errors at every step, and count none.
        from decklog.core.metrics import UNAVAILABLE

        super().__init__(message, hint=hint, **details)
        UNAVAILABLE.add(self.code)


class TooLarge(Invalid):
    """A value is larger than the log accepts."""

    code = "too_large"


class NotADatabase(Invalid):
    """The file is not a SQLite database, or belongs to another program."""

    code = "not_a_database"


class SchemaTooNew(Invalid):
    """The log was written by a newer version of Decklog."""

    code = "schema_too_new"


class SchemaTooOld(Invalid):
    """The log lacks migrations of this version of Decklog."""

    code = "schema_too_old"


class SchemaDiffers(Invalid):
    """A migration that was applied differs from the one that is shipped."""

    code = "schema_differs"


class TimedOut(Conflict):
    """The time limit was exceeded."""

    code = "timed_out"
    retryable = True


class StillPending(Conflict):
    """There is no answer yet."""

    code = "pending"
    retryable = True


class LeaseLost(Conflict):
    """The task is no longer the caller's: its lease expired, or another worker has it."""

    code = "lease_lost"


class ReadOnly(Denied):
    """The log, or the database role in use, is read-only."""

    code = "read_only"


class NetworkFilesystem(Denied):
    """The file is on a network file system, where SQLite's locks do not work across machines."""

    code = "network_filesystem"


class Refused(Denied):
    """A guard, a budget or a gate refused this."""

    code = "refused"


class Unproven(Denied):
    """Only the owner may do this, and the owner's signature is missing or wrong."""

    code = "unproven"


class NotAccepted(Denied):
    """A log was found in a folder that this user has not accepted."""

    code = "not_accepted"


class BudgetExceeded(Refused):
    """A budget has too little left for this."""

    code = "budget_exceeded"


class EngineTooOld(Unavailable):
    """The installed SQLite or PostgreSQL is older than the log needs."""

    code = "engine_too_old"


class Closed(Unavailable):
    """The log was closed."""

    code = "closed"


class Damaged(Unavailable):
    """Stored data can't be read, or differs from what was written."""

    code = "damaged"


class Busy(Unavailable):
    """Another process holds a lock that is needed; a retry helps."""

    code = "busy"
    retryable = True


class DiskFull(Unavailable):
    """The disk is full; nothing was written."""

    code = "disk_full"
    retryable = True


class FileReplaced(Unavailable):
    """The file of an open log was removed or replaced."""

    code = "file_replaced"


class Unreachable(Unavailable):
    """The server does not answer, or the connection was lost; nothing of the current transaction was written."""

    code = "unreachable"
    retryable = True


class OutcomeUnknown(Unavailable):
    """The connection was lost during a commit: the transaction may have been written or not."""

    code = "outcome_unknown"


class LostWrites(Unavailable):
    """Acknowledged entries are missing on the server that answers now. `details` names them."""

    code = "lost_writes"
