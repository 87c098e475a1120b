"""Detection of the calling coding agent by its environment variables."""

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

# Each agent's own variables, and the variable of its session id, if there is one.
_KNOWN = {
    "claude": (("CLAUDECODE", "CLAUDE_CODE_SESSION_ID"), "CLAUDE_CODE_SESSION_ID"),
    "codex": (("CODEX_THREAD_ID", "CODEX_SANDBOX", "CODEX_SANDBOX_NETWORK_DISABLED"), "CODEX_THREAD_ID"),
    "gemini": (("GEMINI_CLI",), "GEMINI_SESSION_ID"),
    "opencode": (("OPENCODE",), "OPENCODE_SESSION_ID"),
}
# Variables that identify any other agent, set by its starter.
_SAID = ("DECKLOG_AGENT", "DECKLOG_AGENT_ID", "DECKLOG_WORKER")
VARIABLES = frozenset(name for marks, session in _KNOWN.values() for name in (*marks, session))


class Recognised:
    """The calling agent and the agents that started it. `session` joins their ids, if each has one."""

    def __init__(self, kinds: list[str], sessions: list[str]) -> None:
        self.kind = "+".join(kinds)
        # A nested agent inherits the variables of its starter, so only the ids of all identify it.
        self.session = " ".join(sessions) if all(sessions) else None


def recognised(environment: "Mapping[str, str] | None" = None) -> Recognised | None:
    """Return the agent that the environment names; None for a person or an unknown program."""
    given = os.environ if environment is None else environment
    kinds = [kind for kind, (marks, _) in _KNOWN.items() if any(given.get(mark) for mark in marks)]
    return Recognised(kinds, [given.get(_KNOWN[kind][1], "") for kind in kinds]) if kinds else None


def is_agent(environment: "Mapping[str, str] | None" = None) -> bool:
    """Return whether an agent calls, by its own variables or by Decklog's."""
    given = os.environ if environment is None else environment
    return any(given.get(name) for name in _SAID) or recognised(given) is not None
