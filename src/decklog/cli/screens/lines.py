"""Lines of a screen: pieces of text with a style each, cut to a width, for stdout and for curses."""

import sys
from datetime import timedelta
from typing import TYPE_CHECKING, NamedTuple
from unicodedata import category, east_asian_width

from decklog.cli.terminal import DIM, PLAIN, STRONG, are_shown, coded, of_word
from decklog.core.characters import revealed
from decklog.core.figures import span

if TYPE_CHECKING:
    from decklog import BoardCard, BoardColumn


class StyledText(NamedTuple):
    """A text in one style."""

    text: str
    style: str = PLAIN


Line = list[StyledText]


def written(line: Line, *, colour: bool) -> str:
    """Write a line, with the codes of its styles where a terminal shows them."""
    if not colour:
        return "".join(piece.text for piece in line).rstrip()
    return "".join(coded(piece.text, piece.style) for piece in line).rstrip()


def print_lines(lines: list[Line]) -> None:
    """Write lines to stdout."""
    colour = are_shown()
    sys.stdout.write("".join(written(line, colour=colour) + "\n" for line in lines))


def cells(text: str) -> int:
    """Count the columns of a text on a terminal."""
    if text.isascii():
        return len(text)
    return sum(_width(character) for character in text)


def _width(character: str) -> int:
    if category(character) in ("Mn", "Me"):
        return 0
    return 2 if east_asian_width(character) in "WF" else 1


def fit(text: str, places: int, *, right: bool = False) -> str:
    """Return a text with a number of columns: cut with a mark, or padded."""
    clean = revealed(" ".join(text.split()))
    if cells(clean) > places:
        clean = _cut(clean, places)
    blanks = " " * (places - cells(clean))
    return blanks + clean if right else clean + blanks


def clipped(line: Line, places: int) -> Line:
    """Cut a line where the screen ends."""
    kept: Line = []
    for piece in line:
        left = places - sum(cells(one.text) for one in kept)
        if cells(piece.text) <= left:
            kept.append(piece)
        elif left > 0:
            kept.append(StyledText(_cut(piece.text, left), piece.style))
    return kept


def _cut(text: str, places: int) -> str:
    kept, used = "", 0
    for character in text:
        if used + _width(character) > places - 1:
            break
        kept += character
        used += _width(character)
    return kept + "…" if places > 0 else ""


def wrapped(text: str, places: int) -> list[str]:
    """Break a text into lines at its blanks; a word that is too long is broken too."""
    lines, current = [], ""
    for word in revealed(text).split():
        while cells(word) > places:
            head = fit(word, places)[: max(1, places - 1)]
            if current:
                lines.append(current)
                current = ""
            lines.append(head)
            word = word[len(head) :]
        if current and cells(current) + 1 + cells(word) > places:
            lines.append(current)
            current = word
        else:
            current = f"{current} {word}" if current else word
    return [*lines, current] if current or not lines else lines


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
