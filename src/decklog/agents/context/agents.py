"""Which agent calls: those that set variables of their own for what they run are known by them."""

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

# Each agent with the variables that only it sets, and the one that holds the id of its session, where there is one.
_KNOWN = {
    "claude": (("CLAUDECODE", "CLAUDE_CODE_SESSION_ID"), "CLAUDE_CODE_SESSION_ID"),
    "codex": (("CODEX_THREAD_ID", "CODEX_SANDBOX", "CODEX_SANDBOX_NETWORK_DISABLED"), "CODEX_THREAD_ID"),
    "gemini": (("GEMINI_CLI",), "GEMINI_SESSION_ID"),
    "opencode": (("OPENCODE",), "OPENCODE_SESSION_ID"),
}
# What whoever starts an agent of another kind says instead.
_SAID = ("DECKLOG_AGENT", "DECKLOG_AGENT_ID", "DECKLOG_WORKER")
VARIABLES = frozenset(name for marks, session in _KNOWN.values() for name in (*marks, session))


class Recognised:
    """The agent that a call comes from, and those that started it; `session` is theirs together, if each has one."""

    def __init__(self, kinds: list[str], sessions: list[str]) -> None:
        self.kind = "+".join(kinds)
        # An agent that another one started inherits its variables: only all of them together tell the two apart.
        self.session = " ".join(sessions) if all(sessions) else None


def recognised(environment: "Mapping[str, str] | None" = None) -> Recognised | None:
    """Return which agent the environment speaks of; None when a person, or a program that says nothing, calls."""
    given = os.environ if environment is None else environment
    kinds = [kind for kind, (marks, _) in _KNOWN.items() if any(given.get(mark) for mark in marks)]
    return Recognised(kinds, [given.get(_KNOWN[kind][1], "") for kind in kinds]) if kinds else None


def is_agent(environment: "Mapping[str, str] | None" = None) -> bool:
    """Return whether an agent calls, by its own variables or by those that whoever started it set."""
    given = os.environ if environment is None else environment
    return any(given.get(name) for name in _SAID) or recognised(given) is not None
