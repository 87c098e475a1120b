"""One use of a program, and what its parts need of the engine that judges it."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from typing import Any, NamedTuple, Protocol

from decklog.guard.policy.paths import Paths
from decklog.guard.policy.policy import Policy, PolicyTable
from decklog.guard.policy.scope import Scope
from decklog.guard.policy.verdict import Event, Publication
from decklog.guard.policy.words import NO_TAINT, Arguments, Word, join_taint


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

    def __init__(
        self,
        argv: list[Word],
        text: str,
        assigned: dict[str, Word] | None = None,
        redirects: list[Redirect] | None = None,
        stdin: Word | None = None,
    ) -> None:
        self.argv = argv
        self.text = text
        self.assigned = assigned or {}
        self.redirects = redirects or []
        self.stdin = stdin

    def inner(self, argv: list[Word], *, keeps_stdin: bool = True) -> "Call":
        """Return the command that this one starts."""
        return Call(argv, self.text, stdin=self.stdin if keeps_stdin else None)


class Use:
    """A program being used: the command, the program's entry, and the arguments sorted by it."""

    def __init__(self, name: str, call: Call, program: PolicyTable, arguments: Arguments, scope: Scope) -> None:
        self.name = name
        self.call = call
        self.program = program
        self.arguments = arguments
        self.scope = scope
        self.sub = ""
        self.finding = program.finding

    @property
    def operands(self) -> list[Word]:
        """Return the operands after the subcommand."""
        return self.arguments.operands[len(self.sub.split()) :]

    @property
    def stdin_taint(self) -> frozenset[str]:
        """Return the taint of standard input."""
        return self.call.stdin.taint if self.call.stdin else NO_TAINT

    def taint_except(self, options: Iterable[str]) -> frozenset[str]:
        """Return the taint of standard input and of the arguments, leaving out the values of some options."""
        spared = [word.text for option, word in self.arguments.values if option in options]
        words = [word for word in self.call.argv if not any(word.text.endswith(text) for text in spared)]
        return self.stdin_taint | join_taint(words)

    def operand_roles(self, policy: Policy) -> Iterator[tuple[str, Word]]:
        """Yield the operands with their roles."""
        entry, operands = dict(self.program.data), self.operands
        for case in self.program.get("when"):
            if self._is_case(case, policy):
                entry.update(case)
        has_first = "first" in entry and not self.arguments.has(entry.get("first_unless", "").split())
        spared = [id(word) for before, word in pairwise(self.call.argv) if before.text in entry.get("text_after", "").split()]
        for place, word in enumerate(operands):
            if id(word) in spared:
                continue
            if place == 0 and has_first:
                yield entry["first"], word
            elif "runs" in entry:
                return
            else:
                is_last = place > 0 and place == len(operands) - 1
                yield entry.get("last" if is_last and "last" in entry else "operands", "text"), word
        if len(operands) < entry.get("least", 0):
            yield entry["operands"], Word(entry["default"])

    def _is_case(self, case: Mapping[str, Any], policy: Policy) -> bool:
        """Return whether the conditions of a `when` entry hold."""
        arguments = self.arguments
        if ("flags" in case and not arguments.has(case["flags"].split())) or arguments.has(case.get("without", "").split()):
            return False
        if "only_flags" in case and not set(arguments.flags) <= policy.names(case["only_flags"]):
            return False
        values = [f"{option}={word.text}" for option, word in arguments.values]
        if "only_values" in case and not all(map(policy.patterns(case["only_values"]).match, values)):
            return False
        return not case.get("no_output") or all(
            not redirect.is_output or redirect.target.text == "/dev/null" for redirect in self.call.redirects
        )


class Judge(Protocol):
    """The engine, as its parts call it."""

    policy: Policy
    paths: Paths
    published: list[Publication]
    moves_commits: bool

    def spend(self) -> None: ...
    def knows(self, name: str) -> bool: ...
    def report(self, event: Event, text: str) -> None: ...
    def run_script(self, text: str, scope: Scope, stdin: Word | None = None, positional: list[Word] | None = None) -> Word: ...
    def run_text(self, language: str, word: Word, scope: Scope, call: Call) -> Word: ...
    def is_refused(self, role: str, word: Word, scope: Scope, call: Call) -> bool: ...
    def path(self, role: str, word: Word, scope: Scope, text: str) -> None: ...
    def run_file(self, word: Word, scope: Scope, call: Call) -> None: ...
    def write(self, path: str, content: Word, scope: Scope, call: Call, *, append: bool = False) -> None: ...
    def file_roles(self, path: str) -> list[str]: ...
    def review(self, call: Call, scope: Scope) -> Word: ...
    def review_redirects(self, redirects: list[Redirect], scope: Scope, text: str) -> None: ...
    def review_written(self, redirects: list[Redirect], output: Word, scope: Scope, text: str) -> None: ...
    def variable(self, name: str, word: Word, call: Call, scope: Scope) -> None: ...
    def use(self, name: str, program: PolicyTable, call: Call, scope: Scope) -> Word: ...
    def role_of(self, role: str, word: Word, use: Use) -> None: ...
