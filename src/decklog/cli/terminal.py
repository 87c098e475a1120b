"""What is special about a terminal: it has a width, and it obeys some of the characters it is sent."""

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TextIO

# Control characters but tab and newline, and those that turn the direction of writing around.
_COMMANDS = (*range(0x09), *range(0x0B, 0x20), *range(0x7F, 0xA0), 0x061C, *range(0x200E, 0x2010), *range(0x2028, 0x202F))
_OBEYED = (*_COMMANDS, *range(0x2066, 0x206A))


def is_terminal(stream: "TextIO | None" = None) -> bool:
    """Tell whether a person looks at what is written there, stdout unless another stream is named."""
    return (stream or sys.stdout).isatty()


def width(otherwise: int = 120) -> int:
    """Give the width of the terminal in characters; of a file or pipe, the width that is asked for."""
    import shutil

    return shutil.get_terminal_size((otherwise, 40)).columns


def visible(text: str, stream: "TextIO | None" = None) -> str:
    """Write out, on a terminal, the characters it would obey: what an agent wrote must not move the reader's cursor."""
    if (text.isascii() and text.isprintable()) or not is_terminal(stream):
        return text
    return text.translate(_escapes())


# What is there and not seen: blanks of no width, and marks that join or part.
_UNSEEN = (0x00AD, *range(0x200B, 0x200E), *range(0x2060, 0x2065), 0xFEFF)


def revealed(text: str, *, tabs: bool = False) -> str:
    """Write out, wherever it goes, what a terminal would obey and what nobody sees: what is decided on is what is read."""
    if text.isascii() and text.isprintable():
        return text
    hidden = {code: f"⟨U+{code:04X}⟩" for code in (*_OBEYED, *_UNSEEN)}
    return text.replace("\t", "    " if tabs else " ").translate(hidden)


def say(text: str) -> None:
    """Write a line, or several, for a person."""
    sys.stdout.write(visible(text) + "\n")


def escaped_json(text: str) -> str:
    """Escape what JSON leaves as it is though a terminal may obey it; to a reader of JSON it is the same text."""
    if text.isascii():
        return text
    return text.translate({code: f"\\u{code:04x}" for code in _OBEYED if code >= 0x7F})


def _escapes() -> dict[int, str]:
    return {code: f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" for code in _OBEYED}
