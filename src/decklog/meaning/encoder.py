"""The model itself: six layers of attention over a text's pieces, whose vectors are averaged.

Texts of about the same length go through together: by onnxruntime where it is installed, and else by numpy.
"""

import os
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Protocol

from decklog.meaning import kept, tensors
from decklog.meaning.arrays import numpy
from decklog.meaning.weights import EPSILON, HEADS, OF_HEAD, WIDTH, attention_of, dense_of, layers_in
from decklog.meaning.word_pieces import WordPieces

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Numbers = NDArray[numpy.float32]

_FAR = numpy.float32(-1e9)
# How much of a number, and of its cube, is in what it is bent by.
_PLAIN, _CUBED = numpy.float32(0.7978845608), numpy.float32(0.7978845608 * 0.044715)


class _Layers(Protocol):
    """What takes the pieces of texts through all layers. `together` says how many pieces of texts of one length, at most."""

    together: int

    def __call__(self, state: "Numbers", beyond: "Numbers") -> "Numbers":
        """Give the state of each piece behind the last layer; `beyond` keeps what is no piece of a text out of it."""
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
        self._first = _Scale(arrays, part + "LayerNorm")
        self._layers: _Layers = _layers_of(arrays, place)

    def embed(self, texts: list[str]) -> list[list[float]]:
        """Give a vector of length 1 for each text."""
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
        state: Numbers = self._first(self._words[numbers] + self._places[:longest])
        state = self._layers(state, ((1 - there) * _FAR)[:, None, None, :])
        summed = numpy.einsum("btw,bt->bw", state, there)
        lengths = numpy.sqrt((summed * summed).sum(axis=1, keepdims=True))
        found: list[list[float]] = (summed / numpy.maximum(lengths, EPSILON)).tolist()
        return found


class _Scale:
    """Brings each vector to the same mean and spread."""

    def __init__(self, arrays: "dict[str, NDArray[Any]]", name: str) -> None:
        self._weight, self._bias = arrays[name + ".weight"], arrays[name + ".bias"]

    def __call__(self, state: "Numbers") -> "Numbers":
        """Change a state in place: at a question's length, making an array takes as long as filling it."""
        mean = numpy.add.reduce(state, axis=-1, keepdims=True)
        mean /= WIDTH
        state -= mean
        # Summed in this order: weights of seven bits turn a difference in the last digit into another vector.
        spread = numpy.einsum("...w,...w->...", state, state)
        spread /= WIDTH
        spread += EPSILON
        numpy.sqrt(spread, out=spread)
        state /= spread[..., None]
        state *= self._weight
        state += self._bias
        return state


def _layers_of(arrays: "dict[str, NDArray[Any]]", place: str) -> "_Layers":
    if find_spec("onnxruntime") is not None:
        from decklog.meaning.quantised import QuantisedLayers

        return QuantisedLayers(arrays, place)
    return ExactLayers(arrays)


class ExactLayers:
    """All layers with their weights as they are, multiplied by numpy."""

    # So many pieces go through together: more would not fit the caches, fewer would not fill the multiplications.
    together = 2_048

    def __init__(self, arrays: "dict[str, NDArray[Any]]") -> None:
        self._layers = [_Layer(arrays, part) for part in layers_in(arrays)]

    def __call__(self, state: "Numbers", beyond: "Numbers") -> "Numbers":
        texts, pieces, _ = state.shape
        flat = state.reshape(-1, WIDTH)
        # Of a text alone, as a question is, nothing has to be kept out.
        kept_out = beyond if beyond.any() else None
        for layer in self._layers:
            flat = layer(flat, texts, kept_out)
        return flat.reshape(texts, pieces, WIDTH)


class _Layer:
    """One layer: what each piece takes from the others, and what it makes of it."""

    def __init__(self, arrays: "dict[str, NDArray[Any]]", part: str) -> None:
        self._asked, self._asked_bias = attention_of(arrays, part)
        self._told, self._told_bias = dense_of(arrays, part + "attention.output.dense")
        self._after_told = _Scale(arrays, part + "attention.output.LayerNorm")
        self._wide, self._wide_bias = dense_of(arrays, part + "intermediate.dense")
        self._narrow, self._narrow_bias = dense_of(arrays, part + "output.dense")
        # What is bent comes twice as large.
        self._narrow = self._narrow * numpy.float32(0.5)
        self._after = _Scale(arrays, part + "output.LayerNorm")

    def __call__(self, state: "Numbers", texts: int, beyond: "Numbers | None") -> "Numbers":
        taken = self._taken(state, texts, beyond) @ self._told
        taken += self._told_bias
        taken += state
        taken = self._after_told(taken)
        wide = taken @ self._wide
        wide += self._wide_bias
        made: Numbers = _bent(wide) @ self._narrow
        made += self._narrow_bias
        made += taken
        return self._after(made)

    def _taken(self, state: "Numbers", texts: int, beyond: "Numbers | None") -> "Numbers":
        """Give what each piece takes from those of its text, by how well they answer what it asks."""
        asked = state @ self._asked
        asked += self._asked_bias
        query, key, value = asked.reshape(texts, -1, 3, HEADS, OF_HEAD).transpose(2, 0, 3, 1, 4)
        scores = query @ key.transpose(0, 1, 3, 2)
        if beyond is not None:
            scores += beyond
        scores -= numpy.maximum.reduce(scores, axis=-1, keepdims=True)
        numpy.exp(scores, out=scores)
        scores /= numpy.add.reduce(scores, axis=-1, keepdims=True)
        taken: Numbers = (scores @ value).transpose(0, 2, 1, 3).reshape(-1, WIDTH)
        return taken


def _bent(value: "Numbers") -> "Numbers":
    """Bend numbers as the model was trained with, twice as large, in the form that needs no integral.

    That differs in the fourth digit.
    """
    inner = value * value
    inner *= _CUBED
    inner += _PLAIN
    inner *= value
    numpy.tanh(inner, out=inner)
    inner += 1
    inner *= value
    return inner


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
