"""The tasks of a run: attempts as bars over time, and a board."""

from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from decklog.cli import terminal
from decklog.cli.lines import Line, StyledText, fit
from decklog.cli.terminal import BUSY, DIM, PLAIN, STRONG, status_style
from decklog.core.display import one_line, span, took

if TYPE_CHECKING:
    from decklog import BoardCard, BoardColumn
    from decklog.stores.runs.snapshot import RunSnapshot
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


def timeline_lines(snapshot: "RunSnapshot", now: datetime, width: int | None = None) -> list[Line]:
    """Draw every attempt of a run as a bar over time, with a time scale below."""
    goal = " ".join(getattr(snapshot.run, "goal", snapshot.run_id).split())
    if not snapshot.attempts:
        return [[StyledText(goal, STRONG)], [StyledText("(no task was worked on yet)", DIM)]]
    titles = {task.id: _short_label(task.title) for task in snapshot.records.get("tasks", [])}  # type: ignore[attr-defined]
    start = min(attempt.started_at for attempt in snapshot.attempts)
    end = max(attempt.ended_at or now for attempt in snapshot.attempts)
    seconds = max((end - start).total_seconds(), 0.001)
    label = max(len(titles[attempt.task_id]) for attempt in snapshot.attempts)
    worker = max(len(_short_label(attempt.worker)) for attempt in snapshot.attempts)
    size = width or max(20, min(60, terminal.width(100) - label - worker - _AROUND))
    lines: list[Line] = [[StyledText(goal, STRONG), StyledText(f"  ({took(timedelta(seconds=seconds))})", DIM)]]
    for attempt in snapshot.attempts:
        who = f"{titles[attempt.task_id]:<{label}}  {_short_label(attempt.worker):<{worker}}  "
        outcome = str(attempt.outcome or "running")
        drawn, style = _attempt_bar(attempt, start, seconds, size), status_style(outcome) if attempt.outcome else BUSY
        lines.append(
            [
                StyledText(who),
                StyledText("|", DIM),
                StyledText(drawn, style),
                StyledText("|", DIM),
                StyledText(f"  {outcome}", style),
            ]
        )
    return [*lines, [StyledText(" " * (label + worker + 5) + _scale_line(start, end, size), DIM)]]


def _short_label(text: str) -> str:
    """Shorten a label to one line."""
    shown = terminal.escape_for_terminal(one_line(text))
    return fit(shown, min(len(shown), _LONGEST))


def _scale_line(start: datetime, end: datetime, size: int) -> str:
    """Draw the times of both ends of the bars, with the days if they differ."""
    form = "%H:%M" if start.date() == end.date() and (end - start).total_seconds() >= 120 else "%H:%M:%S"
    form = form if start.date() == end.date() else "%m-%d %H:%M"
    first, last = f"{start:{form}}", f"{end:{form}}"
    return f"{first}{last:>{max(size - len(first), len(last) + 1)}} UTC"


def _attempt_bar(attempt: "Attempt", start: datetime, span: float, width: int) -> str:
    begin = int((attempt.started_at - start).total_seconds() / span * (width - 1))
    ended = (attempt.ended_at - start).total_seconds() / span if attempt.ended_at else 1.0
    length = max(1, round(ended * (width - 1)) - begin + 1)
    mark = _MARKS.get(attempt.outcome or "", "▒")
    return (" " * begin + mark * length)[:width].ljust(width)


_COLUMN_TITLES = {"to_do": "To do", "doing": "Doing", "blocked_or_paused": "Blocked or paused", "over": "Done"}
_USUAL_PRIORITY = 50


def board_lines(columns: "list[BoardColumn]", size: int) -> list[Line]:
    """Draw the columns of the board side by side."""
    cards = [_column_lines(column, size) for column in columns]
    lines: list[Line] = [
        _join_cells([[StyledText(fit(f"{_COLUMN_TITLES[column.name]} ({column.count:,})", size), STRONG)] for column in columns])
    ]
    lines.append([StyledText("─┼─".join("─" * size for _ in columns), DIM)])
    for number in range(max(map(len, cards), default=0)):
        lines.append(_join_cells([column[number] if number < len(column) else [StyledText(" " * size)] for column in cards]))
    return lines


def _join_cells(cells: list[Line]) -> Line:
    return [piece for place, cell in enumerate(cells) for piece in ([StyledText(" │ ", DIM)] if place else []) + cell]


def _column_lines(column: "BoardColumn", size: int) -> list[Line]:
    lines = [line for card in column.cards for line in _card_lines(card, size)]
    left_out = column.count - len(column.cards)
    return [*lines, [StyledText(fit(f"and {left_out:,} more: --limit", size), DIM)]] if left_out > 0 else lines


def _card_lines(card: "BoardCard", size: int) -> list[Line]:
    """Return the lines of a task: its status, its title and details."""
    style = status_style(card.status)
    title = StyledText(fit(card.title, size - 2), style if card.status.value == "needs attention" else PLAIN)
    head = [StyledText(f"{card.status.shape} ", style), title]
    details = ", ".join(_details(card))
    return [head, [StyledText("  " + fit(details, size - 2), DIM)]] if details else [head]


def _details(card: "BoardCard") -> list[str]:
    if card.worker:
        left = card.lease_seconds_left or 0
        lease = f"{span(timedelta(seconds=left))} left" if left > 0 else "lease ended"
        again = [f"attempt {card.attempts} of {card.max_attempts}"] if card.attempts > 1 else []
        return [card.worker, *([card.stage] if card.stage else []), lease, *again]
    if card.state != "pending":
        return [card.why] if card.why else []
    role = [card.role] if card.role and not card.assigned_to else []
    urgency = [f"priority {card.priority}"] if card.priority != _USUAL_PRIORITY else []
    return [*([card.why] if card.why else []), *role, *urgency]
