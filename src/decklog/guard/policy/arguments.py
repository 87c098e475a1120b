"""Sorting of a command's arguments into flags, option values and operands."""

import re
from collections.abc import Iterable

from decklog.guard.policy.words import Word

_SHORTEST_ABBREVIATION = 5


class Arguments:
    """Sorted arguments: flags as written, `(option, value)` pairs, operands in order."""

    def __init__(self, known: frozenset[str] = frozenset()) -> None:
        self.flags: list[str] = []
        self.values: list[tuple[str, Word]] = []
        self.operands: list[Word] = []
        self.followed: list[tuple[str, Word]] = []
        """Unknown long options, each with the word behind it, which may be its value."""
        self.known = known

    def has(self, wanted: Iterable[str]) -> bool:
        """Return whether one of the flags is given, in full or abbreviated."""
        return any(flag == name or self._abbreviates(flag, name) for flag in self.flags for name in wanted)

    def _abbreviates(self, flag: str, name: str) -> bool:
        is_long = flag.startswith("--") and len(flag) >= _SHORTEST_ABBREVIATION
        return is_long and name.startswith(flag) and flag not in self.known

    def value(self, *names: str) -> Word | None:
        """Return the value of an option, None if it is absent."""
        return next((word for name, word in self.values if name in names), None)


def sort_arguments(words: list[Word], takes_value: Iterable[str] = (), *, single: bool = False, stop: bool = False) -> Arguments:
    """Sort arguments the way most programs do.

    `takes_value` names the options with a value. `single` is for programs whose long options have one dash. `stop` ends the
    options at the first operand.
    """
    valued, place = frozenset(takes_value), 0
    found = Arguments(valued)
    while place < len(words):
        text = words[place].text
        is_operand = len(text) < 2 or text[0] != "-" or text[1:].isspace()
        if text == "--" or (stop and is_operand and text[:1] != "+"):
            found.flags += ["--"] if text == "--" else []
            found.operands += words[place + (text == "--") :]
            break
        if is_operand:
            found.operands.append(words[place])
        else:
            place += _option(words, place, found, valued, single)
        place += 1
    return found


def _option(words: list[Word], place: int, found: Arguments, valued: frozenset[str], single: bool) -> int:
    """Sort one option and return the number of further words it used."""
    word = words[place]
    name, equals, value = word.text.partition("=")
    if equals and (single or name.startswith("--")):
        found.flags.append(name)
        found.values.append((name, Word(value, word.taint, word.content)))
        return 0
    if not single and not name.startswith("--") and word.text not in valued:
        return _cluster(words, place, found, valued)
    found.flags.append(word.text)
    if word.text in valued:
        return _take(words, place, word.text, found)
    if place + 1 < len(words) and not words[place + 1].text.startswith("-"):
        found.followed.append((word.text, words[place + 1]))
    return 0


def _take(words: list[Word], place: int, name: str, found: Arguments) -> int:
    """Take the next word as an option's value, unless it looks like an option."""
    if place + 1 >= len(words) or re.match(r"--?[A-Za-z]", words[place + 1].text):
        return 0
    found.values.append((name, words[place + 1]))
    return 1


def _cluster(words: list[Word], place: int, found: Arguments, valued: frozenset[str]) -> int:
    """Sort a cluster of short flags; one with a value takes the rest, or the next word."""
    word = words[place]
    for index, char in enumerate(word.text[1:], start=1):
        flag = "-" + char
        found.flags.append(flag)
        if flag in valued:
            rest = word.text[index + 1 :]
            if not rest:
                return _take(words, place, flag, found)
            found.values.append((flag, Word(rest, word.taint, word.content)))
            return 0
    return 0
