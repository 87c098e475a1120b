"""Policy for shell commands: before an agent runs a command, allow it, ask a person, or deny it.

A policy is not a sandbox: it reads a command, but does not watch what the command does. It prevents mistakes of honest agents. If
the agent is not trusted, use the sandbox.

Every simple command of a command line is judged, also within `bash -c`, `$(...)` and `find -exec`; the strictest verdict counts.
Unparsable or too complex text is denied; an unknown program needs approval. The rules are data: `policy.toml`, with the changes
of a user's file.
"""

from decklog.guard.policy.engine import examine, is_name, judge
from decklog.guard.policy.policy import Policy
from decklog.guard.policy.verdict import CommandVerdict, Decision, Publication

__all__ = ["CommandVerdict", "Decision", "Policy", "Publication", "examine", "is_name", "judge"]
