"""Terminals: their width, and the control characters that must not reach them."""

import os
import sys
from typing import TextIO


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
    from decklog.core.characters import OBEYED

    return text.translate({code: f"\\u{code:04x}" for code in OBEYED if code >= 0x7F})


def _escapes() -> dict[int, str]:
    from decklog.core.characters import OBEYED

    return {code: f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" for code in OBEYED}
