"""History of one line: its origin and edit, its commit, the lines that it replaced, and later changes."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from decklog.agents.origins.edit_story import EditStory, story_of
from decklog.core.errors import Invalid, NotFound
from decklog.provenance.attribution import UNCOMMITTED
from decklog.provenance.blame import BlamedLine, blame_file
from decklog.provenance.git import GitFailed
from decklog.provenance.history import CommitChanges, FileChange, read_commit, read_uncommitted

if TYPE_CHECKING:
    from decklog.log import Decklog
    from decklog.provenance.attribution import Origin
    from decklog.provenance.git import GitRepository

# Show at most this number of replaced lines.
_MOST_PREVIOUS = 3


@dataclass(frozen=True, kw_only=True)
class LaterChange:
    """Commit that later changed or removed a line."""

    commit: str
    author: str
    subject: str


@dataclass(frozen=True, kw_only=True)
class LineStory:
    """Records about one line. `previous` has the lines that it replaced, each with its origin."""

    line: BlamedLine
    # Current name of the file; `line.path` is the name in the line's commit.
    path: str
    stories: list[EditStory] = field(default_factory=list)
    previous: list[BlamedLine] = field(default_factory=list)
    later: LaterChange | None = None

    @property
    def origin(self) -> "Origin":
        """Origin of the line."""
        return self.line.origin

    @property
    def is_committed(self) -> bool:
        """Whether the line is in a commit."""
        return self.line.commit != UNCOMMITTED

    def as_dict(self) -> dict[str, Any]:
        """Return the fields as JSON values."""
        return {
            **_line_data(self.line),
            "path": self.path,
            "path_in_commit": self.line.path,
            "author": _author(self.line) if self.is_committed else None,
            "summary": self.line.facts.get("summary") if self.is_committed else None,
            "edits": [story.as_dict() for story in self.stories],
            "previous": [_line_data(one) for one in self.previous],
            "later": None if self.later is None else vars(self.later),
        }


def _line_data(line: BlamedLine) -> dict[str, Any]:
    commit = None if line.commit == UNCOMMITTED else line.commit
    return {"path": line.path, "line": line.final_line, "text": line.text, "commit": commit, "origin": line.origin.as_dict()}


def _author(line: BlamedLine) -> str:
    return f"{line.facts.get('author', '')} {line.facts.get('author-mail', '')}".strip()


def explain_line(repo: "GitRepository", log: "Decklog", path: str, number: int, rev: str | None = None) -> LineStory:
    """Collect the records about a line of a file, in the worktree or at a revision."""
    line = _blame_line(repo, log, path, number, rev)
    edits = [log.edits.get(edit) for edit in line.origin.edits]
    return LineStory(
        line=line,
        path=path,
        stories=[story_of(log, edit) for edit in edits],
        previous=_previous_lines(repo, log, path, line),
        later=None if rev is None else _later_change(repo, path, number, rev),
    )


def _blame_line(repo: "GitRepository", log: "Decklog", path: str, number: int, rev: str | None) -> BlamedLine:
    if number < 1:
        raise Invalid(f"lines are counted from 1, not {number}", field="line")
    if rev is not None and repo.resolve(f"{rev}^{{commit}}") is None:
        raise NotFound(f"there is no commit {rev}", hint="List commits: git log --oneline")
    try:
        return blame_file(repo, log, path, rev, lines=(number, number))[0]
    except GitFailed as problem:
        raise NotFound(
            f"git knows no line {number} of {path}: {problem}", hint="Name a tracked file and one of its lines."
        ) from None


def _previous_lines(repo: "GitRepository", log: "Decklog", path: str, line: BlamedLine) -> list[BlamedLine]:
    """Return the lines that a line replaced, from the parent commit."""
    rev: str | None = "HEAD"
    change, number = None, line.final_line
    if line.commit == UNCOMMITTED:
        change = read_uncommitted(repo, path)
    else:
        commit = read_commit(repo, line.commit)
        change, rev, number = _file_of(commit, line.path), next(iter(commit.parents), None), line.line
    if change is None or rev is None or change.old_blob is None:
        return []
    start, count = change.replaced_by(number)
    if not count:
        return []
    return blame_file(repo, log, change.old_path, rev, lines=(start, start + min(count, _MOST_PREVIOUS) - 1))


def _file_of(commit: CommitChanges, path: str) -> FileChange | None:
    return next((file for file in commit.files if file.path == path), None)


def _later_change(repo: "GitRepository", path: str, number: int, rev: str) -> LaterChange | None:
    """Return the commit after a revision, up to HEAD, that changed or removed one of its lines."""
    try:
        out = repo.text("blame", "--reverse", "-s", "-l", f"-L{number},{number}", f"{rev}..HEAD", "--", path)
        last = out.split(" ")[0].lstrip("^")
        after = repo.text("rev-list", "--ancestry-path", "--reverse", f"{last}..HEAD", "--", path).split()
    except GitFailed:
        # The revision is HEAD or no ancestor of it, so nothing came later.
        return None
    if not after:
        return None
    commit = read_commit(repo, after[0])
    return LaterChange(commit=commit.commit, author=commit.author, subject=commit.subject)
