"""Characters that do more than stand there: those that a terminal obeys, and those that nobody sees."""

# Control characters but tab and newline, and those that turn the direction of writing around.
_COMMANDS = (*range(0x09), *range(0x0B, 0x20), *range(0x7F, 0xA0), 0x061C, *range(0x200E, 0x2010), *range(0x2028, 0x202F))
OBEYED = (*_COMMANDS, *range(0x2066, 0x206A))
# What is there and not seen: blanks of no width, marks that join or part, and letters that only machines read.
UNSEEN = (
    *(0x00AD, 0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x180E, *range(0x200B, 0x200E), *range(0x2060, 0x2065), 0x3164, 0xFEFF),
    *(0xFFA0, *range(0xE0000, 0xE0080), *range(0xE0100, 0xE01F0)),
)
_WRITTEN_OUT = {code: f"⟨U+{code:04X}⟩" for code in (*OBEYED, *UNSEEN)}


def revealed(text: str, *, tabs: bool = False) -> str:
    """Write out, wherever it goes, what a terminal would obey and what nobody sees: what is decided on is what is read."""
    if text.isascii() and text.isprintable():
        return text
    return text.replace("\t", "    " if tabs else " ").translate(_WRITTEN_OUT)
