"""Similarity of lessons: whether two texts state the same, or contradict each other.

Two texts are alike if they have the same words in the same order, apart from inflections, empty words, and a clause that is
first in one and last in the other. Any other difference separates them: `before` and `after`, 5432 and 5433, or `lock a
before b` and `lock b before a`.
"""

import os
import re
import tomllib
from collections import Counter
from difflib import SequenceMatcher
from functools import lru_cache
from hashlib import sha256

from decklog.stores.memory.text import STOP_WORDS, extract_terms, find_inflection

with open(os.path.join(os.path.dirname(__file__), "similarity.toml"), "rb") as _file:
    _LISTS: dict[str, list[str]] = {name: text.split() for name, text in tomllib.load(_file).items()}
PAIRS = tuple((one, other) for one, _, other in (pair.partition("/") for pair in _LISTS["opposites"]))
NEGATIONS, COURTESIES, SUCCESSES = (frozenset(_LISTS[name]) for name in ("negations", "courtesies", "successes"))
_ADVICE, _EMPTY, _CLAUSES = (frozenset(_LISTS[name]) for name in ("advice", "empty", "clauses"))
_SAME = {one: other for one, _, other in (pair.partition("=") for pair in _LISTS["same"])}
PREFIXES = tuple(_LISTS["prefixes"])

Words = tuple[str, ...]

# Texts with a smaller share of common words are about different things. Contradicting texts have more in common.
NEAR = 0.5
# A similar text lacks at most this share of the terms.
_LACKING = 0.34
# Limits for quotations: a number of consecutive words, their share, and the number of other words.
LEAST_IN_COMMON, _LEAST_QUOTED, _QUOTED, _MOST_AROUND = 2, 4, 0.4, 6
_LEAST_MORE = 2
# Praise with at most this number of other words is no lesson.
_MOST_BESIDES = 3
# Two lessons about the same thing may differ in one place of up to this number of words.
_WIDEST = 3
_LEAST_SHARED = 3
# Only longer words may be negated by a prefix.
_SHORTEST_TURNED = 3

_PHRASES = tuple(
    (re.compile(pattern), plain)
    for pattern, plain in (
        (r"[’`]", "'"),
        (r"\bcan(?:'t|not)\b", "can not"),
        (r"\bwon't\b", "not"),
        (r"(\w)n't\b", r"\1 not"),
        (r"\b(it|there|that|he|she)'s\b", r"\1 is"),
        (r"'s\b", ""),
        (r"^\W*(?:make sure (?:to|that|you)?|remember (?:to|that)|note(?: that|:))\b", " "),
        (r"^\W*(?:(?:we|you|one) should(?! not)|be sure to)\b", " "),
        (r"^only (.+?) (?=(?:when|if|after|before|once|while)\b)", r"\1 only "),
        (r"\bin order to\b", "to"),
        (r"\b(?:has|have|needs?) to\b", "must"),
        (r"\bdue to\b", "because of"),
        (r"\bas well(?! as)", " "),
        (r"\b(?:gets?|got) (?=\w+(?:ed|en|ilt)\b)", " "),
        (r"(\d)(?=(?:ms|s|m|h|kb|mb|gb)\b)", r"\1 "),
    )
)
_EDGES = ".,;:!?\"'()[]{}*`"
_CODE = re.compile(r"[_/\\.:#]|\d")


@lru_cache(2048)
def fingerprint(text: str) -> str:
    """Return a digest of a text that ignores case, whitespace and punctuation around words."""
    plain = [chunk.strip(_EDGES).casefold() for chunk in text.split()]
    return sha256(" ".join(chunk for chunk in plain if chunk).encode()).hexdigest()


# Cached, because each new lesson is compared with a few dozen others.
@lru_cache(2048)
def _essence(text: str) -> "tuple[Words, Words]":
    """Return the significant words of a text: normalized, and as written."""
    plain = text.casefold()
    for pattern, replacement in _PHRASES:
        plain = pattern.sub(replacement, plain)
    chunks = [chunk.strip(_EDGES) for chunk in plain.replace("-", "").split()]
    said = tuple([chunk for chunk in chunks if chunk and chunk not in _EMPTY])
    return tuple(map(_plain_form, said)), said


def essence_of(text: str) -> Words:
    """Return the significant words of a text, normalized."""
    return _essence(text)[0]


@lru_cache(16_384)
def _plain_form(word: str) -> str:
    word = _SAME.get(word, word)
    if not word.isalpha() or not word.isascii():
        return word
    for british, american in (("isation", "ization"), ("ising", "izing"), ("ised", "ized"), ("ise", "ize"), ("our", "or")):
        if len(word) > 5 and word.endswith(british):
            word = word.removesuffix(british) + american
    form = find_inflection(word)
    # A word may lose its last letter with its ending: `escaped` and `escape` become `escap`.
    form = _SAME.get(form, form)
    return form.removesuffix("e") if len(form) > 4 else form


@lru_cache(4096)
def content_of(text: str) -> frozenset[str]:
    """Return the normalized content words of a text."""
    return frozenset(word for word in essence_of(text) if word not in STOP_WORDS)


def is_empty_praise(text: str) -> bool:
    """Return whether a text is only thanks, praise or a report of success."""
    words = essence_of(text)
    if _forms(COURTESIES).isdisjoint(words) or not _forms(_ADVICE).isdisjoint(words):
        return False
    besides = content_of(text) - _forms(COURTESIES) - _forms(SUCCESSES)
    return sum(not word.isdigit() for word in besides) <= _MOST_BESIDES


@lru_cache
def _forms(words: frozenset[str]) -> frozenset[str]:
    return frozenset(map(_plain_form, words))


def is_part(one: str, other: str) -> bool:
    """Return whether a text mostly quotes a part of another, longer text."""
    part, whole = essence_of(one), essence_of(other)
    shared = content_of(one) & content_of(other)
    # A whole must be longer than the part, and one common word is no quotation.
    if len(shared) < LEAST_IN_COMMON or len(content_of(other)) < len(shared) + _LEAST_MORE:
        return False
    least = max(_LEAST_QUOTED, _QUOTED * len(part), len(part) - _MOST_AROUND)
    # Counting common words rules out most texts.
    if sum(map(frozenset(whole).__contains__, part)) < least:
        return False
    return SequenceMatcher(None, part, whole, autojunk=False).find_longest_match().size >= least


def essence_digest(text: str) -> str:
    """Return a digest of the significant words in any order. Texts that are alike have the same digest."""
    return sha256(" ".join(sorted(essence_of(text))).encode()).hexdigest()


def alike(one: str, other: str) -> bool:
    """Return whether two texts state the same."""
    if fingerprint(one) == fingerprint(other):
        return True
    left, right = essence_of(one), essence_of(other)
    if not left or len(left) != len(right):
        return False
    return left == right or _turned(left, right) or _turned(right, left)


def _turned(one: Words, other: Words) -> bool:
    """Return whether the texts differ only by a clause that was moved to the beginning."""
    if other[0] not in _forms(_CLAUSES) or Counter(one) != Counter(other):
        return False
    places = [place for place, word in enumerate(one) if place and word == other[0]]
    return any(one[place:end] + one[:place] + one[end:] == other for place in places for end in range(place + 2, len(one) + 1))


@lru_cache(1)
def _contraries() -> dict[str, set[str]]:
    """Return the opposites of each word."""
    found: dict[str, set[str]] = {}
    for pair in PAIRS:
        one, other = map(_plain_form, pair)
        found.setdefault(one, set()).add(other)
        found.setdefault(other, set()).add(one)
    return found


def contradiction(one: str, other: str) -> str | None:
    """Return the words in which two otherwise equal texts contradict each other; None if they don't."""
    left, right = essence_of(one), essence_of(other)
    is_reordered = len(left) == len(right) and Counter(left) == Counter(right)
    if not left or not right or alike(one, other):
        return None
    if is_reordered:
        return "the same words in another order"
    shared, slots = _compared(left, right)
    if shared < NEAR * (len(left) + len(right)) / 2 and not (shared >= _LEAST_SHARED and len(slots) == 1):
        return None
    contrary = [slot for slot in slots if _is_contrary(left[slot[0]], right[slot[1]])]
    if not contrary and not (len(slots) == 1 and _is_other(left, left[slots[0][0]], right[slots[0][1]], shared)):
        return None
    said, other_said = _essence(one)[1], _essence(other)[1]
    return "; ".join(f"{_spelled(said[ours])} / {_spelled(other_said[theirs])}" for ours, theirs in contrary or slots)


# Cached, because a project has only a few thousand different words.
@lru_cache(16_384)
def _opposites_of(word: str) -> "Words":
    """Return the opposites of a word: from the list, or the word without its negating prefix."""
    turned = [word.removeprefix(prefix) for prefix in PREFIXES if word.startswith(prefix)]
    return (*_contraries().get(word, ()), *(one for one in turned if len(one) > _SHORTEST_TURNED))


def _compared(left: Words, right: Words) -> tuple[int, list[tuple[slice, slice]]]:
    """Count the words that two texts share in the same order, and list the places where they differ."""
    shared, slots = 0, []
    for kind, start, end, other_start, other_end in SequenceMatcher(None, left, right, autojunk=False).get_opcodes():
        if kind == "equal":
            shared += end - start
        else:
            slots.append((slice(start, end), slice(other_start, other_end)))
    return shared, slots


def _is_contrary(ours: Words, theirs: Words) -> bool:
    if _forms(NEGATIONS).isdisjoint(ours) != _forms(NEGATIONS).isdisjoint(theirs):
        return True
    return any(_are_contrary(one, other) for one in ours for other in theirs)


def _are_contrary(one: str, other: str) -> bool:
    return other in _opposites_of(one) or one in _opposites_of(other)


def _is_other(left: Words, ours: Words, theirs: Words, shared: int) -> bool:
    """Return whether the only difference of two texts states another thing about the same subject."""
    if not ours or not theirs or len(ours) > _WIDEST or len(theirs) > _WIDEST or shared < min(_LEAST_SHARED, len(left) - 1):
        return False
    # Statements about different files or tests are different lessons, which may both be valid.
    return not (left[: len(ours)] == ours and any(map(_CODE.search, ours)) and any(map(_CODE.search, theirs)))


def _spelled(words: Words) -> str:
    return " ".join(words) or "nothing"


def groups_of(text: str) -> list[list[str]]:
    """Split a text's terms into groups, so that every similar text has all terms of at least one group.

    A similar text lacks at most a third of the terms, so with one group more, one group is complete. The index then gets a few
    conjunctions, which is much faster than a search for any of the terms. The longest terms, which are seldom common, are
    distributed first. Looking up the frequency of each would take longer than it saves.
    """
    terms = sorted(set(extract_terms(text)), key=lambda term: (-len(term), term))
    spare = max(int(len(terms) * _LACKING), 1) if len(terms) > 1 else 0
    return [group for group in (terms[start :: spare + 1] for start in range(spare + 1)) if group]


def nearness(one: str, other: str) -> float:
    """Return the share of words that two texts have in common, in the same order."""
    left, right = essence_of(one), essence_of(other)
    return 2 * _compared(left, right)[0] / max(len(left) + len(right), 1)
