"""Embedders: whatever turns texts into vectors. The model that is kept on this machine, or one of your own."""

from array import array
from math import sqrt
from typing import Protocol

from decklog.core.errors import DecklogError, Invalid, Unavailable


class Embedder(Protocol):
    """Turns texts into vectors. `name` is stored with each vector: vectors of another name are never compared with them.

    One that has a number `least` says how much a lesson must have to be told: its cosine and the share of the words together.
    """

    name: str
    dimensions: int

    def embed(self, texts: list[str]) -> list[list[float]]: ...


def embedded(embedder: Embedder, texts: list[str]) -> list[list[float]]:
    """Embed texts; refuse what is not one finite vector of the promised length for each. Each comes back with length 1."""
    try:
        vectors = embedder.embed(texts)
    except DecklogError:
        raise
    except Exception as problem:
        # An embedder is anybody's code: whatever it fails with, words are still there.
        raise Unavailable(f"the embedder {embedder.name} failed: {type(problem).__name__}: {problem}") from problem
    if len(vectors) != len(texts):
        raise Invalid(f"the embedder {embedder.name} gave {len(vectors)} vectors for {len(texts)} texts")
    return [_unit(embedder, vector) for vector in vectors]


def _unit(embedder: Embedder, vector: list[float]) -> list[float]:
    if len(vector) != embedder.dimensions:
        raise Invalid(f"the embedder {embedder.name} promised {embedder.dimensions} dimensions and gave {len(vector)}")
    length = sqrt(sum(part * part for part in vector))
    if length != length or length == float("inf"):
        raise Invalid(f"the embedder {embedder.name} gave a vector that is not finite")
    # 32-bit floats are what is stored; rounding here makes every engine compare the same numbers.
    return list(array("f", [part / length if length else 0.0 for part in vector]))
