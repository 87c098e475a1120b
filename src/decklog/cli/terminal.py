"""Terminal output: width, colours, progress, and escaping of control characters."""

import os
import sys
import time
from collections.abc import Callable
from typing import TextIO

from decklog.core import display


def is_terminal(stream: TextIO | None = None) -> bool:
    """Return whether a stream, by default stdout, is a terminal."""
    return (stream or sys.stdout).isatty()


def width(default: int = 120) -> int:
    """Return the width of the terminal in columns; `default` for a file or a pipe."""
    columns = os.environ.get("COLUMNS", "")
    if columns.isdecimal() and int(columns) > 0:
        return int(columns)
    try:
        return os.get_terminal_size(sys.__stdout__.fileno()).columns or default  # type: ignore[union-attr]
    except (AttributeError, ValueError, OSError):
        return default


def escape_for_terminal(text: str, stream: TextIO | None = None) -> str:
    """Escape control characters if the stream is a terminal: an agent's text must not move the cursor."""
    return escape_controls(text) if is_terminal(stream) else text


def escape_controls(text: str) -> str:
    """Escape control characters in a text."""
    return text if text.isascii() and text.isprintable() else text.translate(_escape_table())


def print_text(text: str) -> None:
    """Print a text, with control characters escaped on a terminal."""
    print_escaped(escape_for_terminal(text))


def print_escaped(text: str) -> None:
    """Print a text that is already escaped."""
    sys.stdout.write(text + "\n")


def escape_json(text: str) -> str:
    """Escape control characters that JSON allows; parsers read it as the same text."""
    if text.isascii():
        return text
    from decklog.core.display import OBEYED

    return text.translate({code: f"\\u{code:04x}" for code in OBEYED if code >= 0x7F})


def _escape_table() -> dict[int, str]:
    from decklog.core.display import OBEYED

    return {code: f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" for code in OBEYED}


class ProgressMeter:
    """A progress line on stderr, redrawn a few times a second."""

    def __init__(self, format_amount: Callable[[int], str] = "{:,}".format) -> None:
        self._format_amount = format_amount
        self._shown = sys.stderr.isatty()
        self._begin = self._last = time.monotonic()
        self._what = ""
        self._drawn = False

    def __call__(self, what: str, done: int, whole: int) -> None:
        now = time.monotonic()
        if what != self._what:
            self._what, self._since, self._first = what, now, done
        if not self._shown or now - self._begin < 1 or now - self._last < 0.2:
            return
        self._last = now
        self._draw(what, done, whole, (done - self._first) / max(now - self._since, 0.001))

    def _draw(self, what: str, done: int, whole: int, rate: float) -> None:
        amount = self._format_amount(done) if done else "…"
        count = f"{self._format_amount(done)} of {self._format_amount(whole)} ({100 * done // whole} %)" if whole else amount
        speed = f"  {self._format_amount(round(rate))}/s" if rate >= 1 else ""
        left = f"  {_duration((whole - done) / rate)} left" if whole and rate > 0 else ""
        sys.stderr.write(f"\r\x1b[K{what}: {count}{speed}{left}")
        sys.stderr.flush()
        self._drawn = True

    def __enter__(self) -> "ProgressMeter":
        return self

    def __exit__(self, *_: object) -> None:
        if self._drawn:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s" if minutes else f"{rest} s"


PLAIN, LOUD, STRONG, DIM, GOOD, BAD, BUSY = "plain", "loud", "strong", "dim", "good", "bad", "busy"
# Amber only marks what needs a person.
_CODES = {LOUD: "1;33", STRONG: "1", DIM: "2", GOOD: "32", BAD: "31", BUSY: "36"}
_STYLES = {
    display.NEED: LOUD,
    display.BAD: BAD,
    display.WARN: STRONG,
    display.BUSY: BUSY,
    display.HOLD: DIM,
    display.GOOD: GOOD,
    display.DIM: DIM,
}
# A process runs one command, so this is set once.
_has_colours = True


def disable_colours() -> None:
    """Turn colours off."""
    global _has_colours
    _has_colours = False


def are_colours_wanted() -> bool:
    """Return whether colours are allowed: not with `--no-color` or NO_COLOR."""
    return _has_colours and not os.environ.get("NO_COLOR")


def shows_colours(stream: TextIO | None = None) -> bool:
    """Return whether a stream shows colours; a pipe or a file never does."""
    return is_terminal(stream) and are_colours_wanted() and os.environ.get("TERM") != "dumb"


def status_style(word: object) -> str:
    """Return the style of a state, an outcome or a status."""
    return _STYLES.get(display.TONES.get(str(word), ""), PLAIN)


def style_text(text: str, style: str, stream: TextIO | None = None) -> str:
    """Return a text in a style, if the stream shows colours. The text must be escaped already."""
    return add_style_codes(text, style) if shows_colours(stream) else text


def add_style_codes(text: str, style: str) -> str:
    """Return a text with the escape codes of a style."""
    return f"\x1b[{_CODES[style]}m{text}\x1b[0m" if style in _CODES and text.strip() else text
