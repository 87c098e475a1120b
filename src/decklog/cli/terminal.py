"""What is special about a terminal: it has a width, and it obeys some of the characters it is sent."""

import os
import sys
from typing import TextIO


def is_terminal(stream: TextIO | None = None) -> bool:
    """Return whether a person looks at what is written there, stdout unless another stream is named."""
    return (stream or sys.stdout).isatty()


def width(otherwise: int = 120) -> int:
    """Return the width of the terminal in characters; of a file or pipe, the width that is asked for."""
    said = os.environ.get("COLUMNS", "")
    if said.isdecimal() and int(said) > 0:
        return int(said)
    try:
        # Not by `shutil`, which tells the same and imports every way to compress a file.
        return os.get_terminal_size(sys.__stdout__.fileno()).columns or otherwise  # type: ignore[union-attr]
    except (AttributeError, ValueError, OSError):
        return otherwise


def visible(text: str, stream: TextIO | None = None) -> str:
    """Write out, on a terminal, the characters it would obey: what an agent wrote must not move the reader's cursor."""
    return written_out(text) if is_terminal(stream) else text


def written_out(text: str) -> str:
    """Write out, wherever it goes, the characters that a terminal would obey: a pager hands them on."""
    return text if text.isascii() and text.isprintable() else text.translate(_escapes())


def say(text: str) -> None:
    """Write a line, or several, for a person."""
    put(visible(text))


def put(text: str) -> None:
    """Write a line, or several, in which nothing is left that others wrote and a terminal would obey."""
    sys.stdout.write(text + "\n")


def escaped_json(text: str) -> str:
    """Escape what JSON leaves as it is though a terminal may obey it; to a reader of JSON it is the same text."""
    if text.isascii():
        return text
    from decklog.core.characters import OBEYED

    return text.translate({code: f"\\u{code:04x}" for code in OBEYED if code >= 0x7F})


def _escapes() -> dict[int, str]:
    # Most of what is written has none of them, and most calls are short.
    from decklog.core.characters import OBEYED

    return {code: f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" for code in OBEYED}
