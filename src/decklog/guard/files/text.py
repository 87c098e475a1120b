"""Turn a file's bytes into text and back, byte for byte, and replace one exact passage of a text.

Decoding never fails and never loses anything: a byte-order mark decides; else UTF-8 if the whole file is
valid UTF-8; else Latin-1, in which every byte is a character. Line endings are left as they are.
"""

import codecs
import re
from dataclasses import dataclass

from decklog.core.errors import Invalid

MOST_LINES_SHOWN = 10
MARKS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))


@dataclass(frozen=True)
class TextFormat:
    """Encoding of a text, and its byte-order mark, if any."""

    encoding: str = "utf-8"
    mark: bytes = b""

    def encode(self, text: str) -> bytes:
        """Encode a text in this format; raise an error for characters that the encoding lacks."""
        try:
            return self.mark + text.encode(self.encoding)
        except UnicodeEncodeError as error:
            raise Invalid(
                f"{text[error.start : error.end]!a} can't be written in {self.encoding}",
                hint="Use characters the file's encoding has, or write the whole file anew in UTF-8.",
                encoding=self.encoding,
            ) from None


def decode(data: bytes) -> tuple[str, TextFormat]:
    """Decode bytes to a text, with the format that encodes it to the same bytes."""
    for mark, encoding in MARKS:
        if data.startswith(mark):
            text = _exact(data[len(mark) :], encoding)
            if text is not None:
                return text, TextFormat(encoding, mark)
    text = _exact(data, "utf-8")
    return (text, TextFormat()) if text is not None else (data.decode("latin-1"), TextFormat("latin-1"))


def _exact(data: bytes, encoding: str) -> str | None:
    try:
        return data.decode(encoding)
    except UnicodeDecodeError:
        return None


def lines_of(text: str) -> list[str]:
    """Split a text into lines with their endings; only a line feed ends a line, as in git."""
    lines = text.split("\n")
    last = lines.pop()
    return [f"{line}\n" for line in lines] + ([last] if last else [])


def is_crlf(text: str) -> bool:
    """Return whether most lines of a text end in carriage return and line feed."""
    pairs = text.count("\r\n")
    return pairs > 0 and pairs * 2 >= text.count("\n")


def with_crlf(text: str) -> str:
    """Return a text with its bare line feeds replaced by carriage return and line feed."""
    return text.replace("\r\n", "\n").replace("\n", "\r\n")


def replace(text: str, old: str, new: str, *, replace_all: bool = False) -> tuple[str, int]:
    """Replace `old`, which must occur once unless `replace_all`; return the new text and the number of replacements.

    In a text with CRLF line endings, a bare line feed in `old` matches CRLF, and one in `new`
    becomes CRLF.
    """
    if not old:
        raise Invalid("old_string is empty", hint="Give the passage to replace, or use write_file.")
    if old == new:
        raise Invalid("old_string and new_string are the same", hint="Leave the edit out: nothing would change.")
    spans = _exact_spans(text, old)
    by_ending = not spans and "\n" in old
    if by_ending:
        pattern = r"\r?\n".join(re.escape(line) for line in old.replace("\r\n", "\n").split("\n"))
        spans = [found.span() for found in re.finditer(pattern, text)]
    if not spans:
        raise Invalid("old_string not found", hint="Copy it exactly from read_file, with its indentation.")
    if len(spans) > 1 and not replace_all:
        raise _not_unique(text, spans)
    found = text[slice(*spans[0])]
    # A passage with bare line feeds in the file keeps them, even among CRLF lines.
    if "\r\n" in found if by_ending else "\n" not in old and is_crlf(text):
        new = with_crlf(new)
    elif by_ending:
        new = new.replace("\r\n", "\n")
    pieces: list[str] = []
    at = count = 0
    for start, end in spans:
        # Of overlapping matches, only the first is replaced.
        if start >= at:
            pieces += [text[at:start], new]
            at, count = end, count + 1
    return "".join([*pieces, text[at:]]), count


def _exact_spans(text: str, old: str) -> list[tuple[int, int]]:
    # Count overlapping matches too: they make the passage ambiguous.
    spans: list[tuple[int, int]] = []
    at = text.find(old)
    while at >= 0:
        if not _is_inside_line_ending(text, at) and not _is_inside_line_ending(text, at + len(old)):
            spans.append((at, at + len(old)))
        at = text.find(old, at + 1)
    return spans


def _is_inside_line_ending(text: str, at: int) -> bool:
    return 0 < at < len(text) and text[at - 1 : at + 1] == "\r\n"


def _not_unique(text: str, spans: list[tuple[int, int]]) -> Invalid:
    lines = [text.count("\n", 0, start) + 1 for start, _ in spans[:MOST_LINES_SHOWN]]
    shown = ", ".join(map(str, lines)) + (", …" if len(spans) > MOST_LINES_SHOWN else "")
    return Invalid(
        f"old_string not unique ({len(spans)} matches at lines {shown})",
        hint="Give more of the lines around it, or replace_all.",
        matches=len(spans),
        lines=lines,
    )
