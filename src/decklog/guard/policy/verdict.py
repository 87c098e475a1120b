"""The outcome of judging a command: allow, ask or deny, with the rule behind it."""

from enum import StrEnum
from typing import NamedTuple


class Decision(StrEnum):
    """What to do with a command, from harmless to forbidden."""

    ALLOW = "allow"
    ASK = "ask"
    DENY = "deny"

    @property
    def rank(self) -> int:
        """Order decisions: the strictest of several is their maximum."""
        return list(Decision).index(self)


class CommandVerdict(NamedTuple):
    """The decision on a command line, and the simple command that led to it."""

    decision: Decision
    rule: str
    reason: str
    command: str

    @property
    def is_allowed(self) -> bool:
        """Return whether the command may run unasked."""
        return self.decision is Decision.ALLOW


class Publication(NamedTuple):
    """A command that publishes commits: a push, or a pull request.

    `operands` are those after the subcommand, `options` all options with their values; `cwd` is relative to the root. With
    `after_a_change` the same command line moves commits first, so what it publishes is not known yet.
    """

    program: str
    operands: tuple[str, ...]
    flags: frozenset[str]
    options: tuple[tuple[str, str], ...]
    cwd: str
    after_a_change: bool = False
