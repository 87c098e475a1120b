"""SQLite's record format: the values of one row, as they lie one behind the other in its cell."""

from struct import error as TooShort
from struct import unpack_from
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Any

_INTEGERS = {1: 1, 2: 2, 3: 3, 4: 4, 5: 6, 6: 8}
_SIZES = {**_INTEGERS, 0: 0, 7: 8, 8: 0, 9: 0}
_CONSTANTS = {0: None, 8: 0, 9: 1}
# What reading bytes that are no row ends in.
UNREADABLE = (IndexError, ValueError, KeyError, TooShort)


def varint(data: bytes, place: int) -> tuple[int, int]:
    """Read a number of variable length; give it and the place behind it."""
    value = 0
    for _ in range(8):
        byte = data[place]
        place += 1
        value = value << 7 | byte & 0x7F
        if byte < 0x80:
            return value, place
    value = value << 8 | data[place]
    return (value - (1 << 64) if value >= 1 << 63 else value), place + 1


def types_at(data: bytes, place: int) -> tuple[list[int], int]:
    """Read the head of a row: the types of its columns, and how long the head is."""
    size, start = varint(data, place)
    end, types = place + size, []
    if not 1 <= size <= 4096 or end > len(data):
        raise ValueError("this is no row's head")
    while start < end:
        byte = data[start]
        if byte < 0x80:
            start += 1
        else:
            byte, start = varint(data, start)
        types.append(byte)
    return types, size


def size_of(types: list[int]) -> int:
    """Count the bytes that the values of some types take."""
    return sum(kind - 12 >> 1 if kind >= 12 else _SIZES[kind] for kind in types)


def spans_of(payload: bytes) -> list[tuple[int, int, int]]:
    """Tell of each value of a row its type, where it begins and where it ends."""
    types, place = types_at(payload, 0)
    spans = []
    for kind in types:
        end = place + (kind - 12 >> 1 if kind >= 12 else _SIZES[kind])
        spans.append((kind, place, end))
        place = end
    if place != len(payload):
        raise ValueError("a row's values do not fill it")
    return spans


def value_of(kind: int, data: bytes, *, errors: str = "strict") -> "Any":
    """Read one value; `errors` says what becomes of text that is no UTF-8."""
    if kind >= 12:
        return data.decode(errors=errors) if kind & 1 else data
    if kind in _INTEGERS:
        return int.from_bytes(data, "big", signed=True)
    return unpack_from(">d", data)[0] if kind == 7 else _CONSTANTS[kind]


def values_of(payload: bytes, *, errors: str = "strict") -> "list[Any]":
    """Read a whole row."""
    return [value_of(kind, payload[start:end], errors=errors) for kind, start, end in spans_of(payload)]
