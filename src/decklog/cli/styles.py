"""The styles of words on a terminal, and whether colours are shown."""

import os
from typing import TextIO

from decklog.cli import terminal
from decklog.core import words

PLAIN, LOUD, STRONG, DIM, GOOD, BAD, BUSY = "plain", "loud", "strong", "dim", "good", "bad", "busy"
# Amber is for what needs a person, and for nothing else.
_CODES = {LOUD: "1;33", STRONG: "1", DIM: "2", GOOD: "32", BAD: "31", BUSY: "36"}
_STYLES = {
    words.NEED: LOUD,
    words.BAD: BAD,
    words.WARN: STRONG,
    words.BUSY: BUSY,
    words.HOLD: DIM,
    words.GOOD: GOOD,
    words.DIM: DIM,
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
    return terminal.is_terminal(stream) and are_wanted() and os.environ.get("TERM") != "dumb"


def of_word(word: object) -> str:
    """Return the style of a state, an outcome or a status word."""
    return _STYLES.get(words.TONES.get(str(word), ""), PLAIN)


def painted(text: str, style: str, stream: TextIO | None = None) -> str:
    """Return a text in a style, if colours are shown. It must have no control characters."""
    return coded(text, style) if are_shown(stream) else text


def coded(text: str, style: str) -> str:
    """Return a text with the codes of its style."""
    return f"\x1b[{_CODES[style]}m{text}\x1b[0m" if style in _CODES and text.strip() else text
