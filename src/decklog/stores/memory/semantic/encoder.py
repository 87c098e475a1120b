"""The model itself: six layers of attention over a text's pieces, whose vectors are averaged.

Texts of about the same length go through together: by onnxruntime where it is installed, and else by numpy.
"""

import os
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Protocol

from decklog.stores.memory.semantic import kept, tensors
from decklog.stores.memory.semantic.arrays import numpy
from decklog.stores.memory.semantic.exact import ExactLayers, Scale
from decklog.stores.memory.semantic.weights import EPSILON, WIDTH
from decklog.stores.memory.semantic.word_pieces import WordPieces

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    Numbers = NDArray[numpy.float32]

_FAR = numpy.float32(-1e9)


class _Layers(Protocol):
    """What takes the pieces of texts through all layers. `together` says how many pieces of texts of one length, at most."""

    together: int

    def __call__(self, state: "Numbers", beyond: "Numbers") -> "Numbers":
        """Return the state of each piece behind the last layer; `beyond` keeps what is no piece of a text out of it."""
        ...


class MiniLM:
    """all-MiniLM-L6-v2."""

    name = kept.NAME
    dimensions = WIDTH

    def __init__(self, place: str) -> None:
        arrays = tensors.read(os.path.join(place, kept.WEIGHTS))
        with open(os.path.join(place, kept.VOCABULARY), encoding="utf-8") as file:
            self._pieces = WordPieces(file.read().split("\n"))
        part = "embeddings."
        self._words = arrays[part + "word_embeddings.weight"]
        kind = arrays[part + "token_type_embeddings.weight"][0]
        self._places: Numbers = arrays[part + "position_embeddings.weight"] + kind
        self._first = Scale(arrays, part + "LayerNorm")
        self._layers: _Layers = self._layers_of(arrays, place)

    def embed(self, texts: list[str]) -> list[list[float]]:
        """Return a vector of length 1 for each text."""
        numbered = [self._pieces.numbers(text) for text in texts]
        vectors: list[list[float]] = [[] for _ in texts]
        for group in _groups(numbered, self._layers.together):
            for place, vector in zip(group, self._through([numbered[place] for place in group]), strict=True):
                vectors[place] = vector
        return vectors

    def _through(self, texts: list[list[int]]) -> list[list[float]]:
        longest = max(map(len, texts))
        numbers = numpy.zeros((len(texts), longest), dtype=numpy.int64)
        there = numpy.zeros((len(texts), longest), dtype=numpy.float32)
        for row, text in enumerate(texts):
            numbers[row, : len(text)] = text
            there[row, : len(text)] = 1
        state = self._layers(self._begun(numbers), ((1 - there) * _FAR)[:, None, None, :])
        summed = numpy.einsum("btw,bt->bw", state, there)
        lengths = numpy.sqrt((summed * summed).sum(axis=1, keepdims=True))
        found: list[list[float]] = (summed / numpy.maximum(lengths, EPSILON)).tolist()
        return found

    def _begun(self, numbers: "NDArray[numpy.int64]") -> "Numbers":
        """Return the state of each piece before the first layer."""
        return self._first(self._words[numbers] + self._places[: numbers.shape[-1]])

    def _layers_of(self, arrays: "dict[str, NDArray[Any]]", place: str) -> "_Layers":
        if find_spec("onnxruntime") is not None:
            from decklog.stores.memory.semantic.quantised import QuantisedLayers

            return QuantisedLayers(arrays, place, self._samples)
        return ExactLayers(arrays)

    def _samples(self) -> "Iterator[Numbers]":
        """Give texts as they begin, by which to see how large the numbers inside of the model become."""
        for numbers in self._pieces.samples():
            yield self._begun(numpy.array(numbers))


def _groups(numbered: list[list[int]], together: int) -> list[list[int]]:
    """Put texts of about the same length together, by their places."""
    groups: list[list[int]] = []
    for place in sorted(range(len(numbered)), key=lambda place: len(numbered[place])):
        length = len(numbered[place])
        if groups and length * (len(groups[-1]) + 1) <= together and length <= 2 * len(numbered[groups[-1][0]]):
            groups[-1].append(place)
        else:
            groups.append([place])
    return groups
