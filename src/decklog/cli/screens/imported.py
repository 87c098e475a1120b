"""What an import of sessions found, in a few lines."""

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from decklog.agents.found import HISTORIES
from decklog.cli.screens.cost import costliest_lines, gather, head_lines, row_lines, unpriced_lines
from decklog.cli.screens.lines import Line, Piece, clipped
from decklog.cli.styles import DIM, STRONG
from decklog.cli.terminal import width
from decklog.core.figures import counted, took

if TYPE_CHECKING:
    from decklog.agents.history import HistorySummary
    from decklog.log import Decklog

_UNLESS_TERMINAL = 100
_MODELS = 6
_KINDS = 4


def spent_of(log: "Decklog", program: str) -> dict[str, Any]:
    """Add up what the sessions of a coding agent have spent, by model."""
    return {"spent": gather(log, agent=program)}


def imported_lines(program: str, done: "HistorySummary", spent: dict[str, Any], seconds: float) -> list[Line]:
    """Write what was imported, what the sessions in the log have spent, and what to do next."""
    title = HISTORIES[program].title if program in HISTORIES else program
    if done.files:
        found = f"Imported {counted(len(done.sessions), 'session')} of {title}"
        new = counted(done.new, "new entry", "new entries")
        facts = f" from {counted(done.files, 'file')} in {took(timedelta(seconds=seconds))}, {new}"
    else:
        found, facts = f"Nothing new of {title}", ""
    unchanged = f", {counted(done.unchanged, 'file')} unchanged" if done.unchanged else ""
    lines: list[Line] = [[Piece(found, STRONG), Piece(f"{facts}{unchanged}")], *_redacted(done)]
    known = spent["spent"]
    if known["total"]["calls"]:
        lines += [[], *head_lines(known), *row_lines(known, width(_UNLESS_TERMINAL), _MODELS)]
        lines += [*costliest_lines(known, width(_UNLESS_TERMINAL))[:1], *unpriced_lines(known)]
    lines = [clipped(line, width(_UNLESS_TERMINAL)) for line in lines]
    return [*lines, [], [Piece("Next: decklog cost, decklog serve, decklog now", DIM)]]


def _redacted(done: "HistorySummary") -> list[Line]:
    if not done.redacted:
        return []
    kinds = ", ".join(f"{kind} {count:,}" for kind, count in done.redacted.most_common(_KINDS))
    more = ", …" if len(done.redacted) > _KINDS else ""
    return [[Piece(f"{counted(done.redacted.total(), 'secret')} redacted: {kinds}{more}")]]
