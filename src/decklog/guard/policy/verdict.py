"""The outcome of judging a command: allow, ask or deny, with the rule behind it."""

from enum import StrEnum
from typing import NamedTuple


class Decision(StrEnum):
    """What to do with a command, from harmless to forbidden: the names of stricter decisions are later in the alphabet."""

    ALLOW = "allow"
    ASK = "ask"
    DENY = "deny"


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


class Event(StrEnum):
    """Something the engine sees that is not about one program."""

    UNPARSED = "unparsed"
    TOO_COMPLEX = "complexity"
    UNKNOWN_PROGRAM = "program-not-listed"
    UNKNOWN_NAME = "program-name-unknown"
    SUBSCRIPT_COMMAND = "subscript-command"
    FORK_BOMB = "function-forks-itself"
    PROCESS_FLOOD = "background-loop"
    STARTS_PROGRAM = "starts-program"
    OPAQUE_CODE = "code-unknown"
    RISKY_CODE = "code-risky"
    NETWORK_CODE = "code-from-network"
    DECODED_CODE = "code-decoded"
    REFUSED_LATER = "refused-code-written"
    MODULE = "module-not-listed"
    SOCKET = "socket-redirect"
    PRINTS_ENVIRONMENT = "prints-environment"
    PRINTS_SECRET = "prints-secret"
    ENDLESS_OUTPUT = "endless-output"
    PACKAGE = "package-not-listed"
