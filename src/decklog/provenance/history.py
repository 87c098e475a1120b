"""The lines that commits add and remove, read from one `git log`.

A merge commit has only its resolution: lines that are in none of its parents.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from decklog.provenance.formats.git_notes import run_git
from decklog.provenance.formats.ranges import Span

_MARK = b"\x01commit "
_FORM = "--format=%x01commit %H%x00%P%x00%an <%ae>%x00%aI%x00%s"
_PATCH = (
    *("-p", "-U0", "-c", "-M", "--full-index", "--no-color", "--no-ext-diff", "--no-textconv", "--indent-heuristic"),
    *("--src-prefix=a/", "--dst-prefix=b/", "--ignore-submodules", "--no-show-signature"),
)
_SETTINGS = ("-c", "core.quotePath=true", "-c", "diff.algorithm=myers", "-c", "log.showRoot=true")
_HUNK = re.compile(rb"(@@+) (?:-\d+(?:,\d+)? )+\+(\d+)(?:,(\d+))? @@+")
_ESCAPE = re.compile(rb'\\([0-7]{3}|[abfnrtv"\\])')
_ESCAPES = {b"a": b"\a", b"b": b"\b", b"f": b"\f", b"n": b"\n", b"r": b"\r", b"t": b"\t", b"v": b"\v", b'"': b'"', b"\\": b"\\"}


@dataclass
class FileChange:
    """One file of a commit: the blob after it, and the lines that the commit added. `path` is that after a rename."""

    path: str
    old_path: str
    blob: str | None = None
    added: list[Span] = field(default_factory=list)
    removed: int = 0

    @property
    def added_lines(self) -> int:
        """How many lines the commit added."""
        return sum(end - start + 1 for start, end in self.added)


@dataclass
class CommitChanges:
    """A commit and its files."""

    commit: str
    parents: tuple[str, ...]
    author: str
    at: datetime
    subject: str
    files: list[FileChange] = field(default_factory=list)


def read_changes(repo: str | Path, *revisions: str, oldest_first: bool = False) -> Iterator[CommitChanges]:
    """Yield the commits that `git log` has for some revisions, the newest first unless told otherwise."""
    order = ("--reverse", "--topo-order") if oldest_first else ()
    out = run_git(repo, *_SETTINGS, "log", _FORM, *_PATCH, *order, *revisions, "--")
    yield from _parse_log(out)


def read_commit(repo: str | Path, commit: str) -> CommitChanges:
    """Return one commit with its files."""
    return next(read_changes(repo, "--max-count=1", commit))


def _parse_log(out: bytes) -> Iterator[CommitChanges]:
    for part in (b"\n" + out).split(b"\n" + _MARK)[1:]:
        head, _, patch = part.partition(b"\n")
        commit, parents, author, at, subject = head.decode(errors="replace").split("\0", 4)
        yield CommitChanges(
            commit, tuple(parents.split()), author, datetime.fromisoformat(at), subject, list(_parse_patch(patch))
        )


def _parse_patch(patch: bytes) -> Iterator[FileChange]:
    for part in (b"\n" + patch).split(b"\ndiff --")[1:]:
        head, hunks = _split_hunks(part)
        change = _parse_head(head)
        _take_hunks(change, hunks)
        yield change


def _split_hunks(part: bytes) -> tuple[list[bytes], list[bytes]]:
    lines = part.split(b"\n")
    first = next((number for number, line in enumerate(lines) if line.startswith(b"@@")), len(lines))
    return lines[:first], lines[first:]


def _parse_head(lines: list[bytes]) -> FileChange:
    paths = _paths_of(lines[0])
    change = FileChange(paths[1], paths[0])
    for line in lines[1:]:
        name, _, value = line.partition(b" ")
        if name == b"index":
            blob = value.split(b" ")[0].partition(b"..")[2].decode()
            change.blob = blob if blob.strip("0") else None
        elif line.startswith(b"rename from "):
            change.old_path = _unquote(line.removeprefix(b"rename from "))
        elif line.startswith(b"rename to "):
            change.path = _unquote(line.removeprefix(b"rename to "))
        elif name == b"+++" and value != b"/dev/null":
            change.path = _without_prefix(value)
        elif name == b"---" and value != b"/dev/null":
            change.old_path = _without_prefix(value)
    return change


def _paths_of(line: bytes) -> tuple[str, str]:
    """Return the paths of a `diff --git` line, which are the same where nothing else names them."""
    kind, _, rest = line.partition(b" ")
    if kind != b"git":
        path = _unquote(rest)
        return path, path
    half = len(rest) // 2
    return _without_prefix(rest[:half]), _without_prefix(rest[half + 1 :])


def _without_prefix(path: bytes) -> str:
    return _unquote(path.removesuffix(b"\t"))[2:]


def _unquote(path: bytes) -> str:
    """Return a path that git may have quoted as C does."""
    if path[:1] == b'"' and path[-1:] == b'"':
        path = _ESCAPE.sub(_escaped, path[1:-1])
    return path.decode(errors="surrogateescape")


def _escaped(found: re.Match[bytes]) -> bytes:
    return _ESCAPES.get(found[1]) or bytes([int(found[1], 8)])


def _take_hunks(change: FileChange, lines: list[bytes]) -> None:
    width = number = 0
    for line in lines:
        if line.startswith(b"@@"):
            if (found := _HUNK.match(line)) is not None:
                width, number = len(found[1]) - 1, int(found[2])
            continue
        columns = line[:width]
        if not columns or columns[:1] == b"\\":
            continue
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
