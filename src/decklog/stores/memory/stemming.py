"""Stems of English words, by Porter's algorithm of 1980: `retries`, `retried` and `retry` have one.

The index is given stems, so that both engines see the same ones.
"""

import re
from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise

_SECOND = (
    *(("ational", "ate"), ("tional", "tion"), ("enci", "ence"), ("anci", "ance"), ("izer", "ize"), ("bli", "ble")),
    ("alli", "al"),
    *(("entli", "ent"), ("eli", "e"), ("ousli", "ous"), ("ization", "ize"), ("ation", "ate"), ("ator", "ate"), ("alism", "al")),
    *(("iveness", "ive"), ("fulness", "ful"), ("ousness", "ous"), ("aliti", "al"), ("iviti", "ive"), ("biliti", "ble")),
    ("logi", "log"),
)
_THIRD = (("icate", "ic"), ("ative", ""), ("alize", "al"), ("iciti", "ic"), ("ical", "ic"), ("ful", ""), ("ness", ""))
_FOURTH = tuple(
    (ending, "")
    for ending in (
        *("al", "ance", "ence", "er", "ic", "able", "ible", "ant", "ement", "ment", "ent", "ion", "ou", "ism", "ate", "iti"),
        *("ous", "ive", "ize"),
    )
)
_VOWELS = frozenset("aeiou")
_PLAIN = re.compile(r"[a-z]{3,40}")


# The words of a project are a few thousand, and the same ones come again and again.
@lru_cache(16_384)
def stem_of(word: str) -> str:
    """Return the stem of a word in lower case; what is not made of the letters a to z is its own."""
    if not _PLAIN.fullmatch(word):
        return word
    word = _replaced(inflection_of(word), _SECOND, 1)
    word = _replaced(word, _THIRD, 1)
    word = _replaced(word, _FOURTH, 2)
    return _without_last_e(word)


def inflection_of(word: str) -> str:
    """Take plural and past off a word: `retries` and `retried` become one, `retrial` stays another."""
    word = _without_past(_without_plural(word))
    return word[:-1] + "i" if word.endswith("y") and _has_vowel(word[:-1]) else word


def _without_plural(word: str) -> str:
    if word.endswith(("sses", "ies")):
        return word[:-2]
    return word[:-1] if word.endswith("s") and not word.endswith("ss") else word


def _without_past(word: str) -> str:
    if word.endswith("eed"):
        return word[:-1] if _measure(word[:-3]) > 0 else word
    for ending in ("ed", "ing"):
        stem = word.removesuffix(ending)
        if stem != word and _has_vowel(stem):
            return _restored(stem)
    return word


def _restored(stem: str) -> str:
    """Mend what is left after `ed` or `ing`: `hop` of `hopp`, `file` of `fil`."""
    if stem.endswith(("at", "bl", "iz")):
        return stem + "e"
    if _ends_doubled(stem):
        return stem if stem[-1] in "lsz" else stem[:-1]
    return stem + "e" if _measure(stem) == 1 and _ends_short(stem) else stem


def _replaced(word: str, endings: Sequence[tuple[str, str]], least: int) -> str:
    """Replace the longest ending that a word has, where enough of the word is left without it."""
    found = max((pair for pair in endings if word.endswith(pair[0])), key=lambda pair: len(pair[0]), default=None)
    if found is None:
        return word
    stem = word[: -len(found[0])]
    if _measure(stem) < least or (found[0] == "ion" and not stem.endswith(("s", "t"))):
        return word
    return stem + found[1]


def _without_last_e(word: str) -> str:
    if word.endswith("e"):
        measure = _measure(word[:-1])
        if measure > 1 or (measure == 1 and not _ends_short(word[:-1])):
            word = word[:-1]
    return word[:-1] if word.endswith("ll") and _measure(word) > 1 else word


def _is_consonant(word: str, place: int) -> bool:
    if word[place] == "y":
        return place == 0 or not _is_consonant(word, place - 1)
    return word[place] not in _VOWELS


def _measure(stem: str) -> int:
    """Count how often consonants follow vowels."""
    kinds = [_is_consonant(stem, place) for place in range(len(stem))]
    return sum(1 for before, after in pairwise(kinds) if after and not before)


def _has_vowel(stem: str) -> bool:
    return any(not _is_consonant(stem, place) for place in range(len(stem)))


def _ends_doubled(stem: str) -> bool:
    return len(stem) > 1 and stem[-1] == stem[-2] and _is_consonant(stem, len(stem) - 1)


def _ends_short(stem: str) -> bool:
    """Return whether a stem ends in a consonant, a vowel and a consonant that is not w, x or y."""
    if len(stem) < 3 or stem[-1] in "wxy":
        return False
    last = len(stem) - 1
    return _is_consonant(stem, last) and not _is_consonant(stem, last - 1) and _is_consonant(stem, last - 2)
