"""A run's tasks as a board: a card each, in columns."""

from datetime import timedelta
from typing import TYPE_CHECKING

from decklog.cli.screens.lines import Line, StyledText, fit
from decklog.cli.styles import DIM, PLAIN, STRONG, of_word
from decklog.core.figures import span

if TYPE_CHECKING:
    from decklog import BoardCard, BoardColumn

_NAMES = {"to_do": "To do", "doing": "Doing", "blocked_or_paused": "Blocked or paused", "over": "Done"}
_USUAL_PRIORITY = 50


def draw(columns: "list[BoardColumn]", size: int) -> list[Line]:
    """Draw columns of a width side by side."""
    cards = [_cards(column, size) for column in columns]
    lines: list[Line] = [
        _row([[StyledText(fit(f"{_NAMES[column.name]} ({column.count:,})", size), STRONG)] for column in columns])
    ]
    lines.append([StyledText("─┼─".join("─" * size for _ in columns), DIM)])
    for number in range(max(map(len, cards), default=0)):
        lines.append(_row([column[number] if number < len(column) else [StyledText(" " * size)] for column in cards]))
    return lines


def _row(cells: list[Line]) -> Line:
    return [piece for place, cell in enumerate(cells) for piece in ([StyledText(" │ ", DIM)] if place else []) + cell]


def _cards(column: "BoardColumn", size: int) -> list[Line]:
    lines = [line for card in column.cards for line in _card(card, size)]
    left_out = column.count - len(column.cards)
    return [*lines, [StyledText(fit(f"and {left_out:,} more: --limit", size), DIM)]] if left_out > 0 else lines


def _card(card: "BoardCard", size: int) -> list[Line]:
    """Return the lines of a task: its status, its title and details."""
    style = of_word(card.status)
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
