"""The attempts at a run's tasks as bars over time: who worked on what, when, and how it ended."""

from html import escape
from typing import TYPE_CHECKING

from decklog.core.figures import took
from decklog.transfer.report.document import shown_time

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime, timedelta

    from decklog.log import Decklog
    from decklog.stores.tasks.task import Attempt, Task

_MOST_BARS = 200


def bars(log: "Decklog", tasks: "list[Task]") -> "Iterator[str]":
    """Draw every attempt; the first ones of a very long run."""
    rows = [(task, attempt) for task in tasks if task.attempts for attempt in log.tasks.attempts(task.id)]
    yield "<h2>Timeline</h2>\n"
    if not rows:
        yield '<p class="soft">No task was worked on yet.</p>\n'
        return
    rows.sort(key=lambda row: (row[1].started_at, row[0].id))
    shown = rows[:_MOST_BARS]
    start = shown[0][1].started_at
    end = max(attempt.ended_at or log.clock.now() for _, attempt in shown)
    yield f'<p class="soft">{took(end - start)}, from {shown_time(start)} to {shown_time(end)} UTC.</p>\n'
    for task, attempt in shown:
        yield _bar(task, attempt, start, end)
    if len(rows) > len(shown):
        yield f'<p class="soft">The first {len(shown)} of {len(rows)} attempts.</p>\n'


def _bar(task: "Task", attempt: "Attempt", start: "datetime", end: "datetime") -> str:
    outcome = attempt.outcome.value if attempt.outcome else "running"
    ended = attempt.ended_at or end
    left, width = _share(attempt.started_at - start, end - start), _share(ended - attempt.started_at, end - start)
    said = f"attempt {attempt.number} by {attempt.worker}: {outcome}, {took(ended - attempt.started_at)}"
    return (
        f'<div class="attempt"><span>{escape(task.title)}</span>'
        f'<span class="track"><span class="bar {outcome}" style="left:{left:.2f}%;width:{width:.2f}%"'
        f' title="{escape(said)}"></span></span>'
        f'<span class="soft">{escape(attempt.worker)}, {outcome}</span></div>\n'
    )


def _share(part: "timedelta", whole: "timedelta") -> float:
    seconds = max(whole.total_seconds(), 0.001)
    return min(100.0, max(0.0, part.total_seconds() / seconds * 100))
