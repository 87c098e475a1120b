"""Replace one exact passage of a text by another."""

import re

from decklog.core.errors import Invalid
from decklog.guard.files.text import is_crlf, with_crlf

MOST_LINES_SHOWN = 10


def replace(text: str, old: str, new: str, *, replace_all: bool = False) -> tuple[str, int]:
    """Replace `old`, which must occur once unless `replace_all`; return the new text and the number of replacements.

    In a text whose lines end in CRLF, a bare line feed in `old` matches such an ending and one in `new`
    becomes one.
    """
    _refuse_empty(old, new)
    spans = _exact_spans(text, old)
    by_ending = not spans and "\n" in old
    if by_ending:
        spans = _spans_by_ending(text, old)
    if not spans:
        raise Invalid("old_string not found", hint="Copy it exactly from read_file, with its indentation.")
    if len(spans) > 1 and not replace_all:
        raise _not_unique(text, spans)
    found = text[slice(*spans[0])]
    # A passage given with bare line feeds and found with them keeps them, even among CRLF lines.
    if "\r\n" in found if by_ending else "\n" not in old and is_crlf(text):
        new = with_crlf(new)
    elif by_ending:
        new = new.replace("\r\n", "\n")
    return _spliced(text, _apart(spans), new)


def _refuse_empty(old: str, new: str) -> None:
    if not old:
        raise Invalid("old_string is empty", hint="Give the passage to replace, or use write_file.")
    if old == new:
        raise Invalid("old_string and new_string are the same", hint="Leave the edit out: nothing would change.")


def _exact_spans(text: str, old: str) -> list[tuple[int, int]]:
    # Overlapping finds count too: two of them are two places the caller may have meant.
    spans: list[tuple[int, int]] = []
    at = text.find(old)
    while at >= 0:
        if not _halves_an_ending(text, at) and not _halves_an_ending(text, at + len(old)):
            spans.append((at, at + len(old)))
        at = text.find(old, at + 1)
    return spans


def _halves_an_ending(text: str, at: int) -> bool:
    return 0 < at < len(text) and text[at - 1 : at + 1] == "\r\n"


def _spans_by_ending(text: str, old: str) -> list[tuple[int, int]]:
    pattern = r"\r?\n".join(re.escape(line) for line in old.replace("\r\n", "\n").split("\n"))
    return [found.span() for found in re.finditer(pattern, text)]


def _apart(spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    kept: list[tuple[int, int]] = []
    for span in spans:
        if not kept or span[0] >= kept[-1][1]:
            kept.append(span)
    return kept


def _spliced(text: str, spans: list[tuple[int, int]], new: str) -> tuple[str, int]:
    pieces: list[str] = []
    at = 0
    for start, end in spans:
        pieces += [text[at:start], new]
        at = end
    return "".join([*pieces, text[at:]]), len(spans)


def _not_unique(text: str, spans: list[tuple[int, int]]) -> Invalid:
    lines = [text.count("\n", 0, start) + 1 for start, _ in spans[:MOST_LINES_SHOWN]]
    shown = ", ".join(map(str, lines)) + (", …" if len(spans) > MOST_LINES_SHOWN else "")
    return Invalid(
        f"old_string not unique ({len(spans)} matches at lines {shown})",
        hint="Give more of the lines around it, or replace_all.",
        matches=len(spans),
        lines=lines,
    )
