"""What a script has set up so far: variables, functions, aliases, files it wrote, where it stands."""

import posixpath
import re
from collections.abc import Iterable
from copy import copy
from typing import Any, NamedTuple

from decklog.guard.policy.shell.words import NO_TAINT, SPLIT, UNKNOWN, UNKNOWN_WORD, Word

_MOST_VALUES = 8
_LONGEST_VALUE = 16_384
_WELL_KNOWN = {
    "HOME": Word("~"),
    "TMPDIR": Word("/tmp"),
    "TMP": Word("/tmp"),
    "TEMP": Word("/tmp"),
    "SHELL": Word("/bin/bash"),
    "BASH": Word("/bin/bash"),
    "IFS": Word(" \t\n"),
    "!": Word("%last"),
    "?": Word("0"),
    "#": Word("0"),
    "EUID": Word("1000"),
    "UID": Word("1000"),
}


class Function(NamedTuple):
    """A shell function: its body as parsed, and the text the parse belongs to."""

    body: Any
    source: bytes


class Scope:
    """The state of one script while it is read from top to bottom."""

    def __init__(self, secret_names: re.Pattern[str], cwd: str = ".") -> None:
        self.secret_names = secret_names
        self.variables: dict[str, tuple[Word, ...]] = {}
        self.functions: dict[str, Function] = {}
        self.aliases: dict[str, str] = {}
        self.files: dict[str, Word] = {}
        self.made: set[str] = set()
        self.later: list[str] = []
        self.positional: list[Word] | None = None
        self.cwd = cwd
        self.before = cwd
        """Where the script stood before it last changed its directory."""
        self.branch: str | None = None
        self.conditional = 0
        self.chosen: dict[str, Word] = {}

    def inner(self, positional: list[Word] | None = None) -> "Scope":
        """Open a scope for a subshell or an inner script: it sees what is set and keeps its changes."""
        scope = copy(self)
        scope.variables = dict(self.variables)
        scope.functions = dict(self.functions)
        scope.aliases = dict(self.aliases)
        scope.positional = self.positional if positional is None else positional
        scope.chosen = dict(self.chosen)
        return scope

    def assign(self, name: str, word: Word, *, append: bool = False) -> None:
        """Remember a variable's value; within a branch or a loop, as one of several it may have."""
        before = self.variables.get(name, ())
        if append:
            word = Word((before[-1].text if before else "") + word.text, word.taint)
        if len(word.text) > _LONGEST_VALUE:
            word = Word(UNKNOWN, word.taint)
        if self.conditional and before:
            word_set = (*before, word) if word not in before else before
            self.variables[name] = word_set if len(word_set) <= _MOST_VALUES else (*word_set[:7], UNKNOWN_WORD)
        else:
            self.variables[name] = (word,)

    def offer(self, name: str, words: Iterable[Word]) -> None:
        """Give a loop variable all the values it runs through."""
        values = tuple(dict.fromkeys(words)) or (UNKNOWN_WORD,)
        self.variables[name] = values if len(values) <= _MOST_VALUES else (*values[:7], UNKNOWN_WORD)

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
        """Remember a file of which the script has made all, of what could be read or of sources of the repository."""
        if not self.conditional:
            self.made.add(posixpath.normpath(path))

    def changed(self, path: str) -> None:
        """Forget that all of a file came from the script."""
        self.made.discard(posixpath.normpath(path))

    def has_made(self, path: str) -> bool:
        """Tell whether all of a file was made by the script."""
        return posixpath.normpath(path) in self.made

    def written(self, path: str) -> Word | None:
        """Give what the script has written to a file, None if it has not."""
        return self.files.get(posixpath.normpath(path)) if path else None

    def value(self, name: str) -> Word:
        """Give a variable's value, unknown if the script has not set it."""
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
        taint = frozenset({"secret"}) if self.secret_names.search(name) else NO_TAINT
        return Word(UNKNOWN, taint)

    def _argument(self, name: str) -> Word:
        """Give a positional parameter, or all of them."""
        if self.positional is None or name == "0":
            return UNKNOWN_WORD
        if name in "@*":
            taint = frozenset().union(*(word.taint for word in self.positional))
            return Word(SPLIT.join(word.text for word in self.positional), taint)
        place = int(name[:6]) - 1
        return self.positional[place] if place < len(self.positional) else Word("")
