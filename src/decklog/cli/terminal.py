"""Terminals: width, colours, and the control characters that must not reach them."""

import os
import sys
import time
from collections.abc import Callable
from typing import TextIO

from decklog.core import display


def is_terminal(stream: TextIO | None = None) -> bool:
    """Return whether a stream, by default stdout, is a terminal."""
    return (stream or sys.stdout).isatty()


def width(otherwise: int = 120) -> int:
    """Return the width of the terminal in characters; `otherwise` for a file or a pipe."""
    said = os.environ.get("COLUMNS", "")
    if said.isdecimal() and int(said) > 0:
        return int(said)
    try:
        return os.get_terminal_size(sys.__stdout__.fileno()).columns or otherwise  # type: ignore[union-attr]
    except (AttributeError, ValueError, OSError):
        return otherwise


def visible(text: str, stream: TextIO | None = None) -> str:
    """Escape control characters if the stream is a terminal: text of an agent must not move the cursor."""
    return written_out(text) if is_terminal(stream) else text


def written_out(text: str) -> str:
    """Escape control characters in any case, as for a pager."""
    return text if text.isascii() and text.isprintable() else text.translate(_escapes())


def say(text: str) -> None:
    """Write a line, or several, for a person."""
    put(visible(text))


def put(text: str) -> None:
    """Write a line, or several, that need no escaping."""
    sys.stdout.write(text + "\n")


def escaped_json(text: str) -> str:
    """Escape control characters that JSON allows; parsers read the same text."""
    if text.isascii():
        return text
    from decklog.core.display import OBEYED

    return text.translate({code: f"\\u{code:04x}" for code in OBEYED if code >= 0x7F})


def _escapes() -> dict[int, str]:
    from decklog.core.display import OBEYED

    return {code: f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" for code in OBEYED}


class ProgressMeter:
    """One line on stderr that is written anew a few times a second."""

    def __init__(self, written: Callable[[int], str] = "{:,}".format) -> None:
        # How an amount is written: a plain number, or bytes.
        self._written = written
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
        counted = self._written(done) if done else "…"
        count = f"{self._written(done)} of {self._written(whole)} ({100 * done // whole} %)" if whole else counted
        speed = f"  {self._written(round(rate))}/s" if rate >= 1 else ""
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
# Amber is for what needs a person, and for nothing else.
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
# A process is one call, so this is set once.
_is_wanted = True


def use_none() -> None:
    """Colour nothing from here on."""
    global _is_wanted
    _is_wanted = False


def are_wanted() -> bool:
    """Return whether colours are wanted: not with `--no-color`, nor if NO_COLOR is set."""
    return _is_wanted and not os.environ.get("NO_COLOR")


def are_shown(stream: TextIO | None = None) -> bool:
    """Return whether a stream gets colours: never a pipe or a file."""
    return is_terminal(stream) and are_wanted() and os.environ.get("TERM") != "dumb"


def of_word(word: object) -> str:
    """Return the style of a state, an outcome or a status word."""
    return _STYLES.get(display.TONES.get(str(word), ""), PLAIN)


def painted(text: str, style: str, stream: TextIO | None = None) -> str:
    """Return a text in a style, if colours are shown. It must have no control characters."""
    return coded(text, style) if are_shown(stream) else text


def coded(text: str, style: str) -> str:
    """Return a text with the codes of its style."""
    return f"\x1b[{_CODES[style]}m{text}\x1b[0m" if style in _CODES and text.strip() else text
