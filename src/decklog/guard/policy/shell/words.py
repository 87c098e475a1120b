"""Words of a command line after expansion, with what is known about where they came from.

While a word is being built, quoted characters that would otherwise be special are moved to a private range,
so that brace expansion and splitting see only the unquoted ones. `seal` and `unseal` do the moving.
"""

import re
from itertools import pairwise
from typing import NamedTuple

UNKNOWN = "\0"
"""Stands for text that can't be known before the command runs."""

SPLIT = "\ue100"
"""Stands for unquoted white space that came out of an expansion: the word is cut there."""

_SPECIAL = "{},.*?[]~ \t\n\\"
_SEALED = {ord(char): chr(0xE000 + ord(char)) for char in _SPECIAL}
_UNSEALED = {0xE000 + ord(char): char for char in _SPECIAL}
_MOST_BRACES = 64
_RANGE = re.compile(r"(-?\d{1,6}|[A-Za-z])\.\.(-?\d{1,6}|[A-Za-z])(?:\.\.-?\d{1,3})?")
_ESCAPE = re.compile(r"\\(?:x([0-9a-fA-F]{1,2})|u([0-9a-fA-F]{1,4})|U([0-9a-fA-F]{1,6})|([0-7]{1,3})|c(.)|(.))", re.DOTALL)
_NAMED = {
    "n": "\n",
    "t": "\t",
    "r": "\r",
    "a": "\a",
    "b": "\b",
    "e": "\x1b",
    "E": "\x1b",
    "f": "\f",
    "v": "\v",
}

NO_TAINT: frozenset[str] = frozenset()


class Word(NamedTuple):
    """One argument: its text, what taints it, and what it holds if it names a pipe or a written file."""

    text: str
    taint: frozenset[str] = NO_TAINT
    content: str | None = None

    @property
    def is_known(self) -> bool:
        """Tell whether no part of the text depends on what happens at run time."""
        return UNKNOWN not in self.text


UNKNOWN_WORD = Word(UNKNOWN)


def seal(text: str) -> str:
    """Protect quoted text from brace expansion, splitting and globbing."""
    return text.translate(_SEALED)


def unseal(text: str) -> str:
    """Give back the text that `seal` protected."""
    return text.translate(_UNSEALED)


def decode_ansi(text: str) -> str:
    """Decode the escapes of a `$'...'` string, `printf` or `echo -e`."""
    return _ESCAPE.sub(_decode_escape, text)


def _decode_escape(match: re.Match[str]) -> str:
    """Decode one backslash escape."""
    short, four, long, octal, control, other = match.groups()
    number = short or four or long
    if number:
        code = int(number, 16)
        return chr(code) if 0 < code < 0x110000 and not 0xD800 <= code < 0xE000 else UNKNOWN
    if octal:
        return chr(int(octal, 8) % 256) if int(octal, 8) % 256 else UNKNOWN
    if control:
        return chr(ord(control) & 0x1F) if ord(control) & 0x1F else UNKNOWN
    return _NAMED.get(other, other)


def unescape(text: str) -> str:
    """Resolve the backslashes of unquoted text, sealing what they protect."""
    if "\\" not in text:
        return text
    return re.sub(r"\\(\n|.|$)", lambda found: "" if found[1] in ("\n", "") else seal(found[1]), text, flags=re.DOTALL)


def unescape_quoted(text: str) -> str:
    """Resolve the backslashes that count within double quotes."""
    return re.sub(r'\\([$`"\\\n])', lambda found: "" if found[1] == "\n" else found[1], text)


def expand_braces(text: str) -> list[str]:
    """Expand `{a,b}` and `{1..3}` as the shell does, giving up with the text as it is past a small number."""
    if "{" not in text or "}" not in text:
        return [text]
    results: list[str] = []
    waiting = [text]
    while waiting:
        if len(results) + len(waiting) > _MOST_BRACES:
            # What it would come to is not looked at, so it is not known.
            return [*results, UNKNOWN]
        current = waiting.pop()
        options = _first_braces(current)
        if options is None:
            results.append(current)
        else:
            waiting.extend(reversed(options))
    return results


def _first_braces(text: str) -> list[str] | None:
    """Expand the first brace expression that counts, None if there is none."""
    start = text.find("{")
    while start != -1:
        end, commas = _closing(text, start)
        if end != -1:
            parts = _alternatives(text, start, end, commas)
            if parts is not None:
                return [text[:start] + part + text[end + 1 :] for part in parts]
        start = text.find("{", start + 1)
    return None


def _closing(text: str, start: int) -> tuple[int, list[int]]:
    """Find the brace that closes the one at `start`, and the commas of its own level."""
    depth = 0
    commas: list[int] = []
    for place in range(start, min(len(text), start + 4096)):
        char = text[place]
        if char == "{":
            depth += 1
        elif char == "}":
            depth -= 1
            if depth == 0:
                return place, commas
        elif char == "," and depth == 1:
            commas.append(place)
    return -1, []


def _alternatives(text: str, start: int, end: int, commas: list[int]) -> list[str] | None:
    """List what a brace expression stands for, None if the braces are just text."""
    if commas:
        edges = [start, *commas, end]
        return [text[left + 1 : right] for left, right in pairwise(edges)]
    found = _RANGE.fullmatch(text[start + 1 : end])
    if not found:
        return None
    first, last = found[1], found[2]
    if first.lstrip("-").isdigit() and last.lstrip("-").isdigit():
        low, high = sorted((int(first), int(last)))
        return [str(number) for number in range(low, min(high, low + _MOST_BRACES) + 1)]
    low, high = sorted((ord(first[0]), ord(last[0])))
    return [chr(code) for code in range(low, high + 1)]


def finish(raw: str, taint: frozenset[str], content: str | None = None) -> list[Word]:
    """Turn a built text into words: braces expanded, split where an expansion had white space."""
    words = []
    for text in expand_braces(raw):
        pieces = text.split(SPLIT) if SPLIT in text else [text]
        words += [Word(unseal(piece), taint, content) for piece in pieces if piece or len(pieces) == 1]
    return words
