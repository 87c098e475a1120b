"""Lines of a screen: pieces of text with a style each, cut to a width, for stdout and for curses."""

import sys
from typing import NamedTuple
from unicodedata import category, east_asian_width

from decklog.cli.terminal import PLAIN, are_shown, coded
from decklog.core.display import one_line, revealed


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
    clean = revealed(one_line(text))
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
