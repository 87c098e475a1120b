"""A text Gantt: who worked on what, when, and how it ended."""

from decklog.cli import terminal
from decklog.cli.table import cut

TYPE_CHECKING = False
if TYPE_CHECKING:
    from datetime import datetime

    from decklog.app import Decklog
    from decklog.stores.work.task import Attempt

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


def timeline(log: "Decklog", run_id: str, width: int | None = None) -> str:
    """Draw every attempt at every task of a run as a bar over time."""
    picture = log.runs.snapshot(run_id)
    goal = getattr(picture.run, "goal", run_id)
    if not picture.attempts:
        return f"{goal}\n(no task was worked on yet)\n"
    titles = {task.id: _short(task.title) for task in picture.records.get("tasks", [])}  # type: ignore[attr-defined]
    start = min(attempt.started_at for attempt in picture.attempts)
    end = max(attempt.ended_at or log.clock.now() for attempt in picture.attempts)
    span = max((end - start).total_seconds(), 0.001)
    label = max(len(titles[attempt.task_id]) for attempt in picture.attempts)
    worker = max(len(_short(attempt.worker)) for attempt in picture.attempts)
    size = width or max(20, min(60, terminal.width(100) - label - worker - 18))
    lines = [f"{goal}  ({_span(span)})"]
    for attempt in picture.attempts:
        bar = _bar(attempt, start, span, size)
        who = f"{titles[attempt.task_id]:<{label}}  {_short(attempt.worker):<{worker}}"
        lines.append(f"{who}  |{bar}|  {attempt.outcome or 'running'}")
    return "\n".join(lines) + "\n"


def _short(text: str) -> str:
    """Keep a label on its line."""
    return cut(terminal.visible(" ".join(text.split())), _LONGEST)


def _span(seconds: float) -> str:
    """Write a span of time in the units a person would use."""
    if seconds < 120:
        return f"{seconds:.1f} s"
    minutes, hours = seconds / 60, seconds / 3600
    return f"{minutes:.0f} min" if minutes < 120 else f"{hours:.1f} h" if hours < 48 else f"{hours / 24:.1f} days"


def _bar(attempt: "Attempt", start: "datetime", span: float, width: int) -> str:
    begin = int((attempt.started_at - start).total_seconds() / span * (width - 1))
    ended = (attempt.ended_at - start).total_seconds() / span if attempt.ended_at else 1.0
    length = max(1, round(ended * (width - 1)) - begin + 1)
    mark = _MARKS.get(attempt.outcome or "", "▒")
    return (" " * begin + mark * length)[:width].ljust(width)
