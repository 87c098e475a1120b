"""End the runs of processes that were killed: the next recording process does so, and so does the next look."""

from contextlib import suppress
from datetime import timedelta
from typing import TYPE_CHECKING

from decklog.agents.events import CallOutcome
from decklog.core.errors import Conflict, Invalid, ReadOnly, Unavailable
from decklog.core.processes import Identity
from decklog.journal.entry import EntryKind
from decklog.stores.runs.run import RunStatus

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from decklog.agents.spool import Spool
    from decklog.journal.entry import Entry
    from decklog.log import Decklog
    from decklog.stores.runs.run import Run

_PAGE = 500
# What a look or a hook checks: the newest active runs, unless one was written to just now, whose end may be on its way.
_NEWEST = 50
_QUIET_SECONDS = 60.0
_WHY = "the process ended before this did"
# How a part that began is told, and how its end is, with the name that both give to it.
_ENDS = {"call": ("result", "call", EntryKind.TOOL), "step": ("step.ended", "step", EntryKind.EVENT)}


def own_identity() -> str:
    """Return what distinguishes this process from any other with its number."""
    return Identity.own().as_text()


def close_killed_sessions(log: "Decklog", spool: "Spool | None" = None) -> None:
    """End the newest runs whose program was killed. Do nothing where the log can't be written.

    A program that told of its end before it was gone may have that wait in the spool. Only an empty one rules that out.
    """
    is_all_told = spool is not None and spool.is_empty
    with suppress(ReadOnly, Unavailable):
        close_interrupted(log, most=_NEWEST, quiet_seconds=0.0 if is_all_told else _QUIET_SECONDS)


def close_interrupted(log: "Decklog", *, most: int | None = None, quiet_seconds: float = 0.0) -> "list[Run]":
    """Close what processes of this machine that are no more had begun: their calls and steps, and then their runs.

    Give the runs. What runs on another machine, or can't be seen from here, is left alone. `most` looks at so many of the newest
    runs that go on, instead of all; `quiet_seconds` leaves those alone that were written to since, whose end may be on its way.
    """
    left = [run for run in _active(log, most) if _is_left(run) and _is_quiet(log, run, quiet_seconds)]
    return [closed for run in left if (closed := _close(log, run)) is not None]


def _active(log: "Decklog", most: int | None) -> "Iterator[Run]":
    page = log.runs.find(status=RunStatus.ACTIVE, limit=most or _PAGE)
    yield from page
    while most is None and page.next is not None:
        page = log.runs.find(status=RunStatus.ACTIVE, limit=_PAGE, after=page.next)
        yield from page


def _is_left(run: "Run") -> bool:
    process = run.metadata.get("process")
    if not isinstance(process, str):
        return False
    try:
        return Identity.from_text(process).is_alive() is False
    except (ValueError, TypeError):
        return False  # somebody else's fact of the same name


def _is_quiet(log: "Decklog", run: "Run", seconds: float) -> bool:
    newest = log.journal.find(run.id, limit=1)
    return not newest or log.clock.now() - newest[0].at >= timedelta(seconds=seconds)


def _close(log: "Decklog", run: "Run") -> "Run | None":
    try:
        close_open(log, run.id)
        return log.runs.finish(run.id, status=RunStatus.FAILED, summary=f"interrupted: {_WHY}")
    except (Conflict, Invalid):
        return None  # another process has just done it


def close_open(log: "Decklog", run_id: str) -> None:
    """Tell every call and step of a run that has no end as interrupted, the innermost first."""
    told: set[str] = set()
    for entry in _newest_first(log, run_id):
        payload: Any = entry.payload if isinstance(entry.payload, dict) else {}
        for begun, (ended, name, kind) in _ENDS.items():
            part = payload.get(name)
            if entry.subtype == ended:
                told.add(f"{ended}:{part}")
            elif entry.subtype == begun and part and f"{ended}:{part}" not in told:
                facts = {name: part, "outcome": CallOutcome.INTERRUPTED.value, "within": payload.get("within")}
                facts |= {"tool": payload.get("tool")} if name == "call" else {"name": entry.body}
                key = f"{ended.replace('.', '-')}:{part}"
                known = {name: value for name, value in facts.items() if value is not None}
                log.journal.append(run_id, _WHY, kind=kind, subtype=ended, key=key, payload=known, agent=entry.agent)


def _newest_first(log: "Decklog", run_id: str) -> "Iterator[Entry]":
    page = log.journal.find(run_id, limit=_PAGE)
    yield from page
    while page.next is not None:
        page = log.journal.find(run_id, limit=_PAGE, after=page.next)
        yield from page
