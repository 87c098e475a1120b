"""JSON values that stand one after the other in a file, read piece by piece: of a list of very many, few are in memory."""

import codecs
import json
import re
from typing import TYPE_CHECKING

from decklog.importing.text_files import MOST_BYTES, OURS, has_halves, opened, storable, text_of, values_in

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator
    from typing import IO, Any

_PIECE = 256 * 1024
# What may still follow a number that ends here: a dot or an exponent with its sign, and a digit.
_MARGIN = 4
_BLANKS, _BETWEEN = re.compile(r"[ \t\r\n]*"), re.compile(r"[ \t\r\n,]*")
_decode = json.JSONDecoder().raw_decode


class JsonFile:
    """The values of a file, those of lists one by one, and then what is not whole.

    Of a list that was cut off, the values before that are given. What git left a conflict in is read as a whole, and both sides
    of it are given.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        # Told once all has been given.
        self.rest = ""

    def __iter__(self) -> "Iterator[Any]":
        if may_have_sides(self._path):
            found, self.rest = values_in(text_of(self._path))
            yield from found
            return
        with opened(self._path, MOST_BYTES) as file:
            pieces = Pieces(file)
            while pieces.next(_BETWEEN):
                start = pieces.passed + pieces.place
                if not (yield from _one(pieces)):
                    self.rest = text_of(self._path)[start:]
                    return


class Pieces:
    """The text of a file, of which only what is being read is held."""

    def __init__(self, file: "IO[bytes]") -> None:
        self._file = file
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._is_over = False
        self._text, self.place, self.passed = "", 0, 0
        while not self._text and self._read_on():
            self._text = self._text.lstrip("\ufeff")

    def _read_on(self) -> bool:
        """Read as much again as waits, so that a long value is not tried too often; False when there is no more."""
        if self._is_over:
            return False
        raw = self._file.read(max(_PIECE, len(self._text) - self.place))
        self._is_over = not raw
        more = self._decoder.decode(raw, final=self._is_over)
        if more or raw:
            self._text = self._text[self.place :] + more
            self.passed, self.place = self.passed + self.place, 0
        return bool(more or raw)

    def next(self, blanks: "re.Pattern[str]" = _BLANKS) -> str:
        """Go on to the next sign that is not blank, and give it; an empty text at the end."""
        while True:
            found = blanks.match(self._text, self.place)
            assert found is not None
            self.place = found.end()
            if self.place < len(self._text):
                return self._text[self.place]
            if not self._read_on():
                return ""

    def past(self, sign: str) -> str:
        """Go past one of some signs that must follow here, and give it; a ValueError when another follows."""
        found = self.next()
        if not found or found not in sign:
            raise ValueError(f"{found!r} stands where one of {sign!r} should")
        self.place += 1
        return found

    def value(self) -> "Any":
        """Return the value that begins here, and go on behind it; a ValueError when it is none, or not whole."""
        while True:
            try:
                found, end = _decode(self._text, self.place)
            except ValueError:
                if self._read_on():
                    continue
                raise
            if end + _MARGIN > len(self._text) and self._read_on():
                continue
            text, self.place = self._text[self.place : end], end
            return storable(found) if has_halves(text) else found


def _one(pieces: Pieces) -> "Generator[Any, None, bool]":
    """Yield the value that begins here, or those of the list; say whether it was whole."""
    try:
        if pieces.next() == "[":
            return (yield from _listed(pieces))
        yield pieces.value()
    except (ValueError, RecursionError):
        return False
    return True


def _listed(pieces: Pieces) -> "Generator[Any, None, bool]":
    """Yield a list's values. Behind a mistake only objects are, for as long as one follows the other."""
    pieces.place += 1
    is_right = True
    if pieces.next() == "]":
        pieces.place += 1
        return True
    while True:
        yield pieces.value()
        sign = pieces.next()
        if sign == "]" and is_right:
            pieces.place += 1
            return True
        if sign == ",":
            pieces.place += 1
        is_right = is_right and sign == "," and pieces.next() not in (",", "]")
        if not is_right and pieces.next(_BETWEEN) != "{":
            return False


def members(pieces: Pieces) -> "Iterator[str]":
    """Yield the names of an object that begins here, each once; its value is read before the next one is asked for."""
    pieces.past("{")
    if pieces.next() == "}":
        pieces.past("}")
        return
    seen: set[str] = set()
    sign = ","
    while sign == ",":
        pieces.next()
        name = pieces.value()
        if not isinstance(name, str) or name in seen:
            raise ValueError(f"{name!r} is no name, or came before")
        seen.add(name)
        pieces.past(":")
        pieces.next()
        yield name
        sign = pieces.past(",}")


def elements(pieces: Pieces) -> "Iterator[Any]":
    """Yield the values of a list that begins here, in which there is no mistake."""
    pieces.past("[")
    if pieces.next() == "]":
        pieces.past("]")
        return
    sign = ","
    while sign == ",":
        pieces.next()
        yield pieces.value()
        sign = pieces.past(",]")


def may_have_sides(path: str) -> bool:
    """Return whether git's mark of a conflict stands anywhere in a file."""
    mark, before = OURS.encode(), b""
    with opened(path, MOST_BYTES) as file:
        while piece := file.read(_PIECE):
            piece = before + piece
            if mark in piece:
                return True
            before = piece[-len(mark) :]
    return False
