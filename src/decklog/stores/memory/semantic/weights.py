"""The weights of a layer as they are multiplied; the three projections are one matrix, with the attention's scale in it."""

from typing import TYPE_CHECKING, Any

from decklog.stores.memory.semantic.arrays import numpy

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Numbers = NDArray[numpy.float32]
    Arrays = dict[str, NDArray[Any]]

HEADS, WIDTH = 12, 384
OF_HEAD = WIDTH // HEADS
EPSILON = 1e-12


def layers_in(arrays: "Arrays") -> list[str]:
    """Return what the names of each layer's weights begin with, in their order."""
    numbers = {int(name.split(".")[2]) for name in arrays if name.startswith("encoder.layer.")}
    return [f"encoder.layer.{number}." for number in sorted(numbers)]


def dense_of(arrays: "Arrays", name: str) -> "tuple[Numbers, Numbers]":
    """Return a matrix and what is added behind it."""
    return numpy.ascontiguousarray(arrays[name + ".weight"].T), arrays[name + ".bias"]


def attention_of(arrays: "Arrays", part: str) -> "tuple[Numbers, Numbers]":
    """Return the projections of a layer: of what each piece asks, what it is found by, and what it tells."""
    names = [f"{part}attention.self.{name}" for name in ("query", "key", "value")]
    matrix = numpy.ascontiguousarray(numpy.concatenate([arrays[name + ".weight"] for name in names]).T)
    bias = numpy.concatenate([arrays[name + ".bias"] for name in names])
    scale = numpy.float32(OF_HEAD**-0.5)
    matrix[:, :WIDTH] *= scale
    bias[:WIDTH] *= scale
    return matrix, bias
