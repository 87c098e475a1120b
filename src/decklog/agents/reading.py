"""What is to be known of a program whose sessions come into the log: what its payloads tell, and how its transcripts are read."""

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from datetime import datetime

    from decklog.agents.events import SessionEvent

# Told by ourselves, once a program is gone: it may write its last lines after the last hook.
GONE = "ProgramGone"
# The four kinds of tokens by model.
Sums = dict[str, list[int]]


class TranscriptReader(Protocol):
    """Reads the lines of one transcript in their order."""

    def events(self, line: dict[str, Any]) -> "Iterator[SessionEvent]":
        """Return what a line tells; kinds of lines that are not known tell nothing."""

    def rest(self) -> "Iterator[SessionEvent]":
        """Give what was held back because more of it could have come."""

    @property
    def answers(self) -> Sums:
        """What all answers read so far add up to."""

    def kept(self) -> dict[str, Any]:
        """Return what reading on from here needs to know."""


class TranscriptProgram(Protocol):
    """What is to be known of a program."""

    def events_of(self, told: dict[str, Any], at: "datetime | None") -> "list[SessionEvent]":
        """Return what a payload tells."""

    def transcripts_of(self, told: dict[str, Any]) -> list[tuple[str, str | None]]:
        """Name the transcripts that have grown by then, each with the sub-agent that it belongs to."""

    def reader(self, place: "Reading") -> TranscriptReader:
        """Read a transcript, from its beginning or from where it was left."""


class Reading:
    """Which transcript is read, and what was kept of it.

    `is_backstop` leaves out what hooks tell without an id by which it could be known again. `below` gives what the sub-agents'
    transcripts tell, and what their answers add up to.
    """

    def __init__(
        self,
        *,
        path: str | None = None,
        session_id: str | None = None,
        agent_id: str | None = None,
        kept: dict[str, Any] | None = None,
        is_backstop: bool = False,
        forked_at: float | None = None,
        below: "Callable[[], Iterator[SessionEvent | Sums]] | None" = None,
    ) -> None:
        self.path = path
        self.session_id = session_id
        self.agent_id = agent_id
        self.kept = kept or {}
        self.is_backstop = is_backstop
        self.forked_at = forked_at
        # Found out on the way: that its first lines are those of another session.
        self.is_fork = False
        self.below = below


def add(sums: Sums, model: str, tokens: list[int]) -> None:
    """Add an answer's tokens to the sums of its model."""
    sums[model] = [known + new for known, new in zip(sums.get(model, (0, 0, 0, 0)), tokens, strict=True)]
