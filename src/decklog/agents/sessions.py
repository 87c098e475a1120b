"""Queries about recorded agent sessions, based on run metadata."""

import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from decklog.agents.entries import session_run_id
from decklog.agents.texts import storable
from decklog.core.errors import NotFound
from decklog.log import Decklog
from decklog.records.record import find_all
from decklog.stores.runs.run import ENDED, Run, RunStatus


def is_session(metadata: Mapping[str, object]) -> bool:
    """Check by a run's metadata whether the run is a recorded session, or a sub-agent's part of one."""
    return "program" in metadata and "session" in metadata


def planned_runs(log: Decklog, status: RunStatus, most: int) -> list[Run]:
    """Return the newest runs of a status that are not recorded sessions."""
    runs = (run for run in find_all(log.runs.find, status=status) if not is_session(run.metadata))
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

    def home_in(self, environment: Mapping[str, str]) -> str:
        """Return the program's folder: that of its variable, or the one in the user's home."""
        home = environment.get("HOME") or os.path.expanduser("~")
        return environment.get(self.variable) or os.path.join(home, self.home)

    def folder(self) -> str:
        """Return the folder that has the session files, whether it exists or not."""
        return os.path.join(self.home_in(os.environ), self.inside)


HISTORIES = {
    one.program: one
    for one in (
        SessionFiles("claude", "Claude Code", "CLAUDE_CONFIG_DIR", ".claude", "projects"),
        SessionFiles("codex", "Codex", "CODEX_HOME", ".codex", "sessions"),
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


# Cost and model of the runs behind edits

_PAGE = 200


class WorkCost(NamedTuple):
    """A sum in microdollars, and the number of calls without a known price."""

    microdollars: int = 0
    unpriced_calls: int = 0

    def plus(self, other: "WorkCost") -> "WorkCost":
        """Return the sum of both costs."""
        return WorkCost(self.microdollars + other.microdollars, self.unpriced_calls + other.unpriced_calls)


NO_COST = WorkCost()


def cost_of_work(log: Decklog, run_id: str, task_id: str | None) -> WorkCost:
    """Return the cost of a task; without a task, that of the run and its sub-agents."""
    below = [] if task_id is not None else [run.id for run in log.runs.find(parent_run_id=run_id, limit=_PAGE)]
    total = NO_COST
    for name in (run_id, *below):
        spent = log.ledger.summary(name, task_id=task_id)["total"]
        total = total.plus(WorkCost(spent["cost_microdollars"], spent["unpriced_calls"]))
    return total


def model_of_run(log: Decklog, run_id: str | None) -> str | None:
    """Return the model of a session's run; None if it is unknown."""
    try:
        found = None if run_id is None else log.runs.get(run_id).metadata.get("model")
    except NotFound:
        return None
    return found if isinstance(found, str) else None


def ensure_run(
    log: Decklog, session: str, goal: str, *, source: str, model: str | None, at: datetime | None, prompt: str | None = None
) -> str:
    """Return the run of a session; create the run, which has ended, if it does not exist."""
    program, _, conversation = session.partition(":")
    run_id = session_run_id(program, conversation)
    with suppress(NotFound):
        return log.runs.get(run_id).id
    metadata: dict[str, object] = {"program": program, "session": conversation, "source": source}
    if model:
        metadata["model"] = model
    run = log.runs.start(goal, run_id=run_id, metadata=metadata, started_at=at)
    if prompt and prompt.strip():
        log.journal.append(run_id, prompt, kind="interaction", subtype="prompt", agent="person", key=f"{source}:prompt", at=at)
    return run_id if run.status in ENDED else log.runs.finish(run_id, ended_at=at).id
