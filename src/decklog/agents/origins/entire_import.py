"""Import of sessions from Entire's branch: their transcripts, and the commits that name them.

Entire records files, not lines, so the import gives no line an origin.
"""

import os
import re
from dataclasses import dataclass, field
from datetime import datetime
from tempfile import TemporaryDirectory
from typing import Any

from decklog.agents.costs import ensure_run
from decklog.agents.history import HistoryImport
from decklog.agents.spool import Spool
from decklog.log import Decklog
from decklog.provenance.formats.entire import EntireCheckpoint, EntireSession, read_checkpoints, read_transcript
from decklog.provenance.git import GitRepository

# Programs whose transcripts are JSON Lines files.
_READABLE = ("claude", "codex", "gemini")
# Older versions put the date before the agent's session id.
_DAY = re.compile(r"^\d{4}-\d{2}-\d{2}-")
CHECKPOINT = "checkpoint.entire"


@dataclass
class EntireSummary:
    """Result of an import of Entire's branch."""

    checkpoints: int = 0
    sessions: set[str] = field(default_factory=set)
    new_entries: int = 0
    linked_commits: int = 0
    left_out: list[str] = field(default_factory=list)

    def as_dict(self) -> dict[str, Any]:
        return {**vars(self), "sessions": sorted(self.sessions)}


def import_entire(repo: GitRepository, log: Decklog, spool: Spool, *, dry_run: bool = False) -> EntireSummary:
    """Import all sessions of Entire's branch with their commits."""
    summary = EntireSummary()
    for checkpoint in read_checkpoints(repo):
        summary.checkpoints += 1
        for session in checkpoint.sessions:
            if not session.session or not session.agent:
                summary.left_out.append(f"a session of checkpoint {checkpoint.id} names no agent")
                continue
            summary.sessions.add(f"{_program(session)}:{_session_id(session)}")
            summary.linked_commits += len(checkpoint.commits)
            if not dry_run:
                _take_transcript(repo, log, spool, session, summary)
                _link(log, checkpoint, session, summary)
    return summary


def _program(session: EntireSession) -> str:
    return session.program or re.sub(r"[^a-z0-9]+", "-", session.agent.lower()).strip("-")


def _session_id(session: EntireSession) -> str:
    return _DAY.sub("", session.session)


def _take_transcript(repo: GitRepository, log: Decklog, spool: Spool, session: EntireSession, summary: EntireSummary) -> None:
    program = _program(session)
    if program not in _READABLE or not session.transcript:
        return
    with TemporaryDirectory(prefix="decklog-import-") as folder:
        path = os.path.join(folder, f"{_session_id(session)}.jsonl")
        with open(path, "wb") as file:
            file.write(read_transcript(repo, session))
        done = HistoryImport(log, program, path, spool).run()
    summary.new_entries += done.new
    summary.left_out += done.warnings


def _link(log: Decklog, checkpoint: EntireCheckpoint, session: EntireSession, summary: EntireSummary) -> None:
    """Append the checkpoint's files and commits to the session's run. Create the run if no transcript was read."""
    run_id = _ensure_run(log, session)
    payload = {"checkpoint": checkpoint.id, "commits": list(checkpoint.commits), "files": list(session.files or checkpoint.files)}
    named = ", ".join(commit[:10] for commit in checkpoint.commits) or "no commit"
    entry = log.journal.append(
        run_id,
        f"Entire checkpoint {checkpoint.id}: {named}",
        kind="event",
        subtype=CHECKPOINT,
        agent=_program(session),
        payload=payload,
        key=f"entire:{checkpoint.id}:{','.join(checkpoint.commits)}",
    )
    summary.new_entries += not entry.already


def _ensure_run(log: Decklog, session: EntireSession) -> str:
    at = datetime.fromisoformat(session.created_at) if session.created_at else None
    goal = " ".join((session.prompt or "").split())[:200] or f"Session of {session.agent}"
    name = f"{_program(session)}:{_session_id(session)}"
    return ensure_run(log, name, goal, source="entire", model=session.model, at=at, prompt=session.prompt)
