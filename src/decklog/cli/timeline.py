"""A text Gantt: who worked on what, when, and how it ended."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from datetime import datetime

    from decklog.app import Decklog
    from decklog.stores.task import Attempt, Task

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
_MOST = 200


def timeline(log: "Decklog", run_id: str, width: int = 60) -> str:
    """Draw every attempt at every task of a run as a bar over time."""
    run = log.runs.get(run_id)
    rows = [(task, attempt) for task in _tasks(log, run_id) for attempt in log.tasks.attempts(task.id)]
    if not rows:
        return f"{run.goal}\n(no task was worked on yet)\n"
    start = min(attempt.started_at for _, attempt in rows)
    end = max(attempt.ended_at or log.clock.now() for _, attempt in rows)
    span = max((end - start).total_seconds(), 0.001)
    label = max(len(task.title) for task, _ in rows)
    worker = max(len(attempt.worker) for _, attempt in rows)
    rows.sort(key=lambda row: row[1].started_at)
    lines = [f"{run.goal}  ({span:.1f} s)"]
    for task, attempt in rows:
        bar = _bar(attempt, start, span, width)
        lines.append(f"{task.title:<{label}}  {attempt.worker:<{worker}}  |{bar}|  {attempt.outcome or 'running'}")
    return "\n".join(lines) + "\n"


def _tasks(log: "Decklog", run_id: str) -> "list[Task]":
    return list(log.tasks.find(run_id, limit=_MOST))


def _bar(attempt: "Attempt", start: "datetime", span: float, width: int) -> str:
    begin = int((attempt.started_at - start).total_seconds() / span * (width - 1))
    ended = (attempt.ended_at - start).total_seconds() / span if attempt.ended_at else 1.0
    length = max(1, round(ended * (width - 1)) - begin + 1)
    mark = _MARKS.get(attempt.outcome or "", "▒")
    return (" " * begin + mark * length)[:width].ljust(width)
