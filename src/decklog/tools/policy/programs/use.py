"""One use of a program: the command, what the policy says of the program, and the arguments sorted by it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from decklog.tools.policy.policy import Program
from decklog.tools.policy.shell.options import Arguments
from decklog.tools.policy.shell.scope import Scope
from decklog.tools.policy.shell.simple_command import Call
from decklog.tools.policy.shell.words import NO_TAINT, Word

if TYPE_CHECKING:
    from decklog.tools.policy.programs.judging import Bench


@dataclass(slots=True)
class Use:
    """A program being used."""

    name: str
    call: Call
    program: Program
    arguments: Arguments
    scope: Scope
    sub: str = ""

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


Special = Callable[["Bench", Use], None]
"""A check for one kind of program that needs more than the policy's tables."""
