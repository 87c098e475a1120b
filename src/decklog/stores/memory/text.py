"""Words of a text: Porter stems (1980), index terms, and signatures of error messages."""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from functools import lru_cache
from hashlib import sha256
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


# Cached, because a project has only a few thousand different words.
@lru_cache(16_384)
def find_stem(word: str) -> str:
    """Return the stem of a word in lower case. A word with other characters than a to z is returned unchanged."""
    if not _PLAIN.fullmatch(word):
        return word
    word = _replace_suffix(find_inflection(word), _SECOND, 1)
    word = _replace_suffix(word, _THIRD, 1)
    word = _replace_suffix(word, _FOURTH, 2)
    return _without_last_e(word)


def find_inflection(word: str) -> str:
    """Remove plural and past endings: `retries` and `retried` become equal, `retrial` stays different."""
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
            return _restore_stem(stem)
    return word


def _restore_stem(stem: str) -> str:
    """Restore a stem after removing `ed` or `ing`: `hopp` to `hop`, `fil` to `file`."""
    if stem.endswith(("at", "bl", "iz")):
        return stem + "e"
    if _ends_doubled(stem):
        return stem if stem[-1] in "lsz" else stem[:-1]
    return stem + "e" if _measure(stem) == 1 and _ends_short(stem) else stem


def _replace_suffix(word: str, endings: Sequence[tuple[str, str]], least: int) -> str:
    """Replace the longest matching ending, if enough of the word is left."""
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
    """Count the vowel-consonant sequences (Porter's measure)."""
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


# Version of the terms: an index with another version is rebuilt.
SPELLING = "stems 2"

_RUN = re.compile(r"[^\W_]+")
# Names with separators: a path, module, option, version or hyphenated word. Possessive quantifiers avoid backtracking,
# which would take hours for a word of a megabyte.
_NAME = re.compile(r"(?<![^\W_])[^\W_]++(?:(?:[._/:\\-]|::)[^\W_]++)++")
# Parts of CamelCase, of an acronym before a word, and of letters next to digits.
_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_NOT = re.compile(r"\b(ca|wo|\w+)n['’]t\b", re.IGNORECASE)
# Longer names are not indexed.
_LONGEST_NAME = 80

# Words that reverse advice are not stop words: `before`, `not`, `must` and similar.
_STOP = """
a about above again against all also am an and any are as at be because been being below between both but by ca can could did
do does doing don done down each either else ever every few for from further get gets getting give given go goes going got had
has have having he her here hers herself him himself his how i if in into is it its itself just keep keeps let like ll made
make makes many may me might more most much my myself need needs nor now of off on one or other our ours ourselves out over
own per put quite rather re s same see seem seems she should since so some something still such take takes than that the their
theirs them themselves then there these they thing things this those through thus to too under up upon us use used uses using
ve very via want was way we well were what when where whether which who whole whom why will with within wo would yet you your
yours yourself yourselves
"""
STOP_WORDS = frozenset(_STOP.split())


def split_words(text: str) -> list[str]:
    """Return the significant words in lower case and in order, with the parts of identifiers."""
    found: list[str] = []
    for run in _RUN.findall(_expand_contractions(text)):
        found += _spellings(run)
    return found


def _expand_contractions(text: str) -> str:
    """Expand `doesn't` to `does not`."""
    return _NOT.sub(r"\1 not", text) if "'" in text or "’" in text else text


def extract_terms(text: str) -> list[str]:
    """Return the index terms of a text: the stems of its words, and each name with separators as one term."""
    plain = _without_accents(text)
    return [*(find_stem(word)[:_LONGEST_NAME] for word in split_words(plain)), *_extract_names(plain)]


# Cached, because many questions find the same lessons.
@lru_cache(2048)
def stop_words(text: str) -> frozenset[str]:
    """Return the stop words of a text. They are not indexed, but `before` differs from `after`."""
    return STOP_WORDS.intersection(_RUN.findall(_expand_contractions(text.lower())))


def _extract_names(text: str) -> Iterator[str]:
    """Yield names without separators, so that `SQLITE_BUSY` is also found by `sqlite-busy`."""
    for name in _NAME.findall(text):
        if len(name) <= _LONGEST_NAME:
            yield _joined(name)


@lru_cache(16_384)
def _joined(name: str) -> str:
    parts: list[str] = _RUN.findall(name.lower())
    joined = parts[0]
    for part in parts[1:]:
        # Version 3.11 is not 311. Both engines treat this character as a letter.
        joined += ("·" if joined[-1].isdigit() and part[0].isdigit() else "") + part
    return joined


def _without_accents(text: str) -> str:
    if text.isascii():
        return text
    parts = unicodedata.normalize("NFKD", text)
    return unicodedata.normalize("NFC", "".join(part for part in parts if not unicodedata.combining(part)))


# Cached, because a project has only a few thousand different words.
@lru_cache(16_384)
def _spellings(run: str) -> tuple[str, ...]:
    """Return an identifier and its parts without stop words: `ImportError` is also `import` and `error`."""
    whole, *parts = _whole_and_parts(run)
    # A single letter as a word has a meaning (`f`-strings, `-x`), but not as a part of a name.
    parts = [part for part in parts if len(part) > 1 or part.isdigit()]
    return tuple(word for word in (whole, *parts) if word not in STOP_WORDS)


def _whole_and_parts(run: str) -> Iterator[str]:
    yield run.lower()
    if run.isascii() and not (run.islower() or run.isdigit()):
        parts = [part.lower() for part in _PART.findall(run)]
        if len(parts) > 1:
            yield from parts
    elif run.isascii() and not run.isalpha() and not run.isdigit():
        yield from _PART.findall(run)


LONGEST = 500
_READ_AT_MOST = 8 * LONGEST

# The order is that of the imported systems, because their hashes must match.
_CLASSIC = (
    (re.compile(r"/[^\s]*/"), ".../"),
    (re.compile(r"[A-Za-z]:\\[^\s]*\\"), r"...\\"),
    (re.compile(r"line \d+"), "line N"),
    (re.compile(r"'[^']{1,50}'"), "'...'"),
    (re.compile(r'"[^"]{1,50}"'), '"..."'),
)

# Decklog's signatures remove what differs between occurrences and keep names of errors and settings. Special patterns come
# first, since a UUID is also hexadecimal and a time also has digits.
_OWN = (
    (re.compile(r"\x1b\[[0-9;?]*[A-Za-z]"), ""),
    (re.compile(r"\b[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}\b"), "<id>"),
    (re.compile(r"\b\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?(?:Z|[+-]\d\d:?\d\d)?)?"), "<time>"),
    (re.compile(r"\b\d\d:\d\d:\d\d(?:[.,]\d+)?\b"), "<time>"),
    (re.compile(r"\b[a-z][a-z0-9+.-]*://[^\s'\"<>)\]]+", re.IGNORECASE), "<url>"),
    (re.compile(r"\b[\w.+-]+@[\w-]+\.[\w.-]+\b"), "<mail>"),
    (re.compile(r"\b\d{1,3}(?:\.\d{1,3}){3}(?::\d+)?\b"), "<address>"),
    (re.compile(r"\[[0-9a-fA-F]*:[0-9a-fA-F:]+\](?::\d+)?"), "<address>"),
    (re.compile(r"\b0[xX][0-9a-fA-F]+\b"), "<hex>"),
    # A path starts with a separator or a drive, or has two separators, or one and an extension: `read/write` is none.
    (re.compile(r"\b[A-Za-z]:(?:\\[\w.@+~-]+)+(?::\d+)*"), "<path>"),
    (re.compile(r"(?<!\w)\.{0,2}(?:[\\/][\w.@+~-]+)+(?::\d+)*"), "<path>"),
    (re.compile(r"\b[\w.@+~-]+(?:[\\/][\w.@+~-]+){2,}(?::\d+)*"), "<path>"),
    (re.compile(r"\b[\w.@+~-]+[\\/][\w@+~-]+\.\w{1,5}\b(?::\d+)*"), "<path>"),
    (re.compile(r"\b[\w-]+\.[A-Za-z]{1,4}:\d+(?::\d+)?\b"), "<path>"),
    (re.compile(r"\b[a-z]+_[0-9a-z]{20,}\b"), "<id>"),
    (re.compile(r"\b(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{7,}\b"), "<hex>"),
    (re.compile(r"\bline \d+\b", re.IGNORECASE), "line <n>"),
    (re.compile(r"(?<![A-Za-z_])[-+]?\d+(?:[.,]\d+)*(?=(?:[a-zA-Z%]{0,3})\b)"), "<n>"),
    (re.compile(r"(?<=[A-Za-z_-])\d{4,}\b"), "<n>"),
    (re.compile(r"\s+"), " "),
)


def classic_message(message: str) -> str:
    """Normalize a message for the hash of error patterns."""
    for pattern, replacement in _CLASSIC:
        message = pattern.sub(replacement, message)
    return message.strip()[:LONGEST]


def message_pattern(message: str) -> str:
    """Normalize a message for Decklog's error patterns, without what differs between occurrences."""
    return classic_message(signature(message))


def pattern_hash(error_type: str, message_pattern: str, hints: list[str]) -> str:
    """Return the digest of the identifying parts of a signature, without stack and language."""
    return sha256(f"{error_type}:{message_pattern}:{','.join(sorted(hints))}".encode()).hexdigest()


def signature(message: str) -> str:
    """Normalize a message to the part that all occurrences share, without paths, numbers, ids, times and addresses."""
    message = message[:_READ_AT_MOST]
    for pattern, replacement in _OWN:
        message = pattern.sub(replacement, message)
    return message.strip()[:LONGEST]
