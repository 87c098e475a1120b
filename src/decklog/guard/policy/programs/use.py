"""One use of a program, and what a check of it needs of the judge."""

from collections.abc import Callable
from typing import Protocol

from decklog.guard.policy.entries import Finding, Program
from decklog.guard.policy.paths import Paths
from decklog.guard.policy.policy import Policy
from decklog.guard.policy.shell.options import Arguments
from decklog.guard.policy.shell.scope import Scope
from decklog.guard.policy.shell.simple_command import Call
from decklog.guard.policy.shell.words import NO_TAINT, Word


class Judge(Protocol):
    """What a check needs of the judge: the policy, and somewhere to bring what it found."""

    @property
    def policy(self) -> Policy:
        """The policy that decides."""

    @property
    def paths(self) -> Paths:
        """The classes of paths, seen from the repository's root."""

    def report(self, rule: str, text: str) -> None:
        """Report a finding that the policy names."""

    def find(self, finding: Finding, text: str) -> None:
        """Take a finding into account."""

    def matches(self, pattern: str, text: str) -> bool:
        """Tell whether a pattern of the policy is found in code, or the code is too long to search."""

    def path(self, role: str, word: Word, scope: Scope, text: str) -> None:
        """Judge what is done to a path."""

    def run_file(self, word: Word, scope: Scope, call: Call) -> None:
        """Judge a file that is run."""

    def role(self, role: str, word: Word, call: Call, scope: Scope) -> None:
        """Judge a word by its role."""

    def review(self, call: Call, scope: Scope) -> Word:
        """Judge a simple command and tell what it prints, as far as that is known."""

    def run_script(self, text: str, scope: Scope, stdin: Word | None = None, positional: list[Word] | None = None) -> Word:
        """Judge a script within the script, and tell what it prints."""

    def refusal(self, language: str, word: Word, scope: Scope, call: Call) -> str | None:
        """Give the rule by which code would be refused if it were run, None if it would not be."""

    def written(self, path: str, content: Word, scope: Scope, call: Call) -> None:
        """Judge a file by what is written to it, where a build tool runs it."""

    def run_text(self, language: str, word: Word, scope: Scope, call: Call) -> Word:
        """Judge text that is run as code, by where it came from and by what it says."""


class Use:
    """A program being used: the command, what the policy says of the program, and the arguments sorted by it."""

    __slots__ = ("arguments", "call", "name", "printed", "program", "scope", "sub")

    def __init__(self, name: str, call: Call, program: Program, arguments: Arguments, scope: Scope, sub: str = "") -> None:
        self.name = name
        self.call = call
        self.program = program
        self.arguments = arguments
        self.scope = scope
        self.sub = sub
        self.printed: Word | None = None
        """What it prints where that is what a program prints that it starts."""

    @property
    def operands(self) -> list[Word]:
        """Give the operands behind the subcommand."""
        return self.arguments.operands[len(self.sub.split()) :]

    @property
    def stdin_taint(self) -> frozenset[str]:
        """Tell what taints the standard input."""
        return self.call.stdin.taint if self.call.stdin else NO_TAINT

    @property
    def taint(self) -> frozenset[str]:
        """Tell what taints the arguments and the standard input."""
        return self.stdin_taint.union(*(word.taint for word in self.call.argv))


def script_texts(judge: Judge, use: Use, *options: str) -> list[Word]:
    """Give the scripts that a program is told to take from a file, where their text is known; from elsewhere is asked about."""
    texts = []
    for option, word in use.arguments.values:
        if option not in options:
            continue
        is_input = word.text in ("-", "/dev/stdin", "/dev/fd/0")
        found = use.call.stdin if is_input else use.scope.written(word.text)
        if found is None and word.content is not None:
            found = Word(word.content, word.taint)
        if found is not None and found.is_known:
            texts.append(found)
        elif found is not None or is_input:
            judge.report("piped-to-interpreter", use.call.text)
    return texts


Check = Callable[[Judge, Use], None]
"""A check for one kind of program that needs more than the policy's tables."""
