"""The outcome of judging a command: allow, ask or deny, with the rule behind it."""

from enum import StrEnum
from typing import NamedTuple


class Decision(StrEnum):
    """What to do with a command. Decisions are compared as texts: a stricter one is later in the alphabet."""

    ALLOW = "allow"
    ASK = "ask"
    DENY = "deny"


class CommandVerdict(NamedTuple):
    """The decision on a command line, with its rule and the simple command that it applies to."""

    decision: Decision
    rule: str
    reason: str
    command: str

    @property
    def is_allowed(self) -> bool:
        """Return whether the command may run without approval."""
        return self.decision is Decision.ALLOW


class Publication(NamedTuple):
    """A command that publishes commits: a push, or a pull request.

    `operands` follow the subcommand, `options` are all options with values, and `cwd` is relative to the root. `after_a_change`
    means that the command line creates or moves commits first, so the published commits are not known yet.
    """

    program: str
    operands: tuple[str, ...]
    flags: frozenset[str]
    options: tuple[tuple[str, str], ...]
    cwd: str
    after_a_change: bool = False


class Event(StrEnum):
    """An observation of the engine that does not depend on one program. The policy maps it to a decision."""

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
