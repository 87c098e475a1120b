"""What judging a command comes to: allow, ask or deny, with the rule that said so."""

from enum import StrEnum
from typing import NamedTuple


class Decision(StrEnum):
    """What to do with a command, from harmless to forbidden."""

    ALLOW = "allow"
    ASK = "ask"
    DENY = "deny"

    @property
    def rank(self) -> int:
        """Order decisions, so that the worst of several is their maximum."""
        return _RANKS[self]


_RANKS = {Decision.ALLOW: 0, Decision.ASK: 1, Decision.DENY: 2}


class Verdict(NamedTuple):
    """The decision on a command line, and the simple command that led to it."""

    decision: Decision
    rule: str
    reason: str
    command: str

    @property
    def is_allowed(self) -> bool:
        """Tell whether the command may run without anybody being asked."""
        return self.decision is Decision.ALLOW


class Publication(NamedTuple):
    """A command that hands commits to others: a push, or the request that they be merged.

    `operands` are those behind the subcommand, `options` all others with their values; `cwd` is where it runs, from the root.
    Of one that comes `after_a_change` nobody can tell yet what it hands on.
    """

    program: str
    operands: tuple[str, ...]
    flags: frozenset[str]
    options: tuple[tuple[str, str], ...]
    cwd: str
    after_a_change: bool = False


def worst(first: Verdict, second: Verdict) -> Verdict:
    """Give the stricter of two verdicts, the first where they are equal."""
    return second if second.decision.rank > first.decision.rank else first
