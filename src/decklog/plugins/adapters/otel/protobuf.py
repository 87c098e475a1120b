"""OTLP's messages in the protobuf encoding, read and written as the same documents that their JSON encoding has.

A dozen messages with five ways to write a number: a table and two loops. The library for it would be a dependency of a
megabyte, with generated code that takes longer to import than a short call of ours takes.
"""

import base64
import struct
from typing import TYPE_CHECKING

from decklog.core.errors import Invalid, TooLarge

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

# How a value is put on the wire.
_VARINT, _EIGHT_BYTES, _BYTES, _FOUR_BYTES = 0, 1, 2, 5
_DEEPEST = 64
_LONGEST_VARINT = 10
# Two bytes can be a field, and take a hundred times as much once they are read.
_MOST_FIELDS = 1_000_000
_HEX, _BASE64, _TEXT, _NUMBER, _SIGNED, _BOOL, _FIXED64, _FIXED32, _DOUBLE = (
    *("hex", "base64", "text", "number", "signed", "bool"),
    *("fixed64", "fixed32", "double"),
)
_WIRE = {_NUMBER: _VARINT, _SIGNED: _VARINT, _BOOL: _VARINT, _FIXED64: _EIGHT_BYTES, _DOUBLE: _EIGHT_BYTES, _FIXED32: _FOUR_BYTES}
_SIGN, _WRAP = 1 << 63, 1 << 64

REQUEST, RESPONSE, STATUS = "ExportTraceServiceRequest", "ExportTraceServiceResponse", "RpcStatus"
# Each message's fields by number: the name in JSON, the kind of value or the message it holds, and whether it is a list.
_MESSAGES: "dict[str, dict[int, tuple[str, str, bool]]]" = {
    REQUEST: {1: ("resourceSpans", "ResourceSpans", True)},
    RESPONSE: {1: ("partialSuccess", "PartialSuccess", False)},
    "PartialSuccess": {1: ("rejectedSpans", _SIGNED, False), 2: ("errorMessage", _TEXT, False)},
    STATUS: {1: ("code", _NUMBER, False), 2: ("message", _TEXT, False)},
    "ResourceSpans": {
        1: ("resource", "Resource", False),
        2: ("scopeSpans", "ScopeSpans", True),
        3: ("schemaUrl", _TEXT, False),
    },
    "Resource": {1: ("attributes", "KeyValue", True), 2: ("droppedAttributesCount", _NUMBER, False)},
    "ScopeSpans": {1: ("scope", "Scope", False), 2: ("spans", "Span", True), 3: ("schemaUrl", _TEXT, False)},
    "Scope": {
        1: ("name", _TEXT, False),
        2: ("version", _TEXT, False),
        3: ("attributes", "KeyValue", True),
        4: ("droppedAttributesCount", _NUMBER, False),
    },
    "Span": {
        1: ("traceId", _HEX, False),
        2: ("spanId", _HEX, False),
        3: ("traceState", _TEXT, False),
        4: ("parentSpanId", _HEX, False),
        5: ("name", _TEXT, False),
        6: ("kind", _NUMBER, False),
        7: ("startTimeUnixNano", _FIXED64, False),
        8: ("endTimeUnixNano", _FIXED64, False),
        9: ("attributes", "KeyValue", True),
        10: ("droppedAttributesCount", _NUMBER, False),
        11: ("events", "Event", True),
        12: ("droppedEventsCount", _NUMBER, False),
        13: ("links", "Link", True),
        14: ("droppedLinksCount", _NUMBER, False),
        15: ("status", "Status", False),
        16: ("flags", _FIXED32, False),
    },
    "Event": {
        1: ("timeUnixNano", _FIXED64, False),
        2: ("name", _TEXT, False),
        3: ("attributes", "KeyValue", True),
        4: ("droppedAttributesCount", _NUMBER, False),
    },
    "Link": {
        1: ("traceId", _HEX, False),
        2: ("spanId", _HEX, False),
        3: ("traceState", _TEXT, False),
        4: ("attributes", "KeyValue", True),
        5: ("droppedAttributesCount", _NUMBER, False),
        6: ("flags", _FIXED32, False),
    },
    "Status": {2: ("message", _TEXT, False), 3: ("code", _NUMBER, False)},
    "KeyValue": {1: ("key", _TEXT, False), 2: ("value", "AnyValue", False)},
    "AnyValue": {
        1: ("stringValue", _TEXT, False),
        2: ("boolValue", _BOOL, False),
        3: ("intValue", _SIGNED, False),
        4: ("doubleValue", _DOUBLE, False),
        5: ("arrayValue", "Array", False),
        6: ("kvlistValue", "List", False),
        7: ("bytesValue", _BASE64, False),
    },
    "Array": {1: ("values", "AnyValue", True)},
    "List": {1: ("values", "KeyValue", True)},
}
_NUMBERS = {
    message: {name: (number, kind, is_list) for number, (name, kind, is_list) in fields.items()}
    for message, fields in _MESSAGES.items()
}


# Writing


def encoded(message: str, document: "dict[str, Any]") -> bytes:
    """Write a document as the message it is; what the message has no field for is left out."""
    parts: list[bytes] = []
    for name, value in document.items():
        if name not in _NUMBERS[message]:
            continue
        number, kind, is_list = _NUMBERS[message][name]
        for item in value if is_list else (value,):
            parts.append(_field(number, kind, item))
    return b"".join(parts)


def _field(number: int, kind: str, value: "Any") -> bytes:
    if kind in _WIRE:
        return _varint(number << 3 | _WIRE[kind]) + _scalar(kind, value)
    data: bytes
    match kind:
        case "text":
            data = value.encode("utf-8", "replace")
        case "hex":
            data = bytes.fromhex(value)
        case "base64":
            data = base64.b64decode(value)
        case _:
            data = encoded(kind, value)
    return _varint(number << 3 | _BYTES) + _varint(len(data)) + data


def _scalar(kind: str, value: "Any") -> bytes:
    if kind == _DOUBLE:
        return struct.pack("<d", float(value))
    whole = int(value)
    if kind == _FIXED64:
        return struct.pack("<Q", whole)
    if kind == _FIXED32:
        return struct.pack("<I", whole)
    return _varint(whole % _WRAP)


def _varint(value: int) -> bytes:
    if value < 0x80:
        return bytes((value,))
    found = bytearray()
    while value >= 0x80:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    found.append(value)
    return bytes(found)


# Reading


def decoded(message: str, data: bytes) -> "dict[str, Any]":
    """Read a message; fields that are not known are passed over, and what is no such message is refused."""
    try:
        return _decoded(message, memoryview(data), 0, [_MOST_FIELDS])
    except (IndexError, struct.error):
        raise Invalid("the message ends in the middle of a field") from None


def _decoded(message: str, data: memoryview, depth: int, room: list[int]) -> "dict[str, Any]":
    if depth > _DEEPEST:
        raise Invalid(f"the message is nested deeper than {_DEEPEST} levels")
    fields = _MESSAGES[message]
    found: dict[str, Any] = {}
    place, end = 0, len(data)
    while place < end:
        room[0] -= 1
        if room[0] < 0:
            raise TooLarge(f"the message has more than {_MOST_FIELDS} fields")
        tag, place = _read_varint(data, place)
        wire, known = tag & 7, fields.get(tag >> 3)
        start, place = _past(data, place, wire)
        if place > end:
            raise Invalid("the message ends in the middle of a field")
        if known is None:
            continue
        name, kind, is_list = known
        if wire != _WIRE.get(kind, _BYTES):
            raise Invalid(f"the field {name} is written as another kind of value")
        read = _READ.get(kind)
        value = _decoded(kind, data[start:place], depth + 1, room) if read is None else read(data[start:place])
        if is_list:
            found.setdefault(name, []).append(value)
        else:
            found[name] = value
    return found


def _past(data: memoryview, place: int, wire: int) -> tuple[int, int]:
    """Return where a field's value begins and ends."""
    match wire:
        case 0:
            return place, _read_varint(data, place)[1]
        case 1:
            return place, place + 8
        case 2:
            length, start = _read_varint(data, place)
            return start, start + length
        case 5:
            return place, place + 4
    raise Invalid(f"a field is written in a way that is not known: {wire}")


def _read_varint(data: memoryview, place: int) -> tuple[int, int]:
    byte = data[place]
    if byte < 0x80:
        return byte, place + 1
    value = shift = 0
    for step in range(_LONGEST_VARINT):
        byte = data[place + step]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value % _WRAP, place + step + 1
        shift += 7
    raise Invalid("a number is longer than any can be")


def _signed(data: memoryview) -> int:
    value = _read_varint(data, 0)[0]
    return value - _WRAP if value >= _SIGN else value


def _text(data: memoryview) -> str:
    return str(data, "utf-8", "replace")


_READ: "dict[str, Callable[[memoryview], Any]]" = {
    _TEXT: _text,
    _HEX: lambda data: data.hex(),
    _BASE64: lambda data: base64.b64encode(data).decode(),
    _NUMBER: lambda data: _read_varint(data, 0)[0],
    _SIGNED: _signed,
    _BOOL: lambda data: _read_varint(data, 0)[0] != 0,
    _FIXED64: lambda data: struct.unpack("<Q", data)[0],
    _FIXED32: lambda data: struct.unpack("<I", data)[0],
    _DOUBLE: lambda data: struct.unpack("<d", data)[0],
}
