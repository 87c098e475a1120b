"""One use of a program."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from typing import Any

from decklog.guard.policy.policy import Policy, PolicyTable
from decklog.guard.policy.scope import Scope
from decklog.guard.policy.script import Call
from decklog.guard.policy.words import NO_TAINT, Arguments, Word, join_taint


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
