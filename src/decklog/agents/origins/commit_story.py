"""A commit by origin: its files, the share of each origin, and the sessions, tasks and cost behind it."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from decklog.agents.costs import NO_COST, WorkCost, cost_of_work
from decklog.agents.origins.reviewed import find_unreviewed
from decklog.core.errors import NotFound
from decklog.log import Decklog
from decklog.provenance.attribution import LineRange
from decklog.provenance.commit_origins import CommitOrigins
from decklog.provenance.git import GitRepository
from decklog.provenance.history import CommitChanges, FileChange, read_commit
from decklog.stores.provenance.edits import Edit

KINDS = ("agent", "person", "mixed", "unknown")


@dataclass(frozen=True, kw_only=True)
class FileShare:
    """The lines that a commit added to a file, by origin."""

    change: FileChange
    ranges: list[LineRange]

    @property
    def lines(self) -> Counter[str]:
        """Number of added lines by kind of origin."""
        return count_kinds(self.ranges)


@dataclass(frozen=True, kw_only=True)
class SessionShare:
    """A session with its lines in a commit, its task and its cost."""

    session: str
    lines: int
    run_id: str | None = None
    task_id: str | None = None
    title: str | None = None
    model: str | None = None
    cost: WorkCost = NO_COST

    def as_dict(self) -> dict[str, Any]:
        found = {name: value for name, value in vars(self).items() if name != "cost"}
        return {**found, "cost_microdollars": self.cost.microdollars, "unpriced_calls": self.cost.unpriced_calls}


@dataclass(frozen=True, kw_only=True)
class CommitStory:
    """A commit by origin."""

    changes: CommitChanges
    files: list[FileShare]
    sessions: list[SessionShare] = field(default_factory=list)
    is_reviewed: bool = False

    @property
    def lines(self) -> Counter[str]:
        """Number of added lines by kind of origin."""
        return sum((file.lines for file in self.files), Counter())

    def as_dict(self) -> dict[str, Any]:
        commit = self.changes
        return {
            "commit": commit.commit,
            "parents": list(commit.parents),
            "author": commit.author,
            "at": commit.at.isoformat(),
            "subject": commit.subject,
            "is_reviewed": self.is_reviewed,
            "lines": {kind: self.lines[kind] for kind in KINDS},
            "files": [
                {
                    "path": file.change.path,
                    "removed": file.change.removed,
                    "lines": {kind: file.lines[kind] for kind in KINDS},
                    "ranges": [{"start": one.start, "end": one.end, **one.origin.as_dict()} for one in file.ranges],
                }
                for file in self.files
            ],
            "sessions": [one.as_dict() for one in self.sessions],
        }


def count_kinds(ranges: list[LineRange]) -> Counter[str]:
    """Count lines by the kind of their origin."""
    found: Counter[str] = Counter()
    for one in ranges:
        found[one.origin.kind] += one.end - one.start + 1
    return found


def explain_commit(repo: GitRepository, log: Decklog, revision: str) -> CommitStory:
    """Collect what is recorded about a commit; raise NotFound if it does not exist."""
    commit = repo.resolve(f"{revision}^{{commit}}")
    if commit is None:
        raise NotFound(f"there is no commit {revision}", hint="List commits: git log --oneline")
    changes, origins = read_commit(repo, commit), CommitOrigins(repo, log)
    origins.take(changes)
    files = [FileShare(change=file, ranges=origins.of_lines(changes, file)) for file in changes.files]
    ranges = [one for file in files for one in file.ranges]
    is_reviewed = not find_unreviewed(repo, log, [commit])
    return CommitStory(changes=changes, files=files, sessions=sessions_of(log, ranges), is_reviewed=is_reviewed)


def sessions_of(log: Decklog, ranges: list[LineRange]) -> list[SessionShare]:
    """Return the sessions and tasks behind line ranges, most lines first. A mixed line counts for each session."""
    lines: Counter[tuple[str, str | None, str | None]] = Counter()
    known: dict[str, Edit] = {}
    for one in ranges:
        size = one.end - one.start + 1
        edits = [known.setdefault(edit, log.edits.get(edit)) if edit not in known else known[edit] for edit in one.origin.edits]
        own = {edit.session: (edit.run_id, edit.task_id) for edit in edits}
        for session in one.origin.sessions:
            lines[(session, *own.get(session, (None, None)))] += size
    return [_session_share(log, key, count) for key, count in lines.most_common()]


def _session_share(log: Decklog, key: tuple[str, str | None, str | None], lines: int) -> SessionShare:
    session, run_id, task_id = key
    if run_id is None:
        return SessionShare(session=session, lines=lines)
    try:
        model = log.runs.get(run_id).metadata.get("model")
        title = None if task_id is None else log.tasks.get(task_id).title
        cost = cost_of_work(log, run_id, task_id)
    except NotFound:
        # The edit was recorded before its run: the run's events still wait in the spool.
        return SessionShare(session=session, lines=lines, run_id=run_id, task_id=task_id)
    return SessionShare(
        session=session,
        lines=lines,
        run_id=run_id,
        task_id=task_id,
        title=title,
        model=model if isinstance(model, str) else None,
        cost=cost,
    )
