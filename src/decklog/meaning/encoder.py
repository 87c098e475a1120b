"""The model itself: six layers of attention over a text's pieces, whose vectors are averaged.

What is the same for every text is laid out once: the three projections of a layer are one matrix, and all matrices lie as they
are multiplied. Texts of about the same length go through together.
"""

import os
from typing import TYPE_CHECKING, Any

from decklog.meaning import kept, tensors
from decklog.meaning.arrays import numpy
from decklog.meaning.word_pieces import WordPieces

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Numbers = NDArray[numpy.float32]

_LAYERS, _HEADS, _WIDTH = 6, 12, 384
_OF_HEAD = _WIDTH // _HEADS
_EPSILON = 1e-12
# So many pieces go through together: more would not fit the caches, fewer would not fill the multiplications.
_TOGETHER = 2_048
_FAR = numpy.float32(-1e9)


class MiniLM:
    """all-MiniLM-L6-v2, run with numpy."""

    name = kept.NAME
    dimensions = _WIDTH

    def __init__(self, place: str) -> None:
        arrays = tensors.read(os.path.join(place, kept.WEIGHTS))
        with open(os.path.join(place, kept.VOCABULARY), encoding="utf-8") as file:
            self._pieces = WordPieces(file.read().split("\n"))
        part = "embeddings."
        self._words = arrays[part + "word_embeddings.weight"]
        kind = arrays[part + "token_type_embeddings.weight"][0]
        self._places: Numbers = arrays[part + "position_embeddings.weight"] + kind
        self._first = _Scale(arrays, part + "LayerNorm")
        self._layers = [_Layer(arrays, f"encoder.layer.{number}.") for number in range(_LAYERS)]

    def embed(self, texts: list[str]) -> list[list[float]]:
        """Give a vector of length 1 for each text."""
        numbered = [self._pieces.numbers(text) for text in texts]
        vectors: list[list[float]] = [[] for _ in texts]
        for group in _groups(numbered):
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
        state: Numbers = self._first(self._words[numbers] + self._places[:longest])
        beyond = ((1 - there) * _FAR)[:, None, None, :] if len(texts) > 1 else None
        for layer in self._layers:
            state = layer(state, beyond)
        summed = numpy.einsum("btw,bt->bw", state, there)
        lengths = numpy.sqrt((summed * summed).sum(axis=1, keepdims=True))
        found: list[list[float]] = (summed / numpy.maximum(lengths, _EPSILON)).tolist()
        return found


class _Scale:
    """Brings each vector to the same mean and spread."""

    def __init__(self, arrays: "dict[str, NDArray[Any]]", name: str) -> None:
        self._weight, self._bias = arrays[name + ".weight"], arrays[name + ".bias"]

    def __call__(self, state: "Numbers") -> "Numbers":
        state = state - state.mean(axis=-1, keepdims=True)
        spread = numpy.sqrt(numpy.einsum("...w,...w->...", state, state) / _WIDTH + _EPSILON)
        state /= spread[..., None]
        state *= self._weight
        state += self._bias
        return state


class _Layer:
    """One layer: what each piece takes from the others, and what it makes of it."""

    def __init__(self, arrays: "dict[str, NDArray[Any]]", part: str) -> None:
        said = part + "attention.self."
        names = ("query", "key", "value")
        self._asked = numpy.ascontiguousarray(numpy.concatenate([arrays[f"{said}{name}.weight"] for name in names]).T)
        self._asked_bias = numpy.concatenate([arrays[f"{said}{name}.bias"] for name in names])
        # The scale of the attention is part of the question.
        scale = numpy.float32(_OF_HEAD**-0.5)
        self._asked[:, :_WIDTH] *= scale
        self._asked_bias[:_WIDTH] *= scale
        self._told, self._told_bias = _matrix(arrays, part + "attention.output.dense")
        self._after_told = _Scale(arrays, part + "attention.output.LayerNorm")
        self._wide, self._wide_bias = _matrix(arrays, part + "intermediate.dense")
        self._narrow, self._narrow_bias = _matrix(arrays, part + "output.dense")
        self._after = _Scale(arrays, part + "output.LayerNorm")

    def __call__(self, state: "Numbers", beyond: "Numbers | None") -> "Numbers":
        texts, pieces, _ = state.shape
        flat = state.reshape(-1, _WIDTH)
        asked = (flat @ self._asked + self._asked_bias).reshape(texts, pieces, 3, _HEADS, _OF_HEAD)
        query, key, value = asked.transpose(2, 0, 3, 1, 4)
        scores = query @ key.transpose(0, 1, 3, 2)
        if beyond is not None:
            scores += beyond
        scores -= scores.max(axis=-1, keepdims=True)
        numpy.exp(scores, out=scores)
        scores /= scores.sum(axis=-1, keepdims=True)
        told = (scores @ value).transpose(0, 2, 1, 3).reshape(-1, _WIDTH)
        flat = self._after_told(flat + told @ self._told + self._told_bias)
        wide = _bent(flat @ self._wide + self._wide_bias)
        return self._after(flat + wide @ self._narrow + self._narrow_bias).reshape(texts, pieces, _WIDTH)


def _bent(value: "Numbers") -> "Numbers":
    """Bend numbers as the model was trained with, in the form that needs no integral: they differ in the fourth digit."""
    inner = value * value
    inner *= numpy.float32(0.044715)
    inner += 1
    inner *= value
    inner *= numpy.float32(0.7978845608)
    numpy.tanh(inner, out=inner)
    inner += 1
    inner *= value
    inner *= numpy.float32(0.5)
    return inner


def _matrix(arrays: "dict[str, NDArray[Any]]", name: str) -> "tuple[Numbers, Numbers]":
    return numpy.ascontiguousarray(arrays[name + ".weight"].T), arrays[name + ".bias"]


def _groups(numbered: list[list[int]]) -> list[list[int]]:
    """Put texts of about the same length together, by their places."""
    groups: list[list[int]] = []
    for place in sorted(range(len(numbered)), key=lambda place: len(numbered[place])):
        length = len(numbered[place])
        if groups and length * (len(groups[-1]) + 1) <= _TOGETHER and length <= 2 * len(numbered[groups[-1][0]]):
            groups[-1].append(place)
        else:
            groups.append([place])
    return groups
