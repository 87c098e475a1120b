"""An embedder that needs no model: hashed words, their senses, and character n-grams.

It has learned nothing. It sees that `timeouts` and `timed out` look alike, where a stemmer does not, and of meaning it knows the
same groups of words as the index; a trained model knows far more.
"""

from math import sqrt
from zlib import crc32

from decklog.stores.memory.tokens import senses_of, words_of

_SENSE, _WORD, _LETTERS = 1.5, 1.0, 0.3


class HashedWords:
    """Adds up a hashed, signed vector for each sense, each word, and each of its 3-, 4- and 5-grams."""

    name = "hashed-words-512"
    dimensions = 512

    def embed(self, texts: list[str]) -> list[list[float]]:
        return [self._one(text) for text in texts]

    def _one(self, text: str) -> list[float]:
        vector = [0.0] * self.dimensions
        words = words_of(text)
        for sense in senses_of(words):
            self._add(vector, sense, _SENSE)
        for word in dict.fromkeys(words):
            self._add(vector, word, _WORD)
            padded = f"<{word}>"
            grams = [padded[start : start + size] for size in (3, 4, 5) for start in range(len(padded) - size + 1)]
            for gram in grams:
                self._add(vector, gram, _LETTERS / sqrt(len(grams)))
        return vector

    def _add(self, vector: list[float], feature: str, weight: float) -> None:
        digest = crc32(feature.encode())
        vector[digest % self.dimensions] += weight if digest & 0x8000_0000 else -weight
