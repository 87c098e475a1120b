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


def worst(first: Verdict, second: Verdict) -> Verdict:
    """Give the stricter of two verdicts, the first where they are equal."""
    return second if second.decision.rank > first.decision.rank else first
