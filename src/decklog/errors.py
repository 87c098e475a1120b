"""What can go wrong, as four roots with stable codes.

Every message names the thing, its present state and the next thing to do; the same facts are in `details` as data.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class DecklogError(Exception):
    """The base of every error Decklog raises."""

    code = "error"
    retryable = False

    def __init__(self, message: str, *, hint: str | None = None, **details: "Any") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.details = details

    def as_dict(self) -> "dict[str, Any]":
        """Give the error as data, in the shape every surface shows."""
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
    """It is not permitted, whatever the state."""

    code = "denied"


class TooLarge(Invalid):
    code = "too_large"


class Closed(Invalid):
    code = "closed"


class NotADatabase(Invalid):
    code = "not_a_database"


class Damaged(Invalid):
    code = "damaged"


class SchemaTooNew(Invalid):
    code = "schema_too_new"


class SchemaTooOld(Invalid):
    code = "schema_too_old"


class SchemaDiffers(Invalid):
    """A migration was applied in another form than the one that is shipped."""

    code = "schema_differs"


class EngineTooOld(Invalid):
    code = "engine_too_old"


class Unavailable(Invalid):
    """Something the operation needs is not installed or can't be reached."""

    code = "unavailable"


class Busy(Conflict):
    code = "busy"
    retryable = True


class TimedOut(Conflict):
    code = "timed_out"
    retryable = True


class StillPending(Conflict):
    code = "pending"
    retryable = True


class DiskFull(Conflict):
    code = "disk_full"
    retryable = True


class FileReplaced(Conflict):
    """The file of a log was removed, or another one put in its place, while it was open."""

    code = "file_replaced"


class LeaseLost(Conflict):
    code = "lease_lost"


class ReadOnly(Denied):
    code = "read_only"


class NetworkFilesystem(Denied):
    code = "network_filesystem"


class Refused(Denied):
    """A guard, a budget or a gate said no."""

    code = "refused"


class BudgetExceeded(Refused):
    code = "budget_exceeded"
