"""The state of a script while it is analyzed, and one simple command of it."""

import posixpath
import re
from collections.abc import Iterable
from typing import Any, NamedTuple

from decklog.guard.policy.words import NO_TAINT, SPLIT, UNKNOWN, UNKNOWN_WORD, Word, join_taint

Function = tuple[Any, bytes]
"""The syntax tree of a shell function's body, and the source it was parsed from."""

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


class Redirect(NamedTuple):
    """One redirection: its operator and its file."""

    operator: str
    target: Word

    @property
    def writes(self) -> bool:
        """Return whether the file is opened for writing."""
        return ">" in self.operator

    @property
    def is_output(self) -> bool:
        """Return whether standard output goes to the file, and not to a descriptor."""
        return self.writes and self.operator[0] != "2" and self.operator[-1] != "&" and bool(self.target.text)


class Call:
    """A simple command: arguments, assignments before it, redirections, standard input."""

    def __init__(self, argv: list[Word], text: str, assigned: dict[str, Word] | None = None, stdin: Word | None = None) -> None:
        self.argv = argv
        self.text = text
        self.assigned = assigned or {}
        self.stdin = stdin
        self.redirects: list[Redirect] = []
        # Nodes of the syntax tree that the grammar puts into a redirection: further arguments, and statements that follow.
        self.extra: list[Any] = []
        self.after: list[Any] = []

    def inner(self, argv: list[Word], *, keeps_stdin: bool = True) -> "Call":
        """Return the command that this one starts."""
        return Call(argv, self.text, stdin=self.stdin if keeps_stdin else None)


class Scope:
    """Variables, functions, aliases, written files and working directory of one script."""

    def __init__(self, secret_names: re.Pattern[str], cwd: str = ".") -> None:
        self.secret_names = secret_names
        self.variables: dict[str, tuple[Word, ...]] = {}
        self.functions: dict[str, Function] = {}
        self.aliases: dict[str, str] = {}
        self.files: dict[str, Word] = {}
        # Files whose whole content was created by this script.
        self.created: set[str] = set()
        self.deferred_commands: list[str] = []
        self.positional: list[Word] | None = None
        self.cwd = self.previous_cwd = cwd
        self.branch: str | None = None
        self.conditional = 0
        self.fixed_values: dict[str, Word] = {}

    def inner(self, positional: list[Word] | None = None) -> "Scope":
        """Return the scope of a subshell: a copy whose changes do not affect this scope."""
        scope = Scope.__new__(Scope)
        vars(scope).update(vars(self))
        for name in ("variables", "functions", "aliases", "fixed_values"):
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
        self.assign_any(name, (*before, word) if self.conditional else (word,))

    def assign_any(self, name: str, words: Iterable[Word]) -> None:
        """Set several possible values of a variable."""
        values = tuple(dict.fromkeys(words)) or (UNKNOWN_WORD,)
        self.variables[name] = values if len(values) <= _MOST_VALUES else (*values[: _MOST_VALUES - 1], UNKNOWN_WORD)

    def record_write(self, path: str, word: Word, *, append: bool = False) -> None:
        """Record what the script has written to a file."""
        place = posixpath.normpath(path)
        if append:
            before = self.files.get(place, UNKNOWN_WORD)
            word = Word(f"{before.text}\n{word.text}", before.taint | word.taint)
        self.files[place] = word
        if word.is_known and not word.taint:
            self.record_trusted_file(path)

    def record_trusted_file(self, path: str) -> None:
        """Record a file that the script created only from text or sources that were judged."""
        if not self.conditional:
            self.created.add(posixpath.normpath(path))

    def has_created(self, path: str) -> bool:
        """Return whether the script created the whole content of a file."""
        return posixpath.normpath(path) in self.created

    def find_written_content(self, path: str) -> Word | None:
        """Return what the script has written to a file; None for other files."""
        return self.files.get(posixpath.normpath(path)) if path else None

    def value(self, name: str) -> Word:
        """Return a variable's value, unknown if the script has not set it."""
        if name in self.fixed_values:
            return self.fixed_values[name]
        if name in self.variables:
            return self.variables[name][-1]
        if name in ("PWD", "OLDPWD"):
            return Word(self.cwd if name == "PWD" else self.previous_cwd)
        if name in "@*" or name.isdigit():
            if self.positional is None or name == "0":
                return UNKNOWN_WORD
            if name in "@*":
                return Word(SPLIT.join(word.text for word in self.positional), join_taint(self.positional))
            place = int(name[:6]) - 1
            return self.positional[place] if place < len(self.positional) else Word("")
        if name in _WELL_KNOWN:
            return _WELL_KNOWN[name]
        return Word(UNKNOWN, frozenset({"secret"}) if self.secret_names.search(name) else NO_TAINT)
