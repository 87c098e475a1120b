"""The state of a script while it is read: variables, functions, aliases, written files, working directory."""

import posixpath
import re
from collections.abc import Iterable
from typing import Any, NamedTuple

from decklog.guard.policy.words import NO_TAINT, SPLIT, UNKNOWN, UNKNOWN_WORD, Word, join_taint

_MOST_VALUES = 8
_LONGEST_VALUE = 16_384
_WELL_KNOWN = {
    **dict.fromkeys(["TMPDIR", "TMP", "TEMP"], Word("/tmp")),
    **dict.fromkeys(["SHELL", "BASH"], Word("/bin/bash")),
    **dict.fromkeys(["UID", "EUID"], Word("1000")),
    **dict.fromkeys("?#", Word("0")),
    "HOME": Word("~"),
    "IFS": Word(" \t\n"),
    "!": Word("%last"),
}


class Function(NamedTuple):
    """A shell function: its parsed body, and the source of the parse."""

    body: Any
    source: bytes


class Scope:
    """The state of one script."""

    def __init__(self, secret_names: re.Pattern[str], cwd: str = ".") -> None:
        self.secret_names = secret_names
        self.variables: dict[str, tuple[Word, ...]] = {}
        self.functions: dict[str, Function] = {}
        self.aliases: dict[str, str] = {}
        self.files: dict[str, Word] = {}
        self.made: set[str] = set()
        """Files whose whole content comes from this script."""
        self.later: list[str] = []
        self.positional: list[Word] | None = None
        self.cwd = self.before = cwd
        self.branch: str | None = None
        self.conditional = 0
        self.chosen: dict[str, Word] = {}

    def inner(self, positional: list[Word] | None = None) -> "Scope":
        """Open a scope for a subshell: it sees this one and keeps its own changes."""
        scope = Scope.__new__(Scope)
        vars(scope).update(vars(self))
        for name in ("variables", "functions", "aliases", "chosen"):
            setattr(scope, name, dict(getattr(self, name)))
        scope.positional = self.positional if positional is None else positional
        return scope

    def assign(self, name: str, word: Word, *, append: bool = False) -> None:
        """Set a variable; within a branch or a loop, add a possible value."""
        before = self.variables.get(name, ())
        if append:
            word = Word((before[-1].text if before else "") + word.text, word.taint)
        if len(word.text) > _LONGEST_VALUE:
            word = Word(UNKNOWN, word.taint)
        self.offer(name, (*before, word) if self.conditional else (word,))

    def offer(self, name: str, words: Iterable[Word]) -> None:
        """Set several possible values of a variable."""
        values = tuple(dict.fromkeys(words)) or (UNKNOWN_WORD,)
        self.variables[name] = values if len(values) <= _MOST_VALUES else (*values[: _MOST_VALUES - 1], UNKNOWN_WORD)

    def wrote(self, path: str, word: Word, *, append: bool = False) -> None:
        """Remember what the script has written to a file."""
        place = posixpath.normpath(path)
        if append:
            before = self.files.get(place, UNKNOWN_WORD)
            word = Word(f"{before.text}\n{word.text}", before.taint | word.taint)
        self.files[place] = word
        if word.is_known and not word.taint:
            self.built(path)

    def built(self, path: str) -> None:
        """Remember a file that the script made from text or sources that could be judged."""
        if not self.conditional:
            self.made.add(posixpath.normpath(path))

    def changed(self, path: str) -> None:
        """Forget that a file came from the script alone."""
        self.made.discard(posixpath.normpath(path))

    def has_made(self, path: str) -> bool:
        """Return whether all of a file came from the script."""
        return posixpath.normpath(path) in self.made

    def written(self, path: str) -> Word | None:
        """Return what the script has written to a file."""
        return self.files.get(posixpath.normpath(path)) if path else None

    def value(self, name: str) -> Word:
        """Return a variable's value, unknown if the script has not set it."""
        if name in self.chosen:
            return self.chosen[name]
        if name in self.variables:
            return self.variables[name][-1]
        if name in ("PWD", "OLDPWD"):
            return Word(self.cwd if name == "PWD" else self.before)
        if name.isdigit() or name in "@*":
            return self._argument(name)
        if name in _WELL_KNOWN:
            return _WELL_KNOWN[name]
        return Word(UNKNOWN, frozenset({"secret"}) if self.secret_names.search(name) else NO_TAINT)

    def _argument(self, name: str) -> Word:
        """Return a positional parameter, or all of them."""
        if self.positional is None or name == "0":
            return UNKNOWN_WORD
        if name in "@*":
            return Word(SPLIT.join(word.text for word in self.positional), join_taint(self.positional))
        place = int(name[:6]) - 1
        return self.positional[place] if place < len(self.positional) else Word("")
