"""Close the sessions of killed programs, with their open calls and steps."""

from contextlib import suppress
from datetime import timedelta
from itertools import islice
from typing import TYPE_CHECKING, Any

from decklog.core.errors import Conflict, Invalid, ReadOnly, Unavailable
from decklog.core.processes import Identity
from decklog.journal.entry import EntryKind
from decklog.log import Decklog
from decklog.records.record import find_all
from decklog.stores.runs.run import Run, RunStatus

if TYPE_CHECKING:
    from decklog.agents.spool import Spool

# Limits of a query or a hook: the newest active runs, without those written to recently, whose end may be pending.
_NEWEST = 50
_QUIET_SECONDS = 60.0
_INTERRUPTED = "interrupted"
_WHY = "the process ended before this did"
# For each start subtype: the end subtype, the payload field with their shared id, and the entry kind.
_ENDS = {"call": ("result", "call", EntryKind.TOOL), "step": ("step.ended", "step", EntryKind.EVENT)}


def own_identity() -> str:
    """Return a text that distinguishes this process from others with the same number."""
    return Identity.own().as_text()


def close_killed_sessions(log: Decklog, spool: "Spool | None" = None) -> None:
    """End the newest runs whose program was killed. Do nothing if the log can't be written.

    The spool may still contain the end that a program reported. Only an empty spool rules that out.
    """
    is_all_recorded = spool is not None and spool.is_empty
    with suppress(ReadOnly, Unavailable):
        close_interrupted(log, most=_NEWEST, quiet_seconds=0.0 if is_all_recorded else _QUIET_SECONDS)


def close_interrupted(log: Decklog, *, most: int | None = None, quiet_seconds: float = 0.0) -> list[Run]:
    """Close the runs of ended processes on this machine, with their open calls and steps; return the runs.

    Runs on other machines, or of processes that can't be checked, stay unchanged. `most` limits the check to the newest
    active runs. `quiet_seconds` skips runs with recent entries, whose end may be pending.
    """
    closed = []
    for run in [*islice(find_all(log.runs.find, status=RunStatus.ACTIVE), most)]:
        if not _is_left(run):
            continue
        newest = log.journal.find(run.id, limit=1)
        if not newest or log.clock.now() - newest[0].at >= timedelta(seconds=quiet_seconds):
            # Another process may just have closed it.
            with suppress(Conflict, Invalid):
                close_open(log, run.id)
                closed.append(log.runs.finish(run.id, status=RunStatus.FAILED, summary=f"interrupted: {_WHY}"))
    return closed


def _is_left(run: Run) -> bool:
    process = run.metadata.get("process")
    try:
        return isinstance(process, str) and Identity.from_text(process).is_alive() is False
    except (ValueError, TypeError):
        return False  # metadata of the same name from another source


def close_open(log: Decklog, run_id: str) -> None:
    """Close every open call and step of a run as interrupted, innermost first."""
    closed_parts: set[str] = set()
    for entry in find_all(log.journal.find, run_id):
        payload: Any = entry.payload if isinstance(entry.payload, dict) else {}
        for begun, (ended, name, kind) in _ENDS.items():
            part = payload.get(name)
            if entry.subtype == ended:
                closed_parts.add(f"{ended}:{part}")
            elif entry.subtype == begun and part and f"{ended}:{part}" not in closed_parts:
                facts = {name: part, "outcome": _INTERRUPTED, "within": payload.get("within")}
                facts |= {"tool": payload.get("tool")} if name == "call" else {"name": entry.body}
                key = f"{ended.replace('.', '-')}:{part}"
                known = {name: value for name, value in facts.items() if value is not None}
                log.journal.append(run_id, _WHY, kind=kind, subtype=ended, key=key, payload=known, agent=entry.agent)
