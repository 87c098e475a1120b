"""Telling whether two lessons say the same thing."""

import re
from hashlib import sha256

from decklog.stores.memory.tokens import words_of

# Of all the words of both texts, this share must be in both. At 0.8 a lesson of ten words may differ in two.
THRESHOLD = 0.8
_NEGATIONS = frozenset(
    ("no", "not", "never", "none", "nor", "neither", "without", "cannot", "except", "unless", "only", "always")
)
_CHUNK = re.compile(r"`[^`]*`|\S+")
_NEGATED = re.compile(r"n['’]t\b", re.IGNORECASE)
_IDENTIFIER = re.compile(r"[0-9_/\\:<>=@#$%&|]|\w\.\w|[a-z][A-Z]|`")


def fingerprint(text: str) -> str:
    """Digest a text so that case, blanks and the punctuation around its words make no difference."""
    plain = [chunk.strip(".,;:!?\"'()[]{}*`").casefold() for chunk in text.split()]
    return sha256(" ".join(chunk for chunk in plain if chunk).encode()).hexdigest()


def alike(one: str, other: str) -> bool:
    """Tell whether two texts differ in a few plain words at most.

    A word that turns the meaning round (`never`), a number and a name must be in both: `port 5432` is not `port 5433`.
    """
    if fingerprint(one) == fingerprint(other):
        return True
    return similarity(one, other) >= THRESHOLD and _marks(one) == _marks(other)


def similarity(one: str, other: str) -> float:
    """Compare two texts as sets of words: the share of all their words that both have."""
    left, right = set(words_of(one)), set(words_of(other))
    return len(left & right) / len(left | right) if left | right else 0.0


def _marks(text: str) -> set[str]:
    """Collect what can't be exchanged: numbers, names of things in code, and words of negation."""
    marks = set()
    for chunk in _CHUNK.findall(_NEGATED.sub(" not", text)):
        bare = chunk.strip(".,;:!?\"'()[]{}*")
        if bare.lower() in _NEGATIONS or _IDENTIFIER.search(bare):
            marks.add(bare.strip("`").casefold())
    return marks


def groups_of(text: str) -> list[list[str]]:
    """Share a text's words out so that whatever is alike has all the words of at least one group.

    A text that is alike lacks at most a fifth of the words, so with one group more than that, one group is whole: the index is
    asked for a few conjunctions, which stays fast where asking for any of the words would not.
    """
    words = sorted(set(words_of(text)), key=lambda word: (-len(word), word))
    spare = int(len(words) * (1 - THRESHOLD) + 1e-9)
    groups = [words[start :: spare + 1] for start in range(spare + 1)]
    return [group for group in groups if group]
