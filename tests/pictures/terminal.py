"""A terminal's screen as a picture: what a command printed, in SVG, with nothing loaded from elsewhere."""

import re
from html import escape

_CELL, _LINE, _EDGE, _BAR = 8.4, 19, 18, 34
_COLOURS = {"good": "#7ee2a8", "bad": "#ff9b9b", "warn": "#f5c97a", "soft": "#8b97a8", "": "#dfe6ef"}
# Words that a person looks for, and how they are drawn.
_TONES = (
    ("good", re.compile(r"\b(done|granted|met|ok|Whole|completed|Verified)\b|█+")),
    ("bad", re.compile(r"\b(failed|blocked|denied|stop)\b|\bx{2,}|#{2,}")),
    ("warn", re.compile(r"\b(expired|warn|running|open)\b|░+")),
    ("soft", re.compile(r"[│─┼]+")),
)


def picture(command: str, printed: str) -> str:
    """Draw a command and what it printed."""
    lines = [f"$ {command}", *printed.rstrip("\n").split("\n")]
    width = round(max(map(len, lines)) * _CELL + 2 * _EDGE)
    height = _BAR + len(lines) * _LINE + _EDGE
    drawn = "\n".join(_drawn(line, _BAR + (number + 1) * _LINE - 4) for number, line in enumerate(lines) if line.strip())
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img"\n'
        f' aria-label="{escape(command)}" font-family="ui-monospace, Menlo, Consolas, monospace" font-size="14">\n'
        f'<rect width="{width}" height="{height}" rx="8" fill="#171c24"/>\n'
        + "".join(f'<circle cx="{20 + 18 * place}" cy="17" r="5.5" fill="#3a4453"/>' for place in range(3))
        + f"\n{drawn}\n</svg>\n"
    )


def _drawn(line: str, y: int) -> str:
    """Draw one line, piece by piece: each at its own column, so that no font can move it."""
    return "".join(
        f'<text x="{_EDGE + start * _CELL:.1f}" y="{y}" textLength="{len(text) * _CELL:.1f}" lengthAdjust="spacingAndGlyphs"'
        f' fill="{_COLOURS[tone]}" xml:space="preserve">{escape(text)}</text>'
        for start, text, tone in _pieces(line)
        if text.strip()
    )


def _pieces(line: str) -> list[tuple[int, str, str]]:
    """Cut a line where its colour changes."""
    tones = [""] * len(line)
    for tone, pattern in _TONES:
        for found in pattern.finditer(line) if not line.startswith("$ ") else ():
            tones[found.start() : found.end()] = [tone] * (found.end() - found.start())
    cuts = [place for place in range(len(line)) if place == 0 or tones[place] != tones[place - 1]]
    return [(start, line[start:end], tones[start]) for start, end in zip(cuts, [*cuts[1:], len(line)], strict=True)]
