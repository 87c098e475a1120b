"""Words: what a text is about, as the full-text index and the comparison of lessons see it."""

import re

from decklog.stores.senses import SENSES

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
        found += [word for word in _spellings(run) if word not in STOP_WORDS and (len(word) > 1 or word.isdigit())]
    return found


def _spellings(run: str) -> "Iterator[str]":
    """Give an identifier whole and in parts: `ImportError` is also an import and an error."""
    whole = run.lower()
    yield whole
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
        for candidate in (word, f"{previous}_{word}"):
            for base in _bases(candidate):
                if base in SENSES:
                    found.update(dict.fromkeys(SENSES[base]))
                    break
        previous = word
    return list(found)


def _bases(word: str) -> "Iterator[str]":
    """Guess the forms a word may have in a dictionary: `retries` is `retry`, `stopped` is `stop`."""
    yield word
    for ending, others in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            stem = word[: -len(ending)]
            for other in others:
                yield stem + other
            if ending in ("ed", "ing") and stem[-1] == stem[-2]:
                yield stem[:-1]


_ENDINGS = (
    ("ies", ("y", "ie")),
    ("es", ("", "e")),
    ("s", ("",)),
    ("ied", ("y",)),
    ("ed", ("", "e")),
    ("ing", ("", "e")),
    ("ly", ("",)),
)


def share_a_stem(one: str, other: str) -> bool:
    """Tell whether two words are forms of one word, for explanations."""
    return one == other or not set(_bases(one)).isdisjoint(_bases(other))
