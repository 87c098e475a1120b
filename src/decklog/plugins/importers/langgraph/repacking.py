"""MessagePack taken apart so that it can be written again with every object in it, though none is ever made."""

import struct
from typing import TYPE_CHECKING

from decklog.core.errors import Invalid
from decklog.plugins.importers.langgraph.msgpack import MsgpackReader, decoded_by

if TYPE_CHECKING:
    from typing import Any

# Opened, an object of a program's own class is a dictionary with this name in it.
_OBJECT = "decklog.object"
_SMALL = 1 << 32


class Ext:
    """An object whose bytes are of a form of its own."""

    def __init__(self, code: int, data: bytes) -> None:
        self.code = code
        self.data = data


class _Opener(MsgpackReader):
    """Reads a value with the names of its maps as they are, and its objects by their numbers."""

    def _map(self, count: int) -> "dict[Any, Any]":
        try:
            return {self.value(): self.value() for _ in range(count)}
        except TypeError:
            raise Invalid("a map has a name that is a list or a map") from None

    def _object(self, size: int) -> "Any":
        code, data = self._number(">b"), self._take(size)
        try:
            return {_OBJECT: code, "of": decoded_by(_Opener, data, self._depth + 1)}
        except Invalid:
            return Ext(code, data)


def opened(data: bytes) -> "Any":
    """Take a value apart."""
    return decoded_by(_Opener, data)


def closed(value: "Any") -> bytes:
    """Write a value that was taken apart, everything in its shortest form."""
    if value is None or isinstance(value, bool):
        return {None: b"\xc0", False: b"\xc2", True: b"\xc3"}[value]
    if isinstance(value, int):
        return _whole(value)
    if isinstance(value, float):
        return b"\xcb" + struct.pack(">d", value)
    if isinstance(value, str):
        data = value.encode()
        return _head(len(data), 0xA0, 32, (0xD9, 0xDA, 0xDB)) + data
    if isinstance(value, bytes):
        return _head(len(value), None, 0, (0xC4, 0xC5, 0xC6)) + value
    if isinstance(value, list):
        return _head(len(value), 0x90, 16, (None, 0xDC, 0xDD)) + b"".join(map(closed, value))
    if isinstance(value, dict):
        return _map(value)
    if isinstance(value, Ext):
        return _ext(value.code, value.data)
    raise Invalid(f"a {type(value).__name__} can't be written as MessagePack")


def _map(value: "dict[Any, Any]") -> bytes:
    if _OBJECT in value:
        return _ext(value[_OBJECT], closed(value["of"]))
    return _head(len(value), 0x80, 16, (None, 0xDE, 0xDF)) + b"".join(closed(name) + closed(item) for name, item in value.items())


def _ext(code: int, data: bytes) -> bytes:
    fixed = {1: 0xD4, 2: 0xD5, 4: 0xD6, 8: 0xD7, 16: 0xD8}.get(len(data))
    head = bytes([fixed]) if fixed else _head(len(data), None, 0, (0xC7, 0xC8, 0xC9))
    return head + struct.pack(">b", code) + data


def _head(size: int, short: int | None, below: int, marks: tuple[int | None, int, int]) -> bytes:
    """Write how long something is: in its first byte, or in one, two or four more."""
    if short is not None and size < below:
        return bytes([short + size])
    one, two, four = marks
    if one is not None and size < 1 << 8:
        return struct.pack(">BB", one, size)
    if size < 1 << 16:
        return struct.pack(">BH", two, size)
    if size < _SMALL:
        return struct.pack(">BI", four, size)
    raise Invalid("a value is longer than MessagePack can say")


def _whole(value: int) -> bytes:
    if -32 <= value < 128:
        return struct.pack(">b" if value < 0 else ">B", value)
    forms = ((0xCC, ">BB", 8), (0xCD, ">BH", 16), (0xCE, ">BI", 32), (0xCF, ">BQ", 64))
    if value < 0:
        forms = ((0xD0, ">Bb", 7), (0xD1, ">Bh", 15), (0xD2, ">Bi", 31), (0xD3, ">Bq", 63))
    for mark, form, bits in forms:
        if -(1 << bits) <= value < 1 << bits:
            return struct.pack(form, mark, value)
    raise Invalid("a number is greater than MessagePack can say")
