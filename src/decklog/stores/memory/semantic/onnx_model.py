"""Models as onnxruntime reads them: nodes with inputs and outputs and constant arrays, written as a protocol buffer.

Only what one encoder needs is here. The fields' numbers are those of the ONNX format, version 9 of its representation.
"""

from dataclasses import dataclass, field
from struct import pack
from typing import TYPE_CHECKING, Any

from decklog.stores.memory.semantic.arrays import numpy

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Attribute = int | float | str | list[int]

_REPRESENTATION, _OPERATORS = 9, 20
_FLOAT = 1
_KINDS = {"float32": _FLOAT, "uint8": 2, "int8": 3, "int64": 7}


@dataclass
class OnnxModel:
    """A graph that is put together node by node; whatever a node gives is known by the name that comes back."""

    _nodes: list[bytes] = field(default_factory=list)
    _constants: list[bytes] = field(default_factory=list)
    _names: int = 0

    def constant(self, numbers: "NDArray[Any]") -> str:
        """Add an array that never changes."""
        name = self._new("constant")
        dimensions = b"".join(_number(1, length) for length in numbers.shape)
        kind = _number(2, _KINDS[numbers.dtype.name])
        self._constants.append(dimensions + kind + _text(8, name) + _bytes(9, numpy.ascontiguousarray(numbers).tobytes()))
        return name

    def node(self, kind: str, inputs: "Sequence[str]", makes: int, attributes: "dict[str, Attribute]") -> "tuple[str, ...]":
        """Add what works on named inputs; give the names of what it makes."""
        made = tuple(self._new(kind) for _ in range(makes))
        said = b"".join(
            (
                *(_text(1, name) for name in inputs),
                *(_text(2, name) for name in made),
                _text(4, kind),
                *(_bytes(5, _attribute(name, value)) for name, value in attributes.items()),
            )
        )
        self._nodes.append(said)
        return made

    def one(self, kind: str, *inputs: str, **attributes: "Attribute") -> str:
        """Add what makes one thing of named inputs."""
        return self.node(kind, inputs, 1, attributes)[0]

    def written(self, inputs: "dict[str, list[int | str]]", output: str) -> bytes:
        """Write the whole model, with the shapes of what it is given: lengths that vary have names."""
        graph = b"".join(
            (
                *(_bytes(1, node) for node in self._nodes),
                _text(2, "encoder"),
                *(_bytes(5, constant) for constant in self._constants),
                *(_bytes(11, _value(name, shape)) for name, shape in inputs.items()),
                _bytes(12, _value(output, None)),
            )
        )
        return _number(1, _REPRESENTATION) + _bytes(7, graph) + _bytes(8, _text(1, "") + _number(2, _OPERATORS))

    def _new(self, kind: str) -> str:
        self._names += 1
        return f"{kind}{self._names}"


def _value(name: str, shape: "list[int | str] | None") -> bytes:
    kind = _number(1, _FLOAT)
    if shape is not None:
        kind += _bytes(2, b"".join(_bytes(1, _text(2, one) if isinstance(one, str) else _number(1, one)) for one in shape))
    return _text(1, name) + _bytes(2, _bytes(1, kind))


def _attribute(name: str, value: "Attribute") -> bytes:
    match value:
        case float():
            return _text(1, name) + _tag(2, 5) + pack("<f", value) + _number(20, 1)
        case str():
            return _text(1, name) + _text(4, value) + _number(20, 3)
        case int():
            return _text(1, name) + _number(3, value) + _number(20, 2)
        case _:
            return _text(1, name) + b"".join(_number(8, one) for one in value) + _number(20, 7)


def _number(place: int, value: int) -> bytes:
    return _tag(place, 0) + _varint(value)


def _text(place: int, value: str) -> bytes:
    return _bytes(place, value.encode())


def _bytes(place: int, value: bytes) -> bytes:
    return _tag(place, 2) + _varint(len(value)) + value


def _tag(place: int, form: int) -> bytes:
    return _varint(place << 3 | form)


def _varint(value: int) -> bytes:
    """Write a number in groups of seven bits, the lowest first; one below zero as the 64 bits that stand for it."""
    value &= (1 << 64) - 1
    written = bytearray()
    while value > 127:
        written.append(value & 127 | 128)
        value >>= 7
    written.append(value)
    return bytes(written)
