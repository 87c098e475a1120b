"""The list of segments that SQLite keeps of a full-text index: read, and held against the rows of the index.

What nothing can be held against are two notes: how much was ever written, by which SQLite decides when to merge, and how far the
numbers of a segment's origin go beyond those that rows have.
"""

from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

# Where the list is among the pages of an index.
ID = 10
# Four bytes count changes of the settings; then comes the mark of an index whose rows can be deleted without their texts.
_COOKIE, _MARK = 4, bytes.fromhex("ff000001")
# The list of an index to which nothing was ever written, behind the count of changes: no level, no segment, nothing written.
WITHOUT_SEGMENTS = _MARK + bytes(3)
_OF_SEGMENT = 8
_SEVEN, _MORE = 0x7F, 0x80


class Segment:
    """One piece of an index: where it begins and ends, from which origins its rows are, and how many there are."""

    def __init__(self, numbers: list[int]) -> None:
        self.id, self.first_page, _, self.first_origin, self.last_origin, _, self.dropped, self.rows = numbers


class Structure:
    """Levels of segments, each with the number of those that are being merged."""

    def __init__(self, block: bytes) -> None:
        numbers = _numbers(block[_COOKIE + len(_MARK) :])
        levels, _, _ = next(numbers), next(numbers), next(numbers)
        self.merging = 0
        self.segments: list[Segment] = []
        for _ in range(levels):
            self.merging += next(numbers)
            self.segments += [Segment([next(numbers) for _ in range(_OF_SEGMENT)]) for _ in range(next(numbers))]
        self.is_read_whole = next(numbers, None) is None


def uncounted(id: int, block: bytes) -> bytes:
    """Return a page as it is, and the list without its count of changes."""
    return block[_COOKIE:] if id == ID else block


def read(block: bytes) -> Structure | None:
    """Read the list; None where it is not as SQLite writes it."""
    if block[_COOKIE : _COOKIE + len(_MARK)] != _MARK:
        return None
    try:
        structure = Structure(block)
    except (StopIteration, ValueError):
        return None
    return structure if structure.is_read_whole else None


def counts(structure: Structure, rows_by_origin: "Mapping[int, int]") -> bool:
    """Return whether each segment has as many rows as there are of its origins."""
    if structure.merging:
        return True  # until a merge is done, rows are counted where they were and where they will be
    in_order = sorted(structure.segments, key=lambda segment: segment.first_origin)
    if any(one.last_origin >= other.first_origin for one, other in pairwise(in_order)):
        return False
    if any(not 1 <= one.first_origin <= one.last_origin for one in in_order):
        return False
    kept = {
        one: sum(n for origin, n in rows_by_origin.items() if one.first_origin <= origin <= one.last_origin) for one in in_order
    }
    return sum(kept.values()) == sum(rows_by_origin.values()) and all(one.rows == kept[one] + one.dropped for one in in_order)


def _numbers(block: bytes) -> "Iterator[int]":
    """Read numbers of seven bits a byte, each as short as it can be."""
    value = length = 0
    for byte in block:
        value, length = value << 7 | byte & _SEVEN, length + 1
        if length > 1 and value < 1 << 7 * (length - 1) and not byte & _MORE:
            raise ValueError("a number is longer than it need be")
        if not byte & _MORE:
            yield value
            value = length = 0
    if length:
        raise ValueError("the last number is cut off")
