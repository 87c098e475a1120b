"""Words: what a text is about, as the full-text index and the comparison of lessons see it."""

import re
from functools import lru_cache

from decklog.stores.memory.synonyms import SENSES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_RUN = re.compile(r"[^\W_]+")
# Parts of CamelCase, of an acronym before a word, and of letters next to digits.
_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_NOT = re.compile(r"\b(ca|wo|\w+)n['’]t\b", re.IGNORECASE)

_STOP = """
a about above after again against all also am an and any are as at be because been before being below between both but by ca
can could did do does doing don done down during each either else ever every few for from further get gets getting give given
go goes going got had has have having he her here hers herself him himself his how i if in into is it its itself just keep
keeps let like ll made make makes many may me might more most much must my myself need needs no nor not now of off on once one
only or other our ours ourselves out over own per put quite rather re s same see seem seems she should since so some something
still such take takes than that the their theirs them themselves then there these they thing things this those through thus to
too under until up upon us use used uses using ve very via want was way we well were what when where whether which while who
whole whom why will with within without wo would yet you your yours yourself yourselves
"""
STOP_WORDS = frozenset(_STOP.split())


def words_of(text: str) -> list[str]:
    """List the words that carry meaning, in lower case and in order; identifiers also come in their parts."""
    found: list[str] = []
    for run in _RUN.findall(_NOT.sub(r"\1 not", text)):
        found += _spellings(run)
    return found


# The words of a project's lessons are few thousand, and the same ones come again and again.
@lru_cache(16_384)
def _spellings(run: str) -> tuple[str, ...]:
    """Give an identifier whole and in parts, without words that mean nothing: `ImportError` is also an import and an error."""
    return tuple(word for word in _whole_and_parts(run) if word not in STOP_WORDS and (len(word) > 1 or word.isdigit()))


def _whole_and_parts(run: str) -> "Iterator[str]":
    yield run.lower()
    if run.isascii() and not (run.islower() or run.isdigit()):
        parts = [part.lower() for part in _PART.findall(run)]
        if len(parts) > 1:
            yield from parts
    elif run.isascii() and not run.isalpha() and not run.isdigit():
        yield from _PART.findall(run)


def senses_of(words: "Iterable[str]") -> list[str]:
    """Name the senses that words have, alone or in pairs, each once: `stuck` and `deadlocked` share one."""
    found: dict[str, None] = {}
    previous = ""
    for word in words:
        found.update(dict.fromkeys(_senses(word)))
        found.update(dict.fromkeys(_senses(f"{previous}_{word}")))
        previous = word
    return list(found)


@lru_cache(16_384)
def _senses(word: str) -> tuple[str, ...]:
    return next((SENSES[base] for base in _bases(word) if base in SENSES), ())


def _bases(word: str) -> "Iterator[str]":
    """Guess the forms a word may have in a dictionary: `retries` is `retry`, `stopped` is `stop`."""
    yield word
    for ending, others in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            stem = word[: -len(ending)]
            for other in others:
                yield stem + other
            if ending in ("ed", "ing", "er", "ers") and stem[-1] == stem[-2]:
                yield stem[:-1]


_ENDINGS = (
    ("ies", ("y", "ie")),
    ("ments", ("",)),
    ("ment", ("",)),
    ("ations", ("e", "")),
    ("ation", ("e", "")),
    ("ions", ("e", "")),
    ("ion", ("e", "")),
    ("ers", ("", "e")),
    ("er", ("", "e")),
    ("es", ("", "e")),
    ("s", ("",)),
    ("ied", ("y",)),
    ("ed", ("", "e")),
    ("ing", ("", "e")),
    ("ly", ("",)),
)


@lru_cache(4096)
def forms_of(word: str) -> frozenset[str]:
    """Guess all the forms of a word; two words that have one in common are forms of one word."""
    return frozenset(_bases(word))
