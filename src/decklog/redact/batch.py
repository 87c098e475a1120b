"""Many texts looked through at once, as whoever takes over a history has them: which of them hold nothing to be replaced.

What is asked of each is what `engine.scan` asks. It is asked of all before the next question is: a rule's tables are then at
hand, where from one text to the next they would have to make room for those of the others.
"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from decklog.forks import apart
from decklog.redact import encoded, engine
from decklog.redact.finder import FINDERS, TOLD_NUMBER
from decklog.redact.patterns.presence import Look
from decklog.redact.patterns.spared import not_spared
from decklog.redact.sentences import told
from decklog.redact.view import View, looked_through

# What lies between lines that are looked at together; those of a longer one are looked at by themselves, as are the last few.
_APART = "\n\x01\n"
_LONGEST_LINE, _FEW_LINES = 512, 3
_FINDERS = (*FINDERS, encoded.find)


@apart
def clean_among(texts: Iterable[str]) -> set[str]:
    """Give those of many texts, of whatever length, in which nothing is to be replaced."""
    wanted = set(texts)
    clean = set(clean_lines(wanted))
    clean.update(clean_ones(wanted - clean))
    return clean


def clean_lines(texts: Iterable[str]) -> Iterator[str]:
    """Give those of many texts of one line in plain letters that show no sign, looking at many of them at once."""
    lines, size = list[str](), 0
    for text in texts:
        if len(text) > _LONGEST_LINE or "\n" in text or not text.isascii():
            continue
        if size + len(text) + len(_APART) > engine.LONGEST_LOOK:
            yield from _clean_among(lines)
            lines, size = [], 0
        lines.append(text)
        size += len(text) + len(_APART)
    yield from _clean_among(lines)


def _clean_among(lines: list[str], looks: list[Look] | None = None) -> Iterator[str]:
    """Look at some lines together, and by halves where there is something among them, for no more than what that was."""
    data = _APART.join(lines).encode()
    are_plain = len(data) - len(data.translate(None, engine.ESCAPING)) == (len(lines) - 1) * _APART.count("\n")
    shown = [look for look in (engine.looks_at(data) if looks is None else looks) if look[0](data)]
    if are_plain and not shown:
        yield from lines
    elif len(lines) > _FEW_LINES:
        half = len(lines) // 2
        yield from _clean_among(lines[:half], shown)
        yield from _clean_among(lines[half:], shown)


class _Looked(NamedTuple):
    """A text, what it looks like without colours and escapes, and the numbers of what it must be searched for."""

    text: str
    view: View
    signs: set[int]


def clean_ones(texts: Iterable[str]) -> list[str]:
    """Give those of many texts in which nothing is to be replaced."""
    left = [_Looked(text, looked_through(text), set()) for text in texts]
    for look, numbers in engine.all_looks():
        for one in left:
            if look(one.view.data):
                one.signs.update(numbers)
    for one in left:
        if TOLD_NUMBER not in one.signs and "\n" in one.view.text and told.may_tell_below(one.view.data):
            one.signs.add(TOLD_NUMBER)
    left = [one for one in left if not engine.is_replaced_as_written(*one)]
    for number, find in enumerate(_FINDERS):
        left = [one for one in left if number not in one.signs or not not_spared(one.view.text, find(one.view))]
    return [one.text for one in left if not not_spared(one.view.text, engine.find_across_lines(one.view))]
