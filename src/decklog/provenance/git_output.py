"""Parsers of git's output: hunks, raw changes, the lines of `git blame`, and quoted paths."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

# The numbers of a hunk without context. Git leaves out a count of 1.
_HUNK = re.compile(rb"^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@", re.MULTILINE)
_ESCAPE = re.compile(rb'\\([0-7]{3}|[abfnrtv"\\])')
_ESCAPES = {b"a": b"\a", b"b": b"\b", b"f": b"\f", b"n": b"\n", b"r": b"\r", b"t": b"\t", b"v": b"\v", b'"': b'"', b"\\": b"\\"}


@dataclass(frozen=True)
class LineHunk:
    """A change without context: the first line and the number of lines on both sides.

    A side without lines names the line after it.
    """

    old: int
    old_count: int
    new: int
    new_count: int


def parse_hunks(diff: bytes) -> list[LineHunk]:
    """Return the hunks of a diff without context."""
    found = []
    for match in _HUNK.finditer(diff):
        old, old_count, new, new_count = (1 if part is None else int(part) for part in match.groups())
        # Git names the line before an empty side.
        found.append(LineHunk(old + (old_count == 0), old_count, new + (new_count == 0), new_count))
    return found


class LineDifference:
    """Which lines of a new text are unchanged lines of an old one."""

    def __init__(self, hunks: Iterable[LineHunk]) -> None:
        self._hunks = list(hunks)

    def old_line(self, line: int) -> int | None:
        """Return the old number of an unchanged line; None for a line that is new."""
        shift = 0
        for hunk in self._hunks:
            if line < hunk.new:
                break
            if line < hunk.new + hunk.new_count:
                return None
            shift = hunk.old + hunk.old_count - hunk.new - hunk.new_count
        return line + shift


@dataclass(frozen=True)
class RawChange:
    """A file in the output of `--raw --no-abbrev -z`. A blob is None on a side where the file is missing."""

    path: str
    old: str | None
    new: str | None
    old_mode: str
    mode: str
    status: str
    # The path before a rename or a copy.
    old_path: str | None = None


def parse_raw(rows: Iterable[str]) -> Iterator[RawChange]:
    """Yield the changes in the parts of a raw output, which end with NUL."""
    rest = iter(rows)
    for row in rest:
        facts = row.lstrip("\n").split(" ")
        if len(facts) != 5 or not facts[0].startswith(":"):
            continue
        old_mode, mode, old, new, status = facts
        path, old_path = next(rest), None
        if status[0] in "RC":
            old_path, path = path, next(rest)
        yield RawChange(path, _blob(old), _blob(new), old_mode.lstrip(":"), mode, status[0], old_path)


def _blob(name: str) -> str | None:
    return name if name.strip("0") else None


def parse_raw_log(out: str) -> Iterator[tuple[str, list[RawChange]]]:
    """Yield the commits of a raw log whose format begins with `%x01`, each with its head and its changes."""
    for part in out.split("\x01")[1:]:
        head, *rows = part.split("\0")
        yield head.strip(), list(parse_raw(rows))


def unquote_path(path: bytes) -> str:
    """Return a path that git may have quoted as C does."""
    if path[:1] == b'"' and path[-1:] == b'"' and len(path) > 1:
        path = _ESCAPE.sub(lambda found: _ESCAPES.get(found[1]) or bytes([int(found[1], 8)]), path[1:-1])
    return path.decode(errors="surrogateescape")


@dataclass(frozen=True)
class BlameEntry:
    """One line of a file: the commit it came with, and its path and number there."""

    commit: str
    path: str
    line: int
    final_line: int
    text: bytes
    # Git's facts about the commit: author, author-mail, author-time, summary and others.
    facts: dict[str, str]


def parse_porcelain(out: bytes) -> Iterator[BlameEntry]:
    """Yield the lines of a file in their order."""
    facts_of: dict[str, dict[str, str]] = {}
    commit, line, final_line = "", 0, 0
    # All at once: rows are many and short.
    for row in out.decode(errors="surrogateescape").removesuffix("\n").split("\n") if out else ():
        if row.startswith("\t"):
            facts = facts_of[commit]
            text = row[1:].encode(errors="surrogateescape")
            yield BlameEntry(commit, facts["filename"], line, final_line, text, facts)
            continue
        name, _, value = row.partition(" ")
        if len(name) in (40, 64) and value[:1].isdigit():
            commit, numbers = name, value.split()
            line, final_line = int(numbers[0]), int(numbers[1])
            facts_of.setdefault(commit, {})
        elif name == "filename":
            # A commit may have several files: the name is repeated when it differs.
            facts_of[commit] = {**facts_of[commit], name: unquote_path(value.encode(errors="surrogateescape"))}
        else:
            facts_of[commit][name] = value
