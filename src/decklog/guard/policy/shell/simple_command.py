"""A simple command as the shell would run it."""

from typing import NamedTuple

from decklog.guard.policy.shell.words import Word


class Redirect(NamedTuple):
    """One redirection: its operator, and the file it names."""

    operator: str
    target: Word

    @property
    def writes(self) -> bool:
        """Tell whether the target is opened for writing."""
        return ">" in self.operator

    @property
    def is_output(self) -> bool:
        """Tell whether the command's standard output goes there."""
        return self.writes and not self.operator.startswith("2")


class Call:
    """A simple command: arguments, assignments before it, redirections, what it reads on standard input."""

    __slots__ = ("argv", "assigned", "guessed", "redirects", "stdin", "text")

    def __init__(
        self,
        argv: list[Word],
        text: str,
        assigned: dict[str, Word] | None = None,
        redirects: list[Redirect] | None = None,
        stdin: Word | None = None,
        *,
        guessed: bool = False,
    ) -> None:
        self.argv = argv
        self.text = text
        self.assigned = {} if assigned is None else assigned
        self.redirects = [] if redirects is None else redirects
        self.stdin = stdin
        self.guessed = guessed
        """True if the text did not parse and this is one reading of it."""

    def inner(self, argv: list[Word], **changes: object) -> "Call":
        """Give the command that this one would start."""
        call = Call(argv, self.text, stdin=self.stdin, guessed=self.guessed)
        for name, value in changes.items():
            setattr(call, name, value)
        return call
