"""What the mappings of bazinga's tables share: the log they write to, and how a row finds its run."""

from typing import TYPE_CHECKING

from decklog.core.errors import Invalid, NotFound
from decklog.importing.landing import run_id_of

if TYPE_CHECKING:
    from decklog.importing.landing import RowWriter
    from decklog.importing.row import Row
    from decklog.log import Decklog


class BazingaTables:
    """Mappings of one file. A mapping is a method that takes a row and says what became of it."""

    log: "Decklog"
    landing: "RowWriter"
    # The sessions that are here, with the runs they became.
    sessions: dict[str, str]

    def in_run(self, row: "Row") -> str:
        """Place a row in its session's run; a row whose session is gone can't be placed."""
        session = row.text("session_id")
        if session is None:
            raise Invalid(f"{row} names no session")
        run_id = row.stream = self.sessions.get(session) or self._run_of(session)
        return run_id

    def _run_of(self, session: str) -> str:
        run_id = run_id_of(session)
        if not self.landing.has_run(run_id):
            raise NotFound(f"its session {session} is not in the file")
        self.sessions[session] = run_id
        return run_id
