"""A simple command as the shell would run it."""

from dataclasses import dataclass, field

from decklog.tools.policy.shell.words import Word


@dataclass(frozen=True, slots=True)
class Redirect:
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


@dataclass(slots=True)
class Call:
    """A simple command: arguments, assignments before it, redirections, what it reads on standard input."""

    argv: list[Word]
    text: str
    assigned: dict[str, Word] = field(default_factory=dict)
    redirects: list[Redirect] = field(default_factory=list)
    stdin: Word | None = None
    guessed: bool = False
    """True if the text did not parse and this is one reading of it."""

    def inner(self, argv: list[Word], **changes: object) -> "Call":
        """Give the command that this one would start."""
        call = Call(argv, self.text, {}, [], self.stdin, self.guessed)
        for name, value in changes.items():
            setattr(call, name, value)
        return call
