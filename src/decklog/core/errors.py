"""What can go wrong, as five roots with stable codes.

Every message names the thing, its present state and the next thing to do; the same facts are in `details` as data.
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
        """Return the error as data, in the shape every surface shows."""
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
    """The thing named does not exist."""

    code = "not_found"


class Conflict(DecklogError):
    """The present state does not allow this now."""

    code = "conflict"


class Denied(DecklogError):
    """It is not permitted in any state."""

    code = "denied"


class Unavailable(DecklogError):
    """Trouble that is not the caller's: something is missing, out of reach, full, damaged, busy or closed."""

    code = "unavailable"

    def __init__(self, message: str, *, hint: str | None = None, **details: Any) -> None:
        # Here, and not at the top: hooks import the errors at every step, and count none.
        from decklog.core.metrics import UNAVAILABLE

        super().__init__(message, hint=hint, **details)
        UNAVAILABLE.add(self.code)


class TooLarge(Invalid):
    """A value is larger than the log takes."""

    code = "too_large"


class NotADatabase(Invalid):
    """The file is no SQLite database, or one of another program."""

    code = "not_a_database"


class SchemaTooNew(Invalid):
    """The log was written by a newer Decklog than this one."""

    code = "schema_too_new"


class SchemaTooOld(Invalid):
    """The log lacks migrations of this Decklog."""

    code = "schema_too_old"


class SchemaDiffers(Invalid):
    """A migration was applied in another form than the one that is shipped."""

    code = "schema_differs"


class TimedOut(Conflict):
    """It took longer than it was given."""

    code = "timed_out"
    retryable = True


class StillPending(Conflict):
    """The answer that was waited for has not come yet."""

    code = "pending"
    retryable = True


class LeaseLost(Conflict):
    """The task is no longer the caller's: its lease expired, or another worker has it."""

    code = "lease_lost"


class ReadOnly(Denied):
    """The log, or the role that uses it, is for reading only."""

    code = "read_only"


class NetworkFilesystem(Denied):
    """The file lies where several machines may write it, and SQLite can't keep them apart there."""

    code = "network_filesystem"


class Refused(Denied):
    """A guard, a budget or a gate said no."""

    code = "refused"


class Unproven(Denied):
    """Only the manager does this, and the manager's proof is missing or wrong."""

    code = "unproven"


class NotAccepted(Denied):
    """A log was found in a folder, and this user never said that it may be used."""

    code = "not_accepted"


class BudgetExceeded(Refused):
    """A budget has no room for this."""

    code = "budget_exceeded"


class EngineTooOld(Unavailable):
    """The SQLite or PostgreSQL that was found is older than what the log needs."""

    code = "engine_too_old"


class Closed(Unavailable):
    """The log was closed."""

    code = "closed"


class Damaged(Unavailable):
    """What is in the log can't be read, or is not what was written."""

    code = "damaged"


class Busy(Unavailable):
    """Somebody else holds what is needed; trying again helps."""

    code = "busy"
    retryable = True


class DiskFull(Unavailable):
    """There is no room left to write; nothing of the write was kept."""

    code = "disk_full"
    retryable = True


class FileReplaced(Unavailable):
    """The file of a log was removed, or another one put in its place, while it was open."""

    code = "file_replaced"


class Unreachable(Unavailable):
    """The server does not answer, or the connection to it was lost; nothing of what was under way was kept."""

    code = "unreachable"
    retryable = True


class OutcomeUnknown(Unavailable):
    """The connection was lost while a transaction was being committed: it may be on record or not."""

    code = "outcome_unknown"


class LostWrites(Unavailable):
    """Acknowledged entries are gone: the server that answers now never got them. `details` names them."""

    code = "lost_writes"
