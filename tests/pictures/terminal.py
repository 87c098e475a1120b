"""A terminal's screen as a picture: what a command showed, in SVG, with nothing loaded from elsewhere."""

from collections.abc import Iterator, Sequence
from html import escape
from itertools import groupby
from typing import Any

import pyte

_CELL, LINE, _EDGE, _BAR = 8.4, 19, 18, 34
_PLAIN, _DIM = "#dfe6ef", "#8b97a8"
_COLOURS = {"green": "#7ee2a8", "red": "#ff9b9b", "brown": "#f5c97a", "cyan": "#7fd4e8"}
# The screen knows no dim text; italics stand for it, which nothing of ours is written in.
pyte.graphics.TEXT[2] = "+italics"


def picture(command: str, cells: Sequence[Sequence[Any]], *, is_whole: bool = False) -> str:
    """Draw a command and the screen that it left; the whole of it where the program had it to itself."""
    rows = list(cells) if is_whole else filled(cells)
    width = round(max(_width(rows), len(command) + 2) * _CELL + 2 * _EDGE)
    height = _BAR + (len(rows) + 1) * LINE + _EDGE
    drawn = drawn_rows(rows, _BAR + LINE)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img"\n'
        f' aria-label="{escape(command)}" font-family="ui-monospace, Menlo, Consolas, monospace" font-size="14">\n'
        f'<rect width="{width}" height="{height}" rx="8" fill="#171c24"/>\n'
        + "".join(f'<circle cx="{20 + 18 * place}" cy="17" r="5.5" fill="#3a4453"/>' for place in range(3))
        + f"\n{text_at(0, f'$ {command}', _BAR + LINE - 4, _DIM)}\n{drawn}\n</svg>\n"
    )


def drawn_rows(rows: Sequence[Sequence[Any]], top: int) -> str:
    """Draw lines of a screen below a place."""
    return "\n".join(text for number, row in enumerate(rows) if (text := _drawn(row, top + (number + 1) * LINE - 4)))


def filled(cells: Sequence[Sequence[Any]]) -> list[Sequence[Any]]:
    """Leave the empty lines at the end out."""
    last = max((number for number, row in enumerate(cells) if any(cell.data.strip() for cell in row)), default=0)
    return list(cells[: last + 1])


def _width(rows: Sequence[Sequence[Any]]) -> int:
    return max(number + 1 for row in rows for number, cell in enumerate(row) if number == 0 or cell.data.strip())


def _drawn(row: Sequence[Any], y: int) -> str:
    """Draw one line, piece by piece: each at its own column, so that no font can move it."""
    return "".join(_pieces(row, y))


def _pieces(row: Sequence[Any], y: int) -> Iterator[str]:
    start = 0
    for (colour, bold, reverse), cells in groupby(row, key=lambda cell: (_colour(cell), cell.bold, cell.reverse)):
        text = "".join(cell.data for cell in cells)
        if reverse:
            x = _EDGE + start * _CELL
            yield f'<rect x="{x:.1f}" y="{y - 14}" width="{len(text) * _CELL:.1f}" height="{LINE}" fill="#2b3545"/>'
        if text.strip():
            lead = len(text) - len(text.lstrip())
            yield text_at(start + lead, text.strip(), y, colour, bold=bold)
        start += len(text)


def _colour(cell: Any) -> str:
    if cell.fg in _COLOURS:
        return _COLOURS[cell.fg]
    return _DIM if cell.italics else _PLAIN


def text_at(column: int, text: str, y: int, colour: str = _DIM, *, bold: bool = False) -> str:
    """Draw a text that begins in a column."""
    weight = ' font-weight="600"' if bold else ""
    return (
        f'<text x="{_EDGE + column * _CELL:.1f}" y="{y}" textLength="{len(text) * _CELL:.1f}" lengthAdjust="spacingAndGlyphs"'
        f' fill="{colour}"{weight} xml:space="preserve">{escape(text)}</text>'
    )
