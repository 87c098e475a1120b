"""The sentence model all-MiniLM-L6-v2 on numpy: word pieces, six transformer layers, mean pooling."""

import json
import os
import re
import struct
import unicodedata
from typing import Any

from numpy.typing import NDArray

from decklog.core.errors import Damaged, Unavailable

_SETTING = "OPENBLAS_NUM_THREADS"
_given = os.environ.get(_SETTING)
os.environ.setdefault(_SETTING, "1")
try:
    import numpy
except ImportError as problem:
    reason = " ".join(str(problem).split())
    raise Unavailable(
        f"numpy can't be loaded: {reason}", hint="Install it again: pip install --force-reinstall numpy"
    ) from problem
finally:
    if _given is None:
        del os.environ[_SETTING]

__all__ = ["numpy"]


WIDTH, HEADS = 384, 12
LONGEST = 256
_EPSILON = 1e-12
_LONGEST_WORD = 100
_LONGEST_HEADER = 1 << 20
_TYPES = {"F32": numpy.float32, "F16": numpy.float16, "I64": numpy.int64}
_WORDS = re.compile(r"[^\W_]+|[^\w\s]|_")
# Each of these characters is a word.
_IDEOGRAPHS = re.compile(r"([\u3400-\u9fff\uf900-\ufaff\U00020000-\U0002fa1f])")

Array = NDArray[Any]


class MiniLM:
    """Turns texts into vectors of length 1."""

    def __init__(self, weights: str, vocabulary: str) -> None:
        tensors = read_tensors(weights)
        with open(vocabulary, encoding="utf-8") as file:
            self._pieces = WordPieces(file.read().split("\n"))
        self._words = tensors["embeddings.word_embeddings.weight"]
        kind = tensors["embeddings.token_type_embeddings.weight"][0]
        self._positions = tensors["embeddings.position_embeddings.weight"] + kind
        self._norm = _LayerNorm(tensors, "embeddings.LayerNorm")
        layers = {int(name.split(".")[2]) for name in tensors if name.startswith("encoder.layer.")}
        self._layers = [_Layer(tensors, f"encoder.layer.{number}.") for number in sorted(layers)]

    def embed(self, texts: list[str]) -> list[list[float]]:
        """Return a vector for each text."""
        return [self._embed(text) for text in texts]

    def _embed(self, text: str) -> list[float]:
        numbers = self._pieces.numbers(text)
        state = self._norm(self._words[numbers] + self._positions[: len(numbers)])
        for layer in self._layers:
            state = layer(state)
        total = state.sum(axis=0)
        vector: list[float] = (total / max(float(numpy.sqrt(total @ total)), _EPSILON)).tolist()
        return vector


class _Layer:
    """Self-attention and a feed-forward network, each with a residual connection."""

    def __init__(self, tensors: dict[str, Array], prefix: str) -> None:
        self._query, self._key, self._value = (
            _Linear(tensors, f"{prefix}attention.self.{name}") for name in ("query", "key", "value")
        )
        self._output = _Linear(tensors, prefix + "attention.output.dense")
        self._attention_norm = _LayerNorm(tensors, prefix + "attention.output.LayerNorm")
        self._expand = _Linear(tensors, prefix + "intermediate.dense")
        self._reduce = _Linear(tensors, prefix + "output.dense")
        self._output_norm = _LayerNorm(tensors, prefix + "output.LayerNorm")

    def __call__(self, state: Array) -> Array:
        state = self._attention_norm(state + self._output(self._attend(state)))
        return self._output_norm(state + self._reduce(_gelu(self._expand(state))))

    def _attend(self, state: Array) -> Array:
        query, key, value = (
            part(state).reshape(len(state), HEADS, -1).transpose(1, 0, 2) for part in (self._query, self._key, self._value)
        )
        scores = query @ key.transpose(0, 2, 1) * numpy.float32((WIDTH // HEADS) ** -0.5)
        weights = numpy.exp(scores - scores.max(axis=-1, keepdims=True))
        weights /= weights.sum(axis=-1, keepdims=True)
        attended: Array = (weights @ value).transpose(1, 0, 2).reshape(len(state), WIDTH)
        return attended


class _Linear:
    def __init__(self, tensors: dict[str, Array], name: str) -> None:
        self._weight = numpy.ascontiguousarray(tensors[name + ".weight"].T)
        self._bias = tensors[name + ".bias"]

    def __call__(self, state: Array) -> Array:
        product: Array = state @ self._weight + self._bias
        return product


class _LayerNorm:
    def __init__(self, tensors: dict[str, Array], name: str) -> None:
        self._weight, self._bias = tensors[name + ".weight"], tensors[name + ".bias"]

    def __call__(self, state: Array) -> Array:
        centred = state - state.mean(axis=-1, keepdims=True)
        scale = numpy.sqrt((centred * centred).mean(axis=-1, keepdims=True) + _EPSILON)
        normed: Array = centred / scale * self._weight + self._bias
        return normed


def _gelu(state: Array) -> Array:
    """Return GELU by its tanh approximation, which differs in the fourth digit."""
    inner = numpy.float32(0.7978845608) * state * (1 + numpy.float32(0.044715) * state * state)
    activated: Array = numpy.float32(0.5) * state * (1 + numpy.tanh(inner))
    return activated


def read_tensors(path: str) -> dict[str, Array]:
    """Map the tensors of a safetensors file by their names."""
    # A plain array over the mapped bytes: arithmetic with a memmap checks at each step whether the result is one.
    content = numpy.asarray(numpy.memmap(path, dtype=numpy.uint8, mode="r"))
    try:
        (length,) = struct.unpack("<Q", bytes(content[:8]))
        if length > _LONGEST_HEADER:
            raise ValueError("the header is too long")
        header = json.loads(bytes(content[8 : 8 + length]))
        return {name: _tensor(content[8 + length :], entry) for name, entry in header.items() if name != "__metadata__"}
    except (ValueError, KeyError, TypeError, struct.error) as problem:
        raise Damaged(f"{path} can't be read: {problem}", hint="Install it again: decklog memory model install") from None


def _tensor(data: Array, entry: dict[str, Any]) -> Array:
    start, end = entry["data_offsets"]
    return data[start:end].view(_TYPES[entry["dtype"]]).reshape(entry["shape"])


class WordPieces:
    """Splits texts into the pieces of a vocabulary."""

    def __init__(self, words: list[str]) -> None:
        self._numbers = {word: number for number, word in enumerate(words)}
        self._begin, self._end, self._unknown = (self._numbers[word] for word in ("[CLS]", "[SEP]", "[UNK]"))

    def numbers(self, text: str) -> list[int]:
        """Return the numbers of a text's pieces between begin and end marks, cut off at LONGEST."""
        found: list[int] = []
        for word in _WORDS.findall(_normalized(text)):
            found += self._split(word)
            if len(found) >= LONGEST - 2:
                break
        return [self._begin, *found[: LONGEST - 2], self._end]

    def _split(self, word: str) -> list[int]:
        """Split a word into the longest known pieces; a word that can't be split is unknown."""
        pieces: list[int] = []
        start = 0
        # The search is quadratic in the length of the word.
        while start < len(word) and len(word) <= _LONGEST_WORD:
            for end in range(len(word), start, -1):
                number = self._numbers.get(("##" if start else "") + word[start:end])
                if number is not None:
                    pieces.append(number)
                    start = end
                    break
            else:
                return [self._unknown]
        return pieces or [self._unknown]


def _normalized(text: str) -> str:
    """Return the beginning of a text in lower case without accents."""
    text = text[: LONGEST * 20].lower()
    if not text.isascii():
        parts = unicodedata.normalize("NFD", text)
        text = _IDEOGRAPHS.sub(r" \1 ", "".join(letter for letter in parts if unicodedata.category(letter) != "Mn"))
    return text
