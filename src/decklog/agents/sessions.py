"""Recorded sessions of agents, as their runs describe them."""

from typing import TYPE_CHECKING

from decklog.agents.texts import storable

if TYPE_CHECKING:
    from collections.abc import Mapping

    from decklog.log import Decklog


def is_session(metadata: "Mapping[str, object]") -> bool:
    """Check by a run's metadata whether the run is a recorded session, or a sub-agent's part of one."""
    return "program" in metadata and "session" in metadata


def charge_of_session(session: str | None, number: int) -> str | None:
    """Name a charge for a session that Decklog started itself, by its number; None if the program named no session."""
    return None if session is None else f"session:{storable(session)}:{number}"


def is_charged(log: "Decklog", session: str) -> bool:
    """Check whether a session was started by Decklog and charged to the run that it worked for."""
    return bool(log.ledger.find(answer_id=charge_of_session(session, 1), limit=1))
