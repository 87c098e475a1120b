"""List the differences between two commits, check them for faults, and parse patches."""

import posixpath
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from decklog.conductor.git.repository import Repository
from decklog.guard.files.gitignore import IgnoreFile
from decklog.provenance.git_output import RawChange, parse_raw

LINK, SUBMODULE = "120000", "160000"
NO_CHANGE = "no-change"
LARGEST_FILE = 10 * 1024 * 1024
_DIFF = ("diff-tree", "-r", "--no-renames")
_MARKERS = ("<<<<<<< ", ">>>>>>> ")


@dataclass(frozen=True)
class Fault:
    """A reason to reject a change even if it passes the checks."""

    signature: str
    text: str
    paths: tuple[str, ...] = ()


def list_changes(repository: Repository, base: str, tip: str) -> list[RawChange]:
    """List the paths that differ between two commits."""
    raw = repository.on_objects(*_DIFF, "-z", "--raw", "--no-abbrev", base, tip).out
    return list(parse_raw(raw.decode(errors="surrogateescape").split("\0")))


def is_only_space(repository: Repository, base: str, tip: str) -> bool:
    """Return whether two commits differ only in empty lines and white space at the ends of lines."""
    if any(one.status != "M" for one in list_changes(repository, base, tip)):
        return False
    words = (*_DIFF, "--numstat", "--ignore-space-at-eol", "--ignore-blank-lines", base, tip)
    return not repository.on_objects(*words).out.strip()


def find_faults(repository: Repository, base: str, start: str, tip: str, allowed: Sequence[str]) -> list[Fault]:
    """List the faults of a change: no change at all, paths that are not allowed, or unsafe files."""
    if repository.tree(tip) == repository.tree(start):
        return [Fault(NO_CHANGE, "the tip has the same files as the commit that the attempt began with")]
    if is_only_space(repository, start, tip):
        return [Fault(NO_CHANGE, "only white space differs from the commit that the attempt began with")]
    if not repository.is_ancestor(start, tip):
        return [Fault("history", "the tip does not descend from the commit that the attempt began with")]
    changed = list_changes(repository, base, tip)
    marked = (path for path, line in list_added_lines(repository, base, tip) if line.startswith(_MARKERS))
    found = [
        Fault("out-of-bounds", "the change has paths that the task does not allow", _outside_paths(changed, allowed)),
        Fault("submodule", "a submodule was added or moved", tuple(one.path for one in changed if one.mode == SUBMODULE)),
        Fault("link-out", "a link leads out of the tree", _outside_links(repository, changed)),
        Fault("too-large", f"files are larger than {LARGEST_FILE} bytes", _large_files(repository, changed)),
        Fault("conflict-marker", "conflict markers were left", tuple(dict.fromkeys(marked))),
    ]
    return [fault for fault in found if fault.paths]


def _outside_paths(changed: Sequence[RawChange], allowed: Sequence[str]) -> tuple[str, ...]:
    if not allowed:
        return ()
    patterns = IgnoreFile(tuple(allowed))
    return tuple(one.path for one in changed if not patterns.covers(one.path))


def _outside_links(repository: Repository, changed: Sequence[RawChange]) -> tuple[str, ...]:
    found = []
    for one in changed:
        if one.mode == LINK:
            target = repository.on_objects("cat-file", "blob", str(one.new)).out.decode(errors="surrogateescape")
            leads_to = posixpath.normpath(posixpath.join(posixpath.dirname(one.path), target))
            if target.startswith("/") or leads_to == ".." or leads_to.startswith("../"):
                found.append(one.path)
    return tuple(found)


def _large_files(repository: Repository, changed: Sequence[RawChange]) -> tuple[str, ...]:
    files = [one for one in changed if one.status != "D" and one.mode not in (LINK, SUBMODULE)]
    sizes = repository.sizes([str(one.new) for one in files])
    return tuple(one.path for one, size in zip(files, sizes, strict=True) if int(size) > LARGEST_FILE)


# Patches

_BLOCK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@ ?(.*)")
_NOTES = {"new file mode": "new file", "deleted file mode": "deleted", "Binary files": "binary", "old mode": "mode changed"}


@dataclass(frozen=True)
class DiffLine:
    """One line of a patch. `sign` is +, - or a space, `number` its place in the new file.

    `old` and `new` are its numbers in both files; a line of one side has no number on the other.
    """

    path: str
    sign: str
    number: int
    text: str
    old: int | None = None
    new: int | None = None


@dataclass(frozen=True)
class ChangedBlock:
    """A hunk of consecutive lines. `heading` is git's text after the numbers, often the enclosing function."""

    heading: str
    lines: tuple[DiffLine, ...]

    @property
    def start(self) -> int:
        """The number of the first line in the new file; 0 if it has none."""
        return next((line.new for line in self.lines if line.new is not None), 0)


@dataclass(frozen=True)
class ChangedFile:
    """One file of a patch. `notes` are in words: new file, deleted, binary, renamed from PATH."""

    path: str
    notes: tuple[str, ...]
    blocks: tuple[ChangedBlock, ...]

    def count(self, sign: str) -> int:
        """Count the lines with a sign."""
        return sum(line.sign == sign for block in self.blocks for line in block.lines)


def list_added_lines(repository: Repository, base: str, tip: str) -> list[tuple[str, str]]:
    """List the lines that a change adds, each with its path."""
    words = (*_DIFF, "-p", "-U0", "--no-ext-diff", "--no-textconv", "--no-color", base, tip)
    patch = repository.on_objects(*words).out.decode(errors="replace")
    return [(line.path, line.text) for line in parse_lines(patch) if line.sign == "+"]


def parse_lines(patch: str) -> Iterator[DiffLine]:
    """Yield the lines of a patch from git, with or without context."""
    return (line for file in parse_files(patch) for block in file.blocks for line in block.lines)


def parse_files(patch: str) -> list[ChangedFile]:
    """Parse the files of a patch, in their order."""
    # `splitlines` would also split at form feeds, which git does not.
    lines = patch.split("\n")
    # Lines of a hunk begin with a sign, so they never match.
    starts = [number for number, line in enumerate(lines) if line.startswith("diff --git ")]
    return [_parse_file(lines[start:end]) for start, end in pairwise((*starts, len(lines)))]


def _parse_file(lines: list[str]) -> ChangedFile:
    at = next((number for number, line in enumerate(lines) if _BLOCK.match(line)), len(lines))
    head = lines[:at]
    notes = [note for sign, note in _NOTES.items() if any(line.startswith(sign) for line in head)]
    notes += [f"renamed from {_unquote(line.removeprefix('rename from '))}" for line in head if line.startswith("rename from ")]
    path = _parse_path(head)
    return ChangedFile(path, tuple(notes), tuple(_parse_blocks(path, lines[at:])))


def _parse_path(head: list[str]) -> str:
    signs = ("+++ ", "rename to ", "--- ")
    names = {sign: _unquote(line[len(sign) :]) for line in head for sign in signs if line.startswith(sign)}
    for sign in signs:
        if names.get(sign, "/dev/null") != "/dev/null":
            return names[sign].removeprefix("a/") if sign == "--- " else names[sign]
    # Binary files and mode changes have no such lines: both names of the first line are the same.
    both = head[0].removeprefix("diff --git ")
    return _unquote(both[len(both) // 2 + 1 :])


def _unquote(text: str) -> str:
    """Parse the name of a file in the head of a diff, which git may quote."""
    name = text.rstrip("\t\r")
    if name.startswith('"') and name.endswith('"'):
        name = name[1:-1].encode(errors="replace").decode("unicode_escape").encode("latin-1", "replace").decode(errors="replace")
    return name.removeprefix("b/")


def _parse_blocks(path: str, lines: list[str]) -> Iterator[ChangedBlock]:
    rows = iter(lines)
    for row in rows:
        found = _BLOCK.match(row)
        if found is None:
            continue
        old, new = int(found[1]), int(found[3])
        ends = old + int(found[2] or 1), new + int(found[4] or 1)
        block: list[DiffLine] = []
        while (old, new) != ends and (line := next(rows, None)) is not None:
            if line.startswith("\\"):
                continue
            sign = line[:1] or " "
            block.append(DiffLine(path, sign, new, line[1:], None if sign == "+" else old, None if sign == "-" else new))
            old, new = old + (sign != "+"), new + (sign != "-")
        yield ChangedBlock(found[5], tuple(block))
