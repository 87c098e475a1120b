"""Cutting of texts into the pieces of words that a model knows, each by its number."""

import re
import unicodedata
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

LONGEST = 256
# A longer word is no word, and would take time with its square.
_LONGEST_WORD = 100
_SAMPLES, _SAMPLE_WORDS, _SAMPLE_STEP = 32, 16, 4
_WORDS = re.compile(r"[^\W_]+|[^\w\s]|_")
# Signs of these writings are words of their own.
_SINGLE = re.compile(r"([\u3400-\u9fff\uf900-\ufaff\U00020000-\U0002fa1f])")


class WordPieces:
    """The vocabulary of a model."""

    def __init__(self, words: list[str]) -> None:
        self._numbers = {word: number for number, word in enumerate(words)}
        self._begin, self._end, self._unknown = (self._numbers[word] for word in ("[CLS]", "[SEP]", "[UNK]"))
        self._known: dict[str, list[int]] = {}

    def numbers(self, text: str) -> list[int]:
        """Return the numbers of a text's pieces, its beginning and its end marked; what is too long is cut off."""
        found: list[int] = []
        for word in _WORDS.findall(_plain(text)):
            found += self._pieces(word)
            if len(found) >= LONGEST - 2:
                break
        return [self._begin, *found[: LONGEST - 2], self._end]

    def samples(self) -> "Iterator[list[int]]":
        """Give texts of the words that the vocabulary names first, which are its most frequent ones."""
        whole = [number for word, number in self._numbers.items() if word.isascii() and word.isalpha() and len(word) > 2]
        # Not side by side: neighbours are as frequent as each other, and a text has all kinds.
        spread = whole[: _SAMPLES * _SAMPLE_WORDS * _SAMPLE_STEP : _SAMPLE_STEP] or whole
        for start in range(0, len(spread), _SAMPLE_WORDS):
            yield [self._begin, *spread[start : start + _SAMPLE_WORDS], self._end]

    def _pieces(self, word: str) -> list[int]:
        known = self._known.get(word)
        if known is None:
            known = self._known[word] = self._cut(word)
        return known

    def _cut(self, word: str) -> list[int]:
        """Cut a word into the longest pieces that there are; one that can't be cut is unknown."""
        pieces: list[int] = []
        start = 0
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


def _plain(text: str) -> str:
    """Write a text in small letters without accents."""
    # No more of it can count: a piece has a letter at least, and few words have twenty.
    text = text[: LONGEST * 20].lower()
    if not text.isascii():
        parts = unicodedata.normalize("NFD", text)
        text = _SINGLE.sub(r" \1 ", "".join(letter for letter in parts if unicodedata.category(letter) != "Mn"))
    return text
