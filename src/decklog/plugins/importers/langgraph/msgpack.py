"""MessagePack, read as plain values: objects of a program's own classes are told by name, and none of them is ever made."""

import struct
from collections.abc import Callable
from typing import TYPE_CHECKING

from decklog.core.errors import Invalid

if TYPE_CHECKING:
    from typing import Any

_DEEPEST = 100
# By the first byte: how a number is written, and how a length is.
_NUMBERS = dict(zip(range(0xCA, 0xD4), (">f", ">d", ">B", ">H", ">I", ">Q", ">b", ">h", ">i", ">q"), strict=True))
_CONSTANTS = {0xC0: None, 0xC2: False, 0xC3: True}
_LENGTHS = {1: ">B", 2: ">H", 4: ">I"}
_TEXTS, _BYTES = {0xD9: 1, 0xDA: 2, 0xDB: 4}, {0xC4: 1, 0xC5: 2, 0xC6: 4}
_LISTS, _MAPS = {0xDC: 2, 0xDD: 4}, {0xDE: 2, 0xDF: 4}
_OBJECTS = {0xC7: 1, 0xC8: 2, 0xC9: 4}
_SHORT_OBJECTS = {0xD4: 1, 0xD5: 2, 0xD6: 4, 0xD7: 8, 0xD8: 16}


def decoded(data: bytes, depth: int = 0) -> "Any":
    """Read one value, which must be all there is."""
    return decoded_by(MsgpackReader, data, depth)


def decoded_by(how: "type[MsgpackReader]", data: bytes, depth: int = 0) -> "Any":
    """Read one value in a way of one's own."""
    reader = how(data, depth)
    try:
        value = reader.value()
    except (struct.error, IndexError, UnicodeDecodeError) as problem:
        raise Invalid(f"it is no MessagePack: {problem}") from None
    if reader.place != len(data):
        raise Invalid("it is no MessagePack: there is more behind its end")
    return value


class MsgpackReader:
    """Reads values one after the other."""

    def __init__(self, data: bytes, depth: int) -> None:
        self._data = data
        self._depth = depth
        self.place = 0

    def _take(self, size: int) -> bytes:
        found = self._data[self.place : self.place + size]
        if len(found) < size:
            raise IndexError("it ends too early")
        self.place += size
        return found

    def _number(self, form: str) -> "Any":
        return struct.unpack(form, self._take(struct.calcsize(form)))[0]

    def _length(self, size: int) -> int:
        return int(self._number(_LENGTHS[size]))

    def value(self) -> "Any":
        first = self._take(1)[0]
        if first < 0x80:
            return first
        if first >= 0xE0:
            return first - 0x100
        if first < 0x90:
            return self._below(lambda: self._map(first & 0x0F))
        if first < 0xA0:
            return self._below(lambda: self._list(first & 0x0F))
        if first < 0xC0:
            return self._take(first & 0x1F).decode()
        return self._long(first)

    def _long(self, first: int) -> "Any":
        if first in _CONSTANTS:
            return _CONSTANTS[first]
        if first in _NUMBERS:
            return self._number(_NUMBERS[first])
        if first in _TEXTS:
            return self._take(self._length(_TEXTS[first])).decode()
        if first in _BYTES:
            return self._take(self._length(_BYTES[first]))
        if first in _LISTS:
            return self._below(lambda: self._list(self._length(_LISTS[first])))
        if first in _MAPS:
            return self._below(lambda: self._map(self._length(_MAPS[first])))
        if first in _OBJECTS:
            return self._object(self._length(_OBJECTS[first]))
        if first in _SHORT_OBJECTS:
            return self._object(_SHORT_OBJECTS[first])
        raise Invalid(f"it is no MessagePack: nothing begins with {first:#x}")

    def _below(self, read: "Callable[[], Any]") -> "Any":
        self._depth += 1
        if self._depth > _DEEPEST:
            raise Invalid(f"it is nested more than {_DEEPEST} deep")
        found = read()
        self._depth -= 1
        return found

    def _list(self, count: int) -> "list[Any]":
        return [self.value() for _ in range(count)]

    def _map(self, count: int) -> "dict[str, Any]":
        return {str(self.value()): self.value() for _ in range(count)}

    def _object(self, size: int) -> "Any":
        """Return an object as its class name and its arguments."""
        code, data = self._number(">b"), self._take(size)
        try:
            module, name, *made_of = decoded(data, self._depth + 1)
        except (Invalid, ValueError, TypeError):
            return {"kind": code, "bytes": data}
        return {"type": f"{module}.{name}", "value": made_of[0] if made_of else None}
