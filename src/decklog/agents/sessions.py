"""Queries about recorded agent sessions, based on run metadata."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from decklog.agents.texts import storable
from decklog.log import Decklog
from decklog.records.record import every_page
from decklog.stores.runs.run import Run, RunStatus


def is_session(metadata: Mapping[str, object]) -> bool:
    """Check by a run's metadata whether the run is a recorded session, or a sub-agent's part of one."""
    return "program" in metadata and "session" in metadata


def planned_runs(log: Decklog, status: RunStatus, most: int) -> list[Run]:
    """Return the newest runs of a status that are not recorded sessions."""
    runs = (run for run in every_page(log.runs.find, status=status) if not is_session(run.metadata))
    return list(islice(runs, most))


def charge_of_session(session: str | None, number: int) -> str | None:
    """Return the answer id of a charge for a session that Decklog started; None if the program named no session."""
    return None if session is None else f"session:{storable(session)}:{number}"


def is_charged(log: Decklog, session: str) -> bool:
    """Check whether a session was started by Decklog and charged to the run that it worked for."""
    return bool(log.ledger.find(answer_id=charge_of_session(session, 1), limit=1))


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
