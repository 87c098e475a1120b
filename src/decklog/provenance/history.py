"""The lines that commits add and remove, read from one `git log`.

A merge commit has only its resolution: lines that are in none of its parents.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime

from decklog.provenance.formats.git_ai import Span
from decklog.provenance.git import GitRepository
from decklog.provenance.git_output import LineHunk, parse_hunks, unquote_path

_MARK = b"\x01commit "
_FORM = "--format=%x01commit %H%x00%P%x00%an <%ae>%x00%aI%x00%s"
_PATCH = (
    *("-p", "-U0", "--full-index", "--no-color", "--no-ext-diff", "--no-textconv", "--no-indent-heuristic"),
    *("--src-prefix=a/", "--dst-prefix=b/", "--ignore-submodules"),
)
_LOG = ("-M", "--no-show-signature")
# Without context git puts changes around an unchanged line of a merge into one hunk, and leaves that line out.
_MERGES = ("--merges", "--diff-merges=combined", "--combined-all-paths", "-U1")
_SETTINGS = ("-c", "core.quotePath=true", "-c", "diff.algorithm=myers", "-c", "log.showRoot=true")
_HUNK = re.compile(rb"(@@+) (?:-\d+(?:,\d+)? )+\+(\d+)(?:,(\d+))? @@+")


@dataclass
class FileChange:
    """One file of a commit: the blob after it, and the lines that the commit added. `path` is that after a rename."""

    path: str
    old_path: str
    # None for a deleted file, and where only its name or its mode changed.
    blob: str | None = None
    is_deleted: bool = False
    # The blob before; None for a new file, and for a merge, which has several.
    old_blob: str | None = None
    hunks: list[LineHunk] = field(default_factory=list)
    # Of a merge: the path in each parent, /dev/null where there is none.
    old_paths: list[str] = field(default_factory=list)
    # Of a merge: where each hunk begins in the new file, and the signs before its lines, one for each parent.
    combined: list[tuple[int, list[bytes]]] = field(default_factory=list)
    added: list[Span] = field(default_factory=list)
    removed: int = 0

    @property
    def added_lines(self) -> int:
        """How many lines the commit added."""
        return sum(end - start + 1 for start, end in self.added)

    def replaced_by(self, line: int) -> tuple[int, int]:
        """Return the first of the old lines that the change of an added line replaced, and how many there are."""
        replaced = (hunk for hunk in self.hunks if hunk.new <= line < hunk.new + hunk.new_count)
        return next(((hunk.old, hunk.old_count) for hunk in replaced), (0, 0))


@dataclass
class CommitChanges:
    """A commit and its files."""

    commit: str
    parents: tuple[str, ...]
    author: str
    at: datetime
    subject: str
    files: list[FileChange] = field(default_factory=list)


def read_changes(repo: GitRepository, *revisions: str, oldest_first: bool = False) -> Iterator[CommitChanges]:
    """Yield the commits of `git log` for some revisions, newest first by default."""
    order = ("--reverse", "--topo-order") if oldest_first else ()
    words = (*_SETTINGS, "log", _FORM, *_LOG, *_PATCH)
    commits = list(_parse_log(repo.call(*words, "--diff-merges=off", *order, *revisions, "--")))
    if any(len(commit.parents) > 1 for commit in commits):
        merges = _parse_log(repo.call(*words, *_MERGES, *revisions, "--"))
        files = {commit.commit: commit.files for commit in merges}
        for commit in commits:
            commit.files = files.get(commit.commit, commit.files)
    yield from commits


def read_commit(repo: GitRepository, commit: str) -> CommitChanges:
    """Return one commit with its files."""
    return next(read_changes(repo, "--max-count=1", commit))


def read_stashes(repo: GitRepository) -> Iterator[CommitChanges]:
    """Yield the stashes, newest first, with the changes of each compared with its parent commit."""
    if repo.resolve("refs/stash") is not None:
        words = ("log", _FORM, *_LOG, *_PATCH, "--diff-merges=first-parent", "--walk-reflogs")
        yield from _parse_log(repo.call(*_SETTINGS, *words, "refs/stash", "--"))


def read_uncommitted(repo: GitRepository, path: str) -> FileChange | None:
    """Return the change of a worktree's file compared with HEAD; None if there is none."""
    out = repo.call(*_SETTINGS, "diff", *_PATCH, "HEAD", "--", path)
    return next(_parse_patch(out), None)


def _parse_log(out: bytes) -> Iterator[CommitChanges]:
    for part in (b"\n" + out).split(b"\n" + _MARK)[1:]:
        head, _, patch = part.partition(b"\n")
        commit, parents, author, at, subject = head.decode(errors="replace").split("\0", 4)
        yield CommitChanges(
            commit, tuple(parents.split()), author, datetime.fromisoformat(at), subject, list(_parse_patch(patch))
        )


def _parse_patch(patch: bytes) -> Iterator[FileChange]:
    for part in (b"\n" + patch).split(b"\ndiff --")[1:]:
        place = part.find(b"\n@@")
        change = _parse_head((part if place < 0 else part[:place]).split(b"\n"))
        if part.startswith(b"git "):
            _take_hunks(change, part)
        elif place >= 0:
            _take_combined(change, part[place + 1 :].split(b"\n"))
        yield change


def _parse_head(lines: list[bytes]) -> FileChange:
    paths = _paths_of(lines[0])
    change = FileChange(paths[1], paths[0])
    for line in lines[1:]:
        name, _, value = line.partition(b" ")
        if name == b"index":
            old, _, new = value.split(b" ")[0].decode().partition("..")
            change.blob = new if new.strip("0") else None
            change.old_blob = old if old.strip("0") and "," not in old else None
        elif line.startswith(b"deleted file mode "):
            change.is_deleted = True
        elif line.startswith(b"rename from "):
            change.old_path = unquote_path(line.removeprefix(b"rename from "))
        elif line.startswith(b"rename to "):
            change.path = unquote_path(line.removeprefix(b"rename to "))
        elif name == b"+++" and value != b"/dev/null":
            change.path = _without_prefix(value)
        elif name == b"---":
            change.old_paths.append("/dev/null" if value == b"/dev/null" else _without_prefix(value))
    if len(change.old_paths) == 1 and change.old_paths[0] != "/dev/null":
        change.old_path = change.old_paths[0]
    return change


def _paths_of(line: bytes) -> tuple[str, str]:
    """Return the paths of a `diff --git` line, which are equal unless other lines name them."""
    kind, _, rest = line.partition(b" ")
    if kind != b"git":
        path = unquote_path(rest)
        return path, path
    half = len(rest) // 2
    return _without_prefix(rest[:half]), _without_prefix(rest[half + 1 :])


def _without_prefix(path: bytes) -> str:
    return unquote_path(path.removesuffix(b"\t"))[2:]


def _take_hunks(change: FileChange, part: bytes) -> None:
    """Parse a diff without context, whose hunk headers have all line numbers."""
    change.hunks = parse_hunks(part)
    change.removed = sum(hunk.old_count for hunk in change.hunks)
    change.added = [(hunk.new, hunk.new + hunk.new_count - 1) for hunk in change.hunks if hunk.new_count]


def _take_combined(change: FileChange, lines: list[bytes]) -> None:
    width = number = 0
    for line in lines:
        if line.startswith(b"@@"):
            if (found := _HUNK.match(line)) is not None:
                width, number = len(found[1]) - 1, int(found[2])
                change.combined.append((number, []))
            continue
        columns = line[:width]
        if not columns or columns[:1] == b"\\":
            continue
        change.combined[-1][1].append(columns)
        if b"-" in columns:
            change.removed += columns.count(b"-") == width
            continue
        if columns == b"+" * width:
            _add_line(change.added, number)
        number += 1


def _add_line(spans: list[Span], number: int) -> None:
    if spans and spans[-1][1] == number - 1:
        spans[-1] = (spans[-1][0], number)
    else:
        spans.append((number, number))
