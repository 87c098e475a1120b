"""Judging of shell commands before an agent runs them: allow, ask a person, or deny.

A policy is not a sandbox: it reads a command and does not watch what the command then does. It keeps honest agents from
mistakes. Where the agent itself is not trusted, use the sandbox.

Every simple command of a command line is judged, also within `bash -c`, `$(...)` and `find -exec`; the strictest verdict counts.
Text that can't be parsed or is too complex is denied; unknown programs are asked about. The rules are data: `policy.toml`, and
a user's own file over it.
"""

from decklog.guard.policy.engine import examine, is_name, judge
from decklog.guard.policy.policy import Policy
from decklog.guard.policy.verdict import CommandVerdict, Decision, Publication

__all__ = ["CommandVerdict", "Decision", "Policy", "Publication", "examine", "is_name", "judge"]
