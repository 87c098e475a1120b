"""Control characters and invisible characters, and how to show them."""

# Control characters except tab and newline, and those that change the direction of writing.
_COMMANDS = (*range(0x09), *range(0x0B, 0x20), *range(0x7F, 0xA0), 0x061C, *range(0x200E, 0x2010), *range(0x2028, 0x202F))
OBEYED = (*_COMMANDS, *range(0x2066, 0x206A))
# Zero-width blanks, joiners and non-joiners, tags and variation selectors.
UNSEEN = (
    *(0x00AD, 0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x180E, *range(0x200B, 0x200E), *range(0x2060, 0x2065), 0x3164, 0xFEFF),
    *(0xFFA0, *range(0xE0000, 0xE0080), *range(0xE0100, 0xE01F0)),
)
_WRITTEN_OUT = {code: f"⟨U+{code:04X}⟩" for code in (*OBEYED, *UNSEEN)}


def revealed(text: str, *, tabs: bool = False) -> str:
    """Replace control and invisible characters by their code points, so that people decide on the text that they see."""
    if text.isascii() and text.isprintable():
        return text
    return text.replace("\t", "    " if tabs else " ").translate(_WRITTEN_OUT)
