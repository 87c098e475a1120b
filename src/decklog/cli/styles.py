"""The styles of words on a terminal, and whether colours are shown."""

import os
from typing import TextIO

from decklog.cli import terminal

PLAIN, LOUD, STRONG, DIM, GOOD, BAD, BUSY = "plain", "loud", "strong", "dim", "good", "bad", "busy"
# Amber is for what needs a person, and for nothing else.
_CODES = {LOUD: "1;33", STRONG: "1", DIM: "2", GOOD: "32", BAD: "31", BUSY: "36"}
# States, outcomes, verdicts and status words.
_WORDS = {
    LOUD: ("needs you", "open", "stop"),
    STRONG: ("quiet", "warn", "critical"),
    DIM: ("idle", "held", "paused", "waiting", "pending", "cancelled", "abandoned", "released", "superseded", "withdrawn"),
    GOOD: ("done", "completed", "granted", "met", "ok", "passed", "succeeded", "answered", "sent"),
    BAD: ("failed", "blocked", "denied", "expired", "stale", "unknown", "lost"),
    BUSY: ("running", "active", "planning"),
}
_STYLES = {word: style for style, words in _WORDS.items() for word in words}
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
    return _STYLES.get(str(word), PLAIN)


def painted(text: str, style: str, stream: TextIO | None = None) -> str:
    """Return a text in a style, if colours are shown. It must have no control characters."""
    return coded(text, style) if are_shown(stream) else text


def coded(text: str, style: str) -> str:
    """Return a text with the codes of its style."""
    return f"\x1b[{_CODES[style]}m{text}\x1b[0m" if style in _CODES and text.strip() else text
