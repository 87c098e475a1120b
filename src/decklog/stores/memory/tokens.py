"""Words: what a text is about, as the full-text index and the comparison of lessons see it."""

import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache

from decklog.stores.memory.stemming import stem_of

# Names the way in which texts become terms: an index that was made in another way is made anew.
SPELLING = "stems 2"

_RUN = re.compile(r"[^\W_]+")
# What is written together: a path, a module, an option, a version, a hyphenated word. It begins where its first part does, and no
# part is looked at twice: a word of a megabyte would take hours otherwise.
_NAME = re.compile(r"(?<![^\W_])[^\W_]++(?:(?:[._/:\\-]|::)[^\W_]++)++")
# Parts of CamelCase, of an acronym before a word, and of letters next to digits.
_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_NOT = re.compile(r"\b(ca|wo|\w+)n['’]t\b", re.IGNORECASE)
# An index holds no longer ones, and nobody asks for them.
_LONGEST_NAME = 80

# Words that turn advice round are not among them: `before`, `not`, `must` and the like are looked for.
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


def words_of(text: str) -> list[str]:
    """List the words that carry meaning, in lower case and in order; identifiers also come in their parts."""
    found: list[str] = []
    for run in _RUN.findall(_spelled_out(text)):
        found += _spellings(run)
    return found


def _spelled_out(text: str) -> str:
    """Write `doesn't` as `does not`."""
    return _NOT.sub(r"\1 not", text) if "'" in text or "’" in text else text


def terms_of(text: str) -> list[str]:
    """List what the index holds of a text: the stems of its words, and every name that is written together as one more."""
    plain = _without_accents(text)
    return [*(stem_of(word)[:_LONGEST_NAME] for word in words_of(plain)), *_names_of(plain)]


# Whoever is found by many questions has the same ones each time.
@lru_cache(2048)
def little_words_of(text: str) -> frozenset[str]:
    """Collect the words that the index leaves out: they say little, and yet `before` is not `after`."""
    return STOP_WORDS.intersection(_RUN.findall(_spelled_out(text.lower())))


def _names_of(text: str) -> Iterator[str]:
    """Give names without what joins their parts, so that `SQLITE_BUSY` is found as such, and also by `sqlite-busy`."""
    for name in _NAME.findall(text):
        if len(name) <= _LONGEST_NAME:
            yield _joined(name)


@lru_cache(16_384)
def _joined(name: str) -> str:
    parts: list[str] = _RUN.findall(name.lower())
    joined = parts[0]
    for part in parts[1:]:
        # Version 3.11 is not number 311. The mark is a letter to both engines.
        joined += ("·" if joined[-1].isdigit() and part[0].isdigit() else "") + part
    return joined


def _without_accents(text: str) -> str:
    if text.isascii():
        return text
    parts = unicodedata.normalize("NFKD", text)
    return unicodedata.normalize("NFC", "".join(part for part in parts if not unicodedata.combining(part)))


# The words of a project's lessons are few thousand, and the same ones come again and again.
@lru_cache(16_384)
def _spellings(run: str) -> tuple[str, ...]:
    """Return an identifier whole and in parts, without words that mean nothing: `ImportError` is also an import and an error."""
    whole, *parts = _whole_and_parts(run)
    # A letter by itself has a meaning (`f`-strings, `-x`), one cut off from a name has none.
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
