"""A run's attempts as bars over time."""

from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from decklog.cli import terminal
from decklog.cli.screens.lines import Line, StyledText, fit
from decklog.cli.terminal import BUSY, DIM, STRONG, of_word
from decklog.core.figures import took
from decklog.log import Decklog

if TYPE_CHECKING:
    from decklog.stores.tasks.task import Attempt

_MARKS = {
    "done": "█",
    "failed": "x",
    "expired": "░",
    "blocked": "#",
    "paused": "=",
    "released": "<",
    "abandoned": "/",
    "parked": "~",
}
_LONGEST = 40
_AROUND = 18


def timeline(log: Decklog, run_id: str, width: int | None = None) -> list[Line]:
    """Draw every attempt at every task of a run as a bar over time, with the times of its beginning and end beneath."""
    snapshot = log.runs.snapshot(run_id)
    goal = " ".join(getattr(snapshot.run, "goal", run_id).split())
    if not snapshot.attempts:
        return [[StyledText(goal, STRONG)], [StyledText("(no task was worked on yet)", DIM)]]
    titles = {task.id: _short(task.title) for task in snapshot.records.get("tasks", [])}  # type: ignore[attr-defined]
    start = min(attempt.started_at for attempt in snapshot.attempts)
    end = max(attempt.ended_at or log.clock.now() for attempt in snapshot.attempts)
    seconds = max((end - start).total_seconds(), 0.001)
    label = max(len(titles[attempt.task_id]) for attempt in snapshot.attempts)
    worker = max(len(_short(attempt.worker)) for attempt in snapshot.attempts)
    size = width or max(20, min(60, terminal.width(100) - label - worker - _AROUND))
    lines: list[Line] = [[StyledText(goal, STRONG), StyledText(f"  ({took(timedelta(seconds=seconds))})", DIM)]]
    for attempt in snapshot.attempts:
        who = f"{titles[attempt.task_id]:<{label}}  {_short(attempt.worker):<{worker}}  "
        outcome = str(attempt.outcome or "running")
        drawn, style = _bar(attempt, start, seconds, size), of_word(outcome) if attempt.outcome else BUSY
        lines.append(
            [
                StyledText(who),
                StyledText("|", DIM),
                StyledText(drawn, style),
                StyledText("|", DIM),
                StyledText(f"  {outcome}", style),
            ]
        )
    return [*lines, [StyledText(" " * (label + worker + 5) + _scale(start, end, size), DIM)]]


def _short(text: str) -> str:
    """Keep a label on its line."""
    shown = terminal.visible(" ".join(text.split()))
    return fit(shown, min(len(shown), _LONGEST))


def _scale(start: datetime, end: datetime, size: int) -> str:
    """Write when the bars begin and end, below their ends; the day too where it is not the same."""
    form = "%H:%M" if start.date() == end.date() and (end - start).total_seconds() >= 120 else "%H:%M:%S"
    form = form if start.date() == end.date() else "%m-%d %H:%M"
    first, last = f"{start:{form}}", f"{end:{form}}"
    return f"{first}{last:>{max(size - len(first), len(last) + 1)}} UTC"


def _bar(attempt: "Attempt", start: datetime, span: float, width: int) -> str:
    begin = int((attempt.started_at - start).total_seconds() / span * (width - 1))
    ended = (attempt.ended_at - start).total_seconds() / span if attempt.ended_at else 1.0
    length = max(1, round(ended * (width - 1)) - begin + 1)
    mark = _MARKS.get(attempt.outcome or "", "▒")
    return (" " * begin + mark * length)[:width].ljust(width)
