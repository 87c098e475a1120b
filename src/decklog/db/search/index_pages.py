"""The words on the pages of a full-text index of SQLite, and the words by which a page is found.

A page begins with two numbers of two bytes, of which the second says where its list of places begins: there stands, as a number
of seven bits a byte, where the first word is, and how much further each other one. A word is written as how many bytes it shares
with the one before, how many follow, and those; the first word of a page shares nothing and is written without that number.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_SEVEN, _MORE = 0x7F, 0x80


def wrong_signs(pages: "Iterable[tuple[int, int, bytes]]", signs: "dict[tuple[int, int], bytes]") -> "Iterator[tuple[int, int]]":
    """Name the pages, given in order as segment, number and bytes, whose sign is not the one that SQLite gives them.

    A search begins on the last page whose sign is not behind the word. A sign is the beginning of the page's first word, as long
    as it has to be to stand behind the last word before it, or all of it where a merge went on with the segment.
    """
    before: tuple[int, bytes] | None = None
    for segment, number, block in pages:
        words = words_of(block)
        first = next(words, None)
        if first is None:
            continue
        sign = signs.get((segment, number))
        if sign is not None and not _is_sign(sign, first, before[1] if before and before[0] == segment else None):
            yield segment, number
        last = first
        for word in words:
            last = word
        before = segment, last


def _is_sign(sign: bytes, first: bytes, before: bytes | None) -> bool:
    if before is None:
        # The first page of a segment has none. Where a merge has taken that page away, and words of this one, it must only not be
        # behind the words that are left.
        return sign <= first
    if sign == first:
        return True
    shared = next((at for at, (one, other) in enumerate(zip(before, first)) if one != other), min(len(before), len(first)))  # noqa: B905
    return sign == first[: shared + 1]


def words_of(block: bytes) -> "Iterator[bytes]":
    """Yield the words that begin on a page, in their order."""
    place, at = 0, int.from_bytes(block[2:4], "big")
    word = b""
    while at < len(block):
        further, at = _number(block, at)
        place += further
        if word:
            shared, start = _number(block, place)
            length, start = _number(block, start)
            word = word[:shared] + block[start : start + length]
        else:
            length, start = _number(block, place)
            word = block[start : start + length]
        yield word


def _number(block: bytes, at: int) -> tuple[int, int]:
    """Read a number; give it, and where the next byte stands."""
    value = block[at]
    at += 1
    if value < _MORE:
        return value, at
    value &= _SEVEN
    while True:
        byte = block[at]
        at += 1
        value = value << 7 | byte & _SEVEN
        if byte < _MORE:
            return value, at
