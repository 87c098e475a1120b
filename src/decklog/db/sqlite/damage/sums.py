"""SQLite's checksums of the frames of a write-ahead log: of one, and of many side by side.

What a frame's checksum begins with stands in the frame before it, so that each can be told by itself. Many are added up at once,
as the parts of one large number: with hundreds of them that takes a tenth of the time.
"""

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    Sums = tuple[int, int]

HEADER_SIZE, FRAME_HEADER_SIZE = 32, 24
_SUM = 0xFFFFFFFF
_WORD = 4
# Of a frame's header the checksum covers the first two words; the page begins behind all six.
_HEAD_WORDS, _PAGE_WORD = 2, FRAME_HEADER_SIZE // _WORD
# A part has twice the bits that a sum has. Two words make the sums at most 2.7 times as large, so that these many steps fit.
_STEPS_WITHIN_A_PART = 20
# Few are told sooner one by one; more at once would not stay in the cache.
_FEW, _MOST = 8, 4_096
# Where a word lies in a part, by the order in which this machine keeps its bytes.
_LOW = 0 if sys.byteorder == "little" else 1


def checksum(content: bytes, order: str, sums: "Sums" = (0, 0)) -> "Sums":
    """Go on with SQLite's checksum over some more bytes."""
    words = _words(content, order)
    first, second = sums
    each = iter(words)
    for one, other in zip(each, each, strict=True):
        first = first + one + second & _SUM
        second = second + other + first & _SUM
    return first, second


def checksums(content: memoryview, order: str, page_size: int, begins: "Sequence[Sums]") -> "list[Sums]":
    """Return the checksums of the first frames of a write-ahead log, each begun with what is given for it."""
    found: list[Sums] = []
    step = FRAME_HEADER_SIZE + page_size
    for slot in range(0, len(begins), _MOST):
        some = begins[slot : slot + _MOST]
        start = HEADER_SIZE + slot * step
        part = bytes(content[start : start + len(some) * step])
        found += _one_by_one(part, order, step, some) if len(some) < _FEW else _side_by_side(part, order, step, some)
    return found


def _one_by_one(frames: bytes, order: str, step: int, begins: "Sequence[Sums]") -> "list[Sums]":
    return [
        checksum(frames[start : start + _HEAD_WORDS * _WORD] + frames[start + FRAME_HEADER_SIZE : start + step], order, sums)
        for start, sums in zip(range(0, len(frames), step), begins, strict=True)
    ]


def _side_by_side(frames: bytes, order: str, step: int, begins: "Sequence[Sums]") -> "list[Sums]":
    """Add up one word of every frame, then the next one of every frame."""
    words, apart = _words(frames, order), step // _WORD
    parts = memoryview(bytearray(2 * _WORD * len(begins)))
    places = parts.cast("I")[_LOW::2]
    mask = _as_number([_SUM] * len(begins))
    first, second = (_as_number([sums[which] for sums in begins]) for which in (0, 1))
    pairs = (0, *range(_PAGE_WORD, apart, 2))
    for number, place in enumerate(pairs, 1):
        places[:] = words[place::apart]
        first += int.from_bytes(parts, sys.byteorder) + second
        places[:] = words[place + 1 :: apart]
        second += int.from_bytes(parts, sys.byteorder) + first
        if number % _STEPS_WITHIN_A_PART == 0 or number == len(pairs):
            first, second = first & mask, second & mask
    return list(zip(_as_sums(first, len(begins)), _as_sums(second, len(begins)), strict=True))


def _as_number(sums: "list[int]") -> int:
    parts = memoryview(bytearray(2 * _WORD * len(sums))).cast("Q")
    for place, one in enumerate(sums):
        parts[place] = one
    return int.from_bytes(parts.cast("B"), sys.byteorder)


def _as_sums(number: int, count: int) -> "list[int]":
    return memoryview(number.to_bytes(2 * _WORD * count, sys.byteorder)).cast("Q").tolist()


def _words(content: bytes, order: str) -> memoryview:
    """Read bytes as words of the order that the log says."""
    if order == sys.byteorder:
        return memoryview(content).cast("I")
    turned = bytearray(len(content))
    for place in range(_WORD):
        turned[place::_WORD] = content[_WORD - 1 - place :: _WORD]
    return memoryview(turned).cast("I")
