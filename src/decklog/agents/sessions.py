"""Queries about recorded agent sessions, based on run metadata."""

from typing import TYPE_CHECKING

from decklog.agents.texts import storable

if TYPE_CHECKING:
    from collections.abc import Mapping

    from decklog.log import Decklog
    from decklog.stores.runs.run import Run, RunStatus

_PAGE = 100


def is_session(metadata: "Mapping[str, object]") -> bool:
    """Check by a run's metadata whether the run is a recorded session, or a sub-agent's part of one."""
    return "program" in metadata and "session" in metadata


def planned_runs(log: "Decklog", status: "RunStatus", most: int) -> "list[Run]":
    """Return the newest runs of a status that are not recorded sessions."""
    found: list[Run] = []
    after = None
    while len(found) < most:
        page = log.runs.find(status=status, limit=_PAGE, after=after)
        found += [run for run in page if not is_session(run.metadata)]
        if (after := page.next) is None:
            break
    return found[:most]


def charge_of_session(session: str | None, number: int) -> str | None:
    """Return the answer id of a charge for a session that Decklog started; None if the program named no session."""
    return None if session is None else f"session:{storable(session)}:{number}"


def is_charged(log: "Decklog", session: str) -> bool:
    """Check whether a session was started by Decklog and charged to the run that it worked for."""
    return bool(log.ledger.find(answer_id=charge_of_session(session, 1), limit=1))
