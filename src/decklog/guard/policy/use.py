"""One use of a program: its command, the program's entry in the policy, and the arguments sorted by that entry."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

from decklog.guard.policy.policy import Policy, PolicyTable
from decklog.guard.policy.scope import Scope
from decklog.guard.policy.verdict import Event
from decklog.guard.policy.words import NO_TAINT, Arguments, Word, join_taint

if TYPE_CHECKING:
    from decklog.guard.policy.engine import Judging


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
    """A program being used, and the engine that judges it."""

    def __init__(self, judge: "Judging", call: Call, scope: Scope, name: str = "", program: PolicyTable | None = None) -> None:
        self.judge = judge
        self.call = call
        self.scope = scope
        self.name = name
        self.program = program or PolicyTable({}, judge.policy)
        self.arguments: Arguments = Arguments()
        self.sub = ""
        self.finding = self.program.finding

    @property
    def policy(self) -> Policy:
        """Return the policy that the use is judged by."""
        return self.judge.policy

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
        exempt = [word.text for option, word in self.arguments.values if option in options]
        words = [word for word in self.call.argv if not any(word.text.endswith(text) for text in exempt)]
        return self.stdin_taint | join_taint(words)

    # What the use is judged by

    def report(self, event: Event) -> None:
        """Report an event."""
        self.judge.report(event, self.call.text)

    def check(self, role: str, word: Word) -> None:
        """Judge a word by its role."""
        self.judge.check(role, word, self)

    def check_path(self, role: str, word: Word) -> None:
        """Judge what is done to a path."""
        self.judge.check_path(role, word, self.scope, self.call.text)

    def is_refused(self, role: str, word: Word) -> bool:
        """Return whether text would be denied in a role."""
        return self.judge.is_refused(role, word, self.scope, self.call)

    def run_text(self, language: str, word: Word) -> Word:
        """Judge text that is run as code, and return its output."""
        return self.judge.run_text(language, word, self.scope, self.call)

    def run(self, argv: list[Word], *, keeps_stdin: bool = True) -> Word:
        """Judge a command that the program starts, and return its output."""
        return self.judge.review(self.call.inner(argv, keeps_stdin=keeps_stdin), self.scope)

    def write(self, path: str, content: Word, *, append: bool = False) -> None:
        """Remember and judge what is written to a file."""
        self.judge.write(path, content, self.scope, self.call, append=append)

    # The roles of its operands

    def operand_roles(self) -> Iterator[tuple[str, Word]]:
        """Yield the operands with their roles."""
        entry, operands = dict(self.program.data), self.operands
        for case in self.program.get("when"):
            if self._is_case(case):
                entry.update(case)
        has_first = "first" in entry and not self.arguments.has(entry.get("first_unless", "").split())
        plain = [id(word) for before, word in pairwise(self.call.argv) if before.text in entry.get("text_after", "").split()]
        for place, word in enumerate(operands):
            if id(word) in plain:
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

    def _is_case(self, case: Mapping[str, Any]) -> bool:
        """Return whether the conditions of a `when` entry hold."""
        arguments = self.arguments
        if ("flags" in case and not arguments.has(case["flags"].split())) or arguments.has(case.get("without", "").split()):
            return False
        if "only_flags" in case and not set(arguments.flags) <= self.policy.names(case["only_flags"]):
            return False
        values = [f"{option}={word.text}" for option, word in arguments.values]
        if "only_values" in case and not all(map(self.policy.patterns(case["only_values"]).match, values)):
            return False
        return not case.get("no_output") or all(
            not redirect.is_output or redirect.target.text == "/dev/null" for redirect in self.call.redirects
        )
