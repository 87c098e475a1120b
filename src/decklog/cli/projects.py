"""The user's consent to the log of a bazinga project that was found rather than named."""

import os
from typing import TYPE_CHECKING

from decklog.core.errors import NotAccepted
from decklog.location.locate import Accepted, accept, check, check_creation_time
from decklog.plugins.bazinga_project import database_of, is_old_database, log_of

if TYPE_CHECKING:
    from decklog.log import Decklog


class Consent:
    """The user's consent to the project that a call found."""

    def __init__(self) -> None:
        self._known: Accepted | None = None

    def check(self, database: str) -> None:
        """Raise NotAccepted for an existing log that the user did not accept."""
        log = log_of(database)[0]
        if not os.path.exists(log):
            return
        try:
            self._known = check(os.path.dirname(log), log, None)
        except NotAccepted:
            if not is_old_database(log):
                raise

    def opened(self, database: str, log: "Decklog") -> None:
        """Check that the opened log is the accepted one; accept a log that this call created."""
        if self._known is not None:
            check_creation_time(_inside(database), self._known, log)
        else:
            accept_project(database, log)


def accept_project(database: str, log: "Decklog") -> None:
    """Record the user's consent to the log of a project."""
    accept(_inside(database), None, log.db.made_at())


def project_log(folder: str) -> str | None:
    """Return the path of a bazinga project's log; None without one."""
    log = log_of(database_of(folder))[0]
    return log if os.path.isfile(log) and not is_old_database(log) else None


def _inside(database: str) -> str:
    return os.path.dirname(log_of(database)[0])
