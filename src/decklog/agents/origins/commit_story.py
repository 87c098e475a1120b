"""A commit by origin: its files, the share of each origin, and the sessions, tasks and cost behind it."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from decklog.agents.sessions import NO_COST, WorkCost, cost_of_work
from decklog.agents.texts import text_or_none
from decklog.core.errors import NotFound
from decklog.log import Decklog
from decklog.provenance.attribution import LineRange
from decklog.provenance.commit_origins import CommitOrigins
from decklog.provenance.git import GitRepository
from decklog.provenance.history import CommitChanges, FileChange, read_commit
from decklog.records.record import find_all
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


def resolve_commit(repo: GitRepository, revision: str, hint: str = "List commits: git log --oneline") -> str:
    """Return the id of a commit; raise NotFound if it does not exist."""
    commit = repo.resolve(f"{revision}^{{commit}}")
    if commit is None:
        raise NotFound(f"there is no commit {revision}", hint=hint)
    return commit


def explain_commit(repo: GitRepository, log: Decklog, revision: str) -> CommitStory:
    """Collect the records about a commit; raise NotFound if it does not exist."""
    commit = resolve_commit(repo, revision)
    changes, origins = read_commit(repo, commit), CommitOrigins(repo, log)
    origins.add_commit(changes)
    files = [FileShare(change=file, ranges=origins.find_line_origins(changes, file)) for file in changes.files]
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
        model = text_or_none(log.runs.get(run_id).metadata.get("model"))
        title = None if task_id is None else log.tasks.get(task_id).title
        cost = cost_of_work(log, run_id, task_id)
    except NotFound:
        # The edit was recorded before its run: the run's events still wait in the spool.
        return SessionShare(session=session, lines=lines, run_id=run_id, task_id=task_id)
    return SessionShare(session=session, lines=lines, run_id=run_id, task_id=task_id, title=title, model=model, cost=cost)


# Commits that passed the review gate or were approved by a person

# Only the newest reviews are checked: each one needs a git command.
_MOST_REVIEWS = 200
# The review gate computes a patch with the same options.
_PATCH = ("-r", "-p", "--no-renames", "--no-ext-diff", "--no-textconv", "--no-color", "--src-prefix=a/", "--dst-prefix=b/")


def find_unreviewed(repo: GitRepository, log: Decklog, commits: Sequence[str]) -> set[str]:
    """Return the commits without a review: outside every reviewed range, and with a patch that was not reviewed."""
    passed = (review for review in find_all(log.reviews.find) if log.reviews.lets_pass(review.id))
    found, reviews = set(commits), list(islice(passed, _MOST_REVIEWS))
    ends = [name for review in reviews for name in (review.base, review.head)]
    known = repo.existing(ends) if ends else []
    for base, head in zip(known[::2], known[1::2], strict=True):
        if base is not None and head is not None:
            found.difference_update(repo.text("rev-list", f"{base}..{head}").split())
    patches = {review.patch for review in reviews}
    if found and patches:
        # Rebasing a change, or squashing it in a merge, does not alter its patch.
        given = "".join(f"{commit}\n" for commit in sorted(found)).encode()
        diffs = repo.call("diff-tree", "--stdin", *_PATCH, given=given)
        rows = (row.split() for row in repo.call("patch-id", "--stable", given=diffs).decode().splitlines())
        found -= {commit for patch, commit in rows if patch in patches}
    return found
