"""Judging of shell commands before an agent runs them: allow, ask a person, or deny.

A policy is not a sandbox. It reads what a command says and decides by that; it does not watch what the
command then does. A build script, a test or a program of the repository can do anything its user can do,
and a determined author can write what no reader understands. The policy keeps honest agents from mistakes
and makes careless ones stop and ask. Where the agent itself is not trusted, run it as another user, in a
container or a virtual machine, and keep secrets out of its reach.

The whole command line is parsed and every simple command in it is judged, also within `bash -c`, `$(...)`,
`find -exec` and their like; the verdict is the worst of them. What can't be parsed or is too complex is
denied, and what is not known is asked about. What is decided about which program is data: `default.toml` beside this file, and a
user's own file over it.
"""

from decklog.guard.policy.judge import examine, is_name, judge
from decklog.guard.policy.policy import Policy
from decklog.guard.policy.verdict import Decision, Publication, Verdict

__all__ = ["Decision", "Policy", "Publication", "Verdict", "examine", "is_name", "judge"]
