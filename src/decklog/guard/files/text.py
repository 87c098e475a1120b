"""Turn a file's bytes into text and back, byte for byte.

Decoding never fails and never loses anything: a byte-order mark decides; else UTF-8 if the whole file is
valid UTF-8; else Latin-1, in which every byte is a character. Line endings are left as they are.
"""

import codecs
from dataclasses import dataclass

from decklog.core.errors import Invalid

MARKS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))


@dataclass(frozen=True)
class Form:
    """How a text is written down: its encoding and its byte-order mark, if any."""

    encoding: str = "utf-8"
    mark: bytes = b""

    def encode(self, text: str) -> bytes:
        """Write a text down in this form, or refuse one that the encoding has no characters for."""
        try:
            return self.mark + text.encode(self.encoding)
        except UnicodeEncodeError as error:
            raise Invalid(
                f"{text[error.start : error.end]!a} can't be written in {self.encoding}",
                hint="Use characters the file's encoding has, or write the whole file anew in UTF-8.",
                encoding=self.encoding,
            ) from None


def decode(data: bytes) -> tuple[str, Form]:
    """Read bytes as text, with the form that writes the same bytes again."""
    for mark, encoding in MARKS:
        if data.startswith(mark):
            text = _exact(data[len(mark) :], encoding)
            if text is not None:
                return text, Form(encoding, mark)
    text = _exact(data, "utf-8")
    return (text, Form()) if text is not None else (data.decode("latin-1"), Form("latin-1"))


def _exact(data: bytes, encoding: str) -> str | None:
    try:
        return data.decode(encoding)
    except UnicodeDecodeError:
        return None


def lines_of(text: str) -> list[str]:
    """Split into lines that keep their ending; only a line feed ends one, as in git."""
    lines = text.split("\n")
    last = lines.pop()
    return [f"{line}\n" for line in lines] + ([last] if last else [])


def is_crlf(text: str) -> bool:
    """Return whether most lines of a text end in carriage return and line feed."""
    pairs = text.count("\r\n")
    return pairs > 0 and pairs * 2 >= text.count("\n")


def with_crlf(text: str) -> str:
    """Return a text whose bare line feeds are carriage return and line feed."""
    return text.replace("\r\n", "\n").replace("\n", "\r\n")
