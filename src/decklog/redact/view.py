"""A text as a person reads it: colours dropped, escapes undone, and where each character came from."""

from bisect import bisect_right
from collections.abc import Iterator
from itertools import accumulate
from typing import NamedTuple

from decklog.prepared import prepared

# Each alternative starts with a literal, which is what lets `re` skip quickly to the next candidate.
# The runs of backslashes are taken whole: whatever the depth of the JSON, what remains stays balanced.
_ESCAPE = (
    r"\\(?!(?:(?<=[=>]\\)|(?<=: \\))[rbf][A-Za-z0-9])"
    r"(?:(?<==\\)\r?\n[ \t]+|\\*(?:(?:u001[bB]|x1[bB]|033|e)\[(?!redacted:)[0-9;:?]*[A-Za-z]"
    r"|u(?![dD][89a-fA-F])[0-9a-fA-F]{4}|x[0-7][0-9a-fA-F]|\r?\n|r\\+n|[\"'/nrtbf])|\\+)"
)
# By itself where there is no other noise: what begins with one character is found far sooner than what begins with one of many.
_ESCAPES = prepared(f"({_ESCAPE})")
_NOISE = prepared(
    r"(\x1b(?:\[(?!redacted:)[0-9;:?]*[ -/]?[A-Za-z]|\][^\x07\x1b\n]*(?:\x07|\x1b\\)|[()][0-9A-B]|[=>78cM])?"
    rf"|{_ESCAPE}"
    r"|%(?:2[2BbDdFf]|3[AaDd]|40|5[Ff])"
    r"|&(?:quot|apos|amp|lt|gt|#3[49]|#6[02]|#x2[27]|#x3[CEce]);"
    r"|\r\n|\x00\x00*|\u00ad|\u200b|\u200c|\u200d|\u2060|\ufeff)"
)
# Those of the noise that are no letters of anything.
_UNSEEN = ("\u00ad", "\u200b", "\u200c", "\u200d", "\u2060", "\ufeff")
# What has its value behind it, in the next line if a backslash ends its own.
_GOING_ON = ("=", "Bearer ", "bearer ")
_LETTERS = {"n": "\n", "r": "\r", "t": "\t", "b": " ", "f": " "}
_ENTITIES = {
    "&quot;": '"', "&apos;": "'", "&amp;": "&", "&lt;": "<", "&gt;": ">",
    "&#34;": '"', "&#39;": "'", "&#x22;": '"', "&#x27;": "'",
    "&#60;": "<", "&#62;": ">", "&#x3c;": "<", "&#x3e;": ">", "&#x3C;": "<", "&#x3E;": ">",
}  # fmt: skip


def _undo(noise: str) -> str:
    """Give the one character a piece of noise stands for, or nothing."""
    if noise[0] == "%":
        return chr(int(noise[1:], 16))
    if noise == "\r\n":
        return "\n"
    if noise[0] == "&":
        return _ENTITIES[noise]
    if noise[0] != "\\":
        return ""
    rest = noise.lstrip("\\")
    if not rest:
        return "\\"
    if "[" in rest:
        return ""
    if rest[-1] in " \t":
        # The value of a setting goes on in the next line.
        return ""
    if rest[-1] in "n\n":
        return "\n"
    if rest[0] in "ux":
        char = chr(int(rest[1:], 16))
        return char if char >= " " or char in "\n\r\t" else ""
    return _LETTERS.get(rest, rest[-1])


class Found(NamedTuple):
    """Where a secret stands in a view, and of which kind it is."""

    start: int
    end: int
    kind: str


class View:
    """A text to search, and the way back: `span` turns a place in it into a place in the original."""

    def __init__(self, text: str, data: bytes, starts: list[int], origins: list[int]) -> None:
        self.text = text
        self.data = data
        self.is_whole = False
        self._starts = starts
        self._origins = origins

    @property
    def is_plain(self) -> bool:
        """Tell whether the view is the text itself."""
        return not self._starts

    def span(self, start: int, end: int) -> tuple[int, int]:
        """Give the part of the original that a part of the view came from."""
        if not self._starts:
            return start, end
        return self._place(start), self._place(end - 1, past=True)

    def width(self, position: int) -> int:
        """Give how many characters of the original one character of the view came from."""
        if not self._starts:
            return 1
        start, end = self.span(position, position + 1)
        return end - start

    def left_out_to(self, place: int) -> int:
        """Give where in the original something ends that the view leaves out and that a place is in, or the place itself."""
        index = bisect_right(self._origins, place) - 1
        is_left_out = index % 2 and index + 1 < len(self._starts) and self._starts[index] == self._starts[index + 1]
        return self._origins[index + 1] if is_left_out else place

    def undone(self) -> Iterator[tuple[int, int, int]]:
        """Give each place that stands for something else, and from where to where that goes in the original."""
        for index in range(1, len(self._starts) - 1, 2):
            yield self._starts[index], self._origins[index], self._origins[index + 1]

    def _place(self, position: int, *, past: bool = False) -> int:
        index = bisect_right(self._starts, position) - 1
        if index % 2:
            return self._origins[index + 1] if past else self._origins[index]
        return self._origins[index] + position - self._starts[index] + past


def plain(text: str) -> View:
    """View a text as it is."""
    return View(text, to_bytes(text), [], [])


def to_bytes(text: str) -> bytes:
    """Encode one byte a character, so that places in the bytes are places in the text."""
    return text.encode("latin-1", "replace")


def pieced(kept: list[str], original: list[str]) -> View:
    """View pieces that stand for others, each even one as long as the other and each odd one for another text."""
    text = "".join(kept)
    starts = [0, *accumulate(map(len, kept))]
    origins = [0, *accumulate(map(len, original))]
    return View(text, to_bytes(text), starts, origins)


def _may_stand_for_others(text: str) -> bool:
    """Tell whether signs that mostly stand for themselves may be an escape: to look for each takes far less than to split."""
    if "%" in text and ("%2" in text or "%3" in text or "%4" in text or "%5" in text):
        return True
    if "&" in text and ";" in text:
        return True
    return not text.isascii() and any(map(text.__contains__, _UNSEEN))


def _join_settings(kept: list[str], pieces: list[str]) -> None:
    """Join the value of a setting or a header that begins in the next line: `TOKEN=\\` and the token."""
    for index in range(1, len(pieces), 2):
        if pieces[index] == "\\\n" and pieces[index - 1].endswith(_GOING_ON):
            kept[index] = ""


def looked_through(text: str) -> View:
    """View a text without its colours and escapes."""
    has_others = "\x1b" in text or "\r" in text or "\x00" in text or _may_stand_for_others(text)
    if not has_others and "\\" not in text:
        return plain(text)
    pieces = (_NOISE if has_others else _ESCAPES).split(text)
    if len(pieces) == 1:
        return plain(text)
    memo: dict[str, str] = {}
    kept = pieces[:]
    kept[1::2] = [memo[n] if n in memo else memo.setdefault(n, _undo(n)) for n in pieces[1::2]]
    if "=\\\n" in text or "earer \\\n" in text:
        _join_settings(kept, pieces)
    return pieced(kept, pieces)
