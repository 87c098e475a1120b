"""Many texts looked through at once, as whoever takes over a history has them: which of them hold nothing to be replaced.

What is asked of each is what `engine.scan` asks. It is asked of all before the next question is: a rule's tables are then at
hand, where from one text to the next they would have to make room for those of the others.
"""

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import NamedTuple

from decklog.forks import apart
from decklog.redact import encoded, engine
from decklog.redact.finder import FINDERS, TOLD_NUMBER, find_by
from decklog.redact.patterns.presence import Look
from decklog.redact.sentences import told
from decklog.redact.view import Found, View, looked_through, plain
from decklog.redact.views import wrappings

# What lies between lines that are looked at together; those of a longer one are looked at by themselves, as are the last few.
_APART = "\n\x01\n"
_LONGEST_LINE, _FEW_LINES = 512, 16
# What is in base64 is found after all the others.
_FINDERS = len(FINDERS) + 1


class _Looked(NamedTuple):
    """A text, what it looks like without colours and escapes, and the numbers of what it must be searched for."""

    text: str
    view: View
    signs: set[int]


@apart
def clean_among(texts: Iterable[str]) -> set[str]:
    """Give those of many texts, of whatever length, in which nothing is to be replaced."""
    wanted = set(texts)
    lines = _Lines(together=engine.TOGETHER.ask(len(wanted)) is not None)
    lines.look_at(wanted)
    others = wanted.difference(lines.clean, (one.text for one in lines.shown))
    looked = _with_one_look(others) if lines.together else _with_all_looks(others)
    return {*lines.clean, *_clean_of(chain(lines.shown, looked))}


class _Lines:
    """Texts of one line in plain letters: those without any sign, and those that must be searched for no more than theirs."""

    def __init__(self, *, together: bool) -> None:
        # Whether one look tells all signs, as far as there is any: it is then the same for each half.
        self.together = together
        # Whether most of those that were last looked at one by one had a sign: so will the next, and a look at all tells nothing.
        self._is_mostly_shown = False
        self.clean: list[str] = []
        self.shown: list[_Looked] = []

    def look_at(self, texts: Iterable[str]) -> None:
        """Look at those of many texts that are such lines, many of them at once."""
        lines, size = list[str](), 0
        for text in texts:
            if len(text) > _LONGEST_LINE or "\n" in text or not text.isascii() or wrappings.is_headed(text):
                continue
            if size + len(text) + len(_APART) > engine.LONGEST_LOOK:
                self._look_at_together(lines)
                lines, size = [], 0
            lines.append(text)
            size += len(text) + len(_APART)
        self._look_at_together(lines)

    def _look_at_together(self, lines: list[str], looks: list[Look] | None = None) -> None:
        """Look at some lines together, and by halves where there is something among them, for no more than what that was."""
        if self.together and self._is_mostly_shown:
            self._look_at_each(lines, [])
            return
        data = _APART.join(lines).encode()
        are_plain = len(data) - len(data.translate(None, engine.ESCAPING)) == (len(lines) - 1) * _APART.count("\n")
        shown = [look for look in (self._looks_at(data) if looks is None else looks) if look[0](data)]
        if are_plain and not shown:
            self.clean += lines
        elif len(lines) > _FEW_LINES:
            half = len(lines) // 2
            self._look_at_together(lines[:half], shown)
            self._look_at_together(lines[half:], shown)
        else:
            self._look_at_each(lines, shown)

    def _looks_at(self, data: bytes) -> list[Look]:
        return [(engine.signs_together, ())] if self.together else engine.looks_at(data)

    def _look_at_each(self, lines: list[str], looks: list[Look]) -> None:
        """Look at lines one by one; one that may mean other letters than it has is left to others."""
        before = len(self.shown)
        for line in lines:
            data = line.encode()
            if len(data.translate(None, engine.ESCAPING)) != len(data):
                continue
            signs = engine.in_line(engine.signs_together(data), data) if self.together else engine.signs_by(looks, data)
            if signs:
                self.shown.append(_Looked(line, plain(line), set(signs)))
            else:
                self.clean.append(line)
        self._is_mostly_shown = 2 * (len(self.shown) - before) > len(lines)


def _with_one_look(texts: Iterable[str]) -> Iterator[_Looked]:
    """Look at each text once for all signs."""
    for text in texts:
        signs = engine.signs_of_line(text)
        view = looked_through(text) if signs is None else plain(text)
        yield _Looked(text, view, set(engine.signs_of(view) if signs is None else signs))


def _with_all_looks(texts: Iterable[str]) -> list[_Looked]:
    found = [_Looked(text, looked_through(text), set()) for text in texts]
    for look, numbers in engine.all_looks():
        for one in found:
            if look(one.view.data):
                one.signs.update(numbers)
    for one in found:
        if TOLD_NUMBER not in one.signs and "\n" in one.view.text and told.may_tell_below(one.view.data):
            one.signs.add(TOLD_NUMBER)
    return found


def _clean_of(looked: Iterable[_Looked]) -> list[str]:
    left = [one for one in looked if not engine.is_replaced_as_written(*one)]
    # Most have no sign at all.
    shown = [one for one in left if one.signs]
    for number in range(_FINDERS):
        shown = [one for one in shown if number not in one.signs or engine.is_clean_where_shown(*one[:2], _found(number, one))]
    left = [*(one for one in left if not one.signs), *shown]
    left = [one for one in left if engine.is_clean_where_shown(*one[:2], engine.find_across_lines(one.view))]
    return [one.text for one in left if engine.is_clean_peeled(*one[:2])]


def _found(number: int, one: _Looked) -> Iterable[Found]:
    return find_by(number, one.view, one.signs) if number < len(FINDERS) else encoded.find(one.view)
