"""Session folders of coding agents, and the folders of a repository."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class SessionFiles:
    """Session files of one coding agent."""

    program: str
    title: str
    variable: str
    home: str
    inside: str

    def folder(self, environment: Mapping[str, str] | None = None) -> str:
        """Return the folder that has the session files, whether it exists or not."""
        named = (os.environ if environment is None else environment).get(self.variable)
        return os.path.join(named or os.path.expanduser(self.home), self.inside)


HISTORIES = {
    one.program: one
    for one in (
        SessionFiles("claude", "Claude Code", "CLAUDE_CONFIG_DIR", "~/.claude", "projects"),
        SessionFiles("codex", "Codex", "CODEX_HOME", "~/.codex", "sessions"),
    )
}


def present() -> list[SessionFiles]:
    """List the coding agents whose session folder exists."""
    return [history for history in HISTORIES.values() if os.path.isdir(history.folder())]


def roots_of(project: str) -> list[str]:
    """List the folders of a repository: its own, and those of its linked worktrees."""
    roots = [os.path.abspath(project), os.path.realpath(project)]
    for pointer in sorted(Path(project, ".git", "worktrees").glob("*/gitdir")):
        # The file names the `.git` of the worktree.
        worktree = os.path.dirname(pointer.read_text(encoding="utf-8", errors="replace").strip())
        roots += [worktree, os.path.realpath(worktree)]
    return list(dict.fromkeys(roots))
