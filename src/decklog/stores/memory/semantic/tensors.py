"""Arrays of numbers in a file: a length, a list of names with their kinds, shapes and places, and the numbers themselves."""

import json
import struct
from typing import TYPE_CHECKING, Any

from decklog.core.errors import Damaged
from decklog.stores.memory.semantic.arrays import numpy

if TYPE_CHECKING:
    from numpy.typing import NDArray

_KINDS = {"F32": numpy.float32, "F16": numpy.float16, "I64": numpy.int64}
_LONGEST_LIST = 1 << 20


def read(path: str) -> "dict[str, NDArray[Any]]":
    """Map the arrays of a file by their names; their numbers are read when they are used."""
    # A plain array over the same bytes: each step of a calculation with a mapped one asks whether its result is mapped too.
    whole = numpy.asarray(numpy.memmap(path, dtype=numpy.uint8, mode="r"))
    try:
        (length,) = struct.unpack("<Q", bytes(whole[:8]))
        if length > _LONGEST_LIST:
            raise ValueError("the list of arrays is too long")
        listed = json.loads(bytes(whole[8 : 8 + length]))
        start = 8 + length
        return {name: _array(whole, start, said) for name, said in listed.items() if name != "__metadata__"}
    except (ValueError, KeyError, TypeError, struct.error) as problem:
        raise Damaged(f"{path} can't be read: {problem}", hint="Install it anew: decklog memory model install") from None


def _array(whole: "NDArray[Any]", start: int, said: dict[str, Any]) -> "NDArray[Any]":
    first, end = said["data_offsets"]
    return whole[start + first : start + end].view(_KINDS[said["dtype"]]).reshape(said["shape"])
