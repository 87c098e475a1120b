"""The attempts at a run's tasks as bars over time, drawn in SVG."""

from html import escape

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime
    from typing import Any

    from decklog.app import Decklog

_COLOURS = {"done": "#2f855a", "failed": "#c0392b", "expired": "#b7791f", "blocked": "#8e44ad", "abandoned": "#7f8c8d"}
_OTHER = "#4a78b5"
_LABELS, _WIDTH, _ROW = 300, 1080, 22
_MOST_BARS = 200


def bars(log: "Decklog", tasks: "list[Any]") -> "Iterator[str]":
    """Draw who worked on what, when, and how it ended; the first attempts of a very long run."""
    rows = [(task, attempt) for task in tasks if task.attempts for attempt in log.tasks.attempts(task.id)]
    yield "<h2>Timeline</h2>\n"
    if not rows:
        yield '<p class="soft">No task was worked on yet.</p>\n'
        return
    rows.sort(key=lambda row: (row[1].started_at, row[0].id))
    shown = rows[:_MOST_BARS]
    start = shown[0][1].started_at
    end = max(attempt.ended_at or log.clock.now() for _, attempt in shown)
    scale = _Scale(start, max((end - start).total_seconds(), 0.001))
    height = _ROW * len(shown) + 30
    yield f'<div class="wide"><svg viewBox="0 0 {_WIDTH} {height}" width="100%" font-size="12" aria-label="Timeline">\n'
    yield from scale.lines(height)
    for place, (task, attempt) in enumerate(shown):
        yield _bar(task, attempt, scale, 24 + _ROW * place, end)
    yield "</svg></div>\n"
    if len(rows) > len(shown):
        yield f'<p class="soft">The first {len(shown)} of {len(rows)} attempts.</p>\n'


class _Scale:
    """From times to places on the drawing."""

    def __init__(self, start: "datetime", seconds: float) -> None:
        self._start = start
        self._seconds = seconds

    def x(self, moment: "datetime") -> float:
        share = (moment - self._start).total_seconds() / self._seconds
        return _LABELS + share * (_WIDTH - _LABELS - 110)

    def lines(self, height: int) -> "Iterator[str]":
        for quarter in range(5):
            x = _LABELS + quarter / 4 * (_WIDTH - _LABELS - 110)
            yield f'<line x1="{x:.1f}" x2="{x:.1f}" y1="18" y2="{height}"/>'
            yield f'<text x="{x:.1f}" y="12" text-anchor="middle">{_span(self._seconds * quarter / 4)}</text>\n'


def _span(seconds: float) -> str:
    if seconds >= 7200:
        return f"{seconds / 3600:.1f} h"
    return f"{seconds / 60:.1f} min" if seconds >= 120 else f"{seconds:.1f} s"


def _bar(task: "Any", attempt: "Any", scale: _Scale, y: int, end: "datetime") -> str:
    outcome = attempt.outcome.value if attempt.outcome else "running"
    begin = scale.x(attempt.started_at)
    width = max(2.0, scale.x(attempt.ended_at or end) - begin)
    label = task.title if len(task.title) <= 44 else task.title[:43] + "…"
    said = f"{task.title}, attempt {attempt.number} by {attempt.worker}: {outcome}"
    return (
        f'<text x="{_LABELS - 8}" y="{y + 12}" text-anchor="end">{escape(label)}</text>'
        f'<rect x="{begin:.1f}" y="{y}" width="{width:.1f}" height="16" rx="2" fill="{_COLOURS.get(outcome, _OTHER)}">'
        f"<title>{escape(said)}</title></rect>"
        f'<text x="{begin + width + 5:.1f}" y="{y + 12}">{escape(attempt.worker[:24])}, {outcome}</text>\n'
    )
