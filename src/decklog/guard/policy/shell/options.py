"""Splitting of a command's arguments into flags, option values and operands."""

import re
from collections.abc import Iterable
from copy import copy

from decklog.guard.policy.shell.words import Word

_SHORTEST_ABBREVIATION = 5


class Arguments:
    """The arguments of a command, sorted: flags as written, `(option, value)` pairs, operands in order."""

    __slots__ = ("flags", "followed", "known", "operands", "values")

    def __init__(self, operands: list[Word] | None = None, known: frozenset[str] = frozenset()) -> None:
        self.flags: list[str] = []
        self.values: list[tuple[str, Word]] = []
        self.operands: list[Word] = [] if operands is None else operands
        self.followed: list[tuple[str, Word]] = []
        """Long options of which it is not known that they take a value, each with the word behind it."""
        self.known = known
        """Options that the program has, which are therefore no abbreviations of others."""

    def has(self, wanted: Iterable[str]) -> bool:
        """Tell whether one of the flags is given, whole or as an abbreviation of a long one."""
        return any(flag == name or self._abbreviates(flag, name) for flag in self.flags for name in wanted)

    def _abbreviates(self, flag: str, name: str) -> bool:
        """Tell whether a flag as written is a long one cut short."""
        is_long = flag.startswith("--") and len(flag) >= _SHORTEST_ABBREVIATION
        return is_long and name.startswith(flag) and flag not in self.known

    def without_operands(self) -> "Arguments":
        """Give the flags and the values alone."""
        given = copy(self)
        given.operands = []
        return given

    def of(self, operands: list[Word]) -> "Arguments":
        """Give other operands, and nothing else."""
        return Arguments(operands=operands)

    def value(self, *names: str) -> Word | None:
        """Give the value of an option, None if it is absent."""
        return next((word for name, word in self.values if name in names), None)


def sort_arguments(words: list[Word], takes_value: Iterable[str] = (), *, single: bool = False, stop: bool = False) -> Arguments:
    """Sort arguments the way most programs do.

    `takes_value` names the options that are followed by a value, `single` is for programs whose long options
    have one dash, `stop` ends the options at the first operand and leaves the rest as operands.
    """
    valued, place = frozenset(takes_value), 0
    found = Arguments(known=valued)
    while place < len(words):
        text = words[place].text
        if text == "--":
            found.flags.append(text)
            found.operands += words[place + 1 :]
            break
        if len(text) < 2 or text[0] not in "-+" or text[1:].isspace():
            if stop:
                found.operands += words[place:]
                break
            found.operands.append(words[place])
        elif text[0] == "+":
            found.operands.append(words[place])
        else:
            place += _option(words, place, found, valued, single)
        place += 1
    return found


def _option(words: list[Word], place: int, found: Arguments, valued: frozenset[str], single: bool) -> int:
    """Sort one option and give the number of further words it used."""
    word = words[place]
    name, equals, value = word.text.partition("=")
    if equals and (single or name.startswith("--")):
        found.flags.append(name)
        found.values.append((name, Word(value, word.taint, word.content)))
        return 0
    if single or name.startswith("--") or word.text in valued:
        found.flags.append(word.text)
        if word.text in valued:
            return _take(words, place, word.text, found)
        if place + 1 < len(words) and not words[place + 1].text.startswith("-"):
            found.followed.append((word.text, words[place + 1]))
        return 0
    return _cluster(words, place, found, valued)


def _take(words: list[Word], place: int, name: str, found: Arguments) -> int:
    """Take the next word as an option's value, if there is one that does not look like an option itself."""
    if place + 1 >= len(words) or re.match(r"--?[A-Za-z]", words[place + 1].text):
        return 0
    found.values.append((name, words[place + 1]))
    return 1


def _cluster(words: list[Word], place: int, found: Arguments, valued: frozenset[str]) -> int:
    """Sort a cluster of short flags; one that takes a value swallows the rest, or the next word."""
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
