"""Styled lines of text, cut to a width, for stdout and for curses."""

import sys
from typing import NamedTuple
from unicodedata import category, east_asian_width

from decklog.cli.terminal import PLAIN, add_style_codes, shows_colours
from decklog.core.display import one_line, revealed


class StyledText(NamedTuple):
    """A text in one style."""

    text: str
    style: str = PLAIN


Line = list[StyledText]


def render_line(line: Line, *, colour: bool) -> str:
    """Return a line as text, with the codes of its styles if `colour` is set."""
    if not colour:
        return "".join(piece.text for piece in line).rstrip()
    return "".join(add_style_codes(piece.text, piece.style) for piece in line).rstrip()


def print_lines(lines: list[Line]) -> None:
    """Write lines to stdout."""
    colour = shows_colours()
    sys.stdout.write("".join(render_line(line, colour=colour) + "\n" for line in lines))


def count_columns(text: str) -> int:
    """Count the columns of a text on a terminal."""
    if text.isascii():
        return len(text)
    return sum(_width(character) for character in text)


def _width(character: str) -> int:
    if category(character) in ("Mn", "Me"):
        return 0
    return 2 if east_asian_width(character) in "WF" else 1


def fit(text: str, columns: int, *, right: bool = False) -> str:
    """Return a text that fills the columns exactly: cut with `…`, or padded with blanks."""
    clean = revealed(one_line(text))
    if count_columns(clean) > columns:
        clean = _cut(clean, columns)
    blanks = " " * (columns - count_columns(clean))
    return blanks + clean if right else clean + blanks


def clip_line(line: Line, columns: int) -> Line:
    """Return a line cut to the columns."""
    kept: Line = []
    for piece in line:
        left = columns - sum(count_columns(one.text) for one in kept)
        if count_columns(piece.text) <= left:
            kept.append(piece)
        elif left > 0:
            kept.append(StyledText(_cut(piece.text, left), piece.style))
    return kept


def _cut(text: str, columns: int) -> str:
    kept, used = "", 0
    for character in text:
        if used + _width(character) > columns - 1:
            break
        kept += character
        used += _width(character)
    return kept + "…" if columns > 0 else ""


def wrap_text(text: str, columns: int) -> list[str]:
    """Break a text into lines at blanks; break words that are too long."""
    lines, current = [], ""
    for word in revealed(text).split():
        while count_columns(word) > columns:
            head = fit(word, columns)[: max(1, columns - 1)]
            if current:
                lines.append(current)
                current = ""
            lines.append(head)
            word = word[len(head) :]
        if current and count_columns(current) + 1 + count_columns(word) > columns:
            lines.append(current)
            current = word
        else:
            current = f"{current} {word}" if current else word
    return [*lines, current] if current or not lines else lines
