"""A patch that git has written, as files with numbered lines for people to read."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from decklog.conductor.git.changes import named

_BLOCK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@ ?(.*)")
_NOTES = {"new file mode": "new file", "deleted file mode": "deleted", "Binary files": "binary", "old mode": "mode changed"}


@dataclass(frozen=True)
class NumberedLine:
    """One line of a patch. `sign` is +, - or a space; a line of one side has no number on the other."""

    sign: str
    old: int | None
    new: int | None
    text: str


@dataclass(frozen=True)
class ChangedBlock:
    """Lines that follow each other. `heading` is what git prints after the numbers, often the enclosing function."""

    heading: str
    lines: tuple[NumberedLine, ...]


@dataclass(frozen=True)
class ChangedFile:
    """One file of a patch. `notes` are in words: new file, deleted, binary, renamed from PATH."""

    path: str
    notes: tuple[str, ...]
    blocks: tuple[ChangedBlock, ...]

    def count(self, sign: str) -> int:
        """Count the lines with a sign."""
        return sum(line.sign == sign for block in self.blocks for line in block.lines)


def files_of(patch: str) -> list[ChangedFile]:
    """Read the files of a patch, in its order."""
    # Not by splitlines: a form feed is within a line to git.
    lines = patch.split("\n")
    return [_file(lines[start:end]) for start, end in pairwise((*_starts(lines), len(lines)))]


def _starts(lines: list[str]) -> Iterator[int]:
    """Find the lines with which a file begins; a line of a block never does, as each has a sign."""
    return (number for number, line in enumerate(lines) if line.startswith("diff --git "))


def _file(lines: list[str]) -> ChangedFile:
    at = next((number for number, line in enumerate(lines) if _BLOCK.match(line)), len(lines))
    head = lines[:at]
    notes = [note for sign, note in _NOTES.items() if any(line.startswith(sign) for line in head)]
    notes += [f"renamed from {named(line.removeprefix('rename from '))}" for line in head if line.startswith("rename from ")]
    return ChangedFile(_path(head), tuple(notes), tuple(_blocks(lines[at:])))


def _path(head: list[str]) -> str:
    names = {sign: named(line[len(sign) :]) for line in head for sign in ("+++ ", "--- ", "rename to ") if line.startswith(sign)}
    for sign in ("+++ ", "rename to ", "--- "):
        if names.get(sign, "/dev/null") != "/dev/null":
            return names[sign].removeprefix("a/") if sign == "--- " else names[sign]
    # A binary file and a change of the mode have no such lines: both names after the word are the same.
    both = head[0].removeprefix("diff --git ")
    return named(both[len(both) // 2 + 1 :])


def _blocks(lines: list[str]) -> Iterator[ChangedBlock]:
    at = 0
    while at < len(lines):
        found = _BLOCK.match(lines[at])
        at += 1
        if found is None:
            continue
        old, new = int(found[1]), int(found[3])
        ends = old + int(found[2] or 1), new + int(found[4] or 1)
        block: list[NumberedLine] = []
        while at < len(lines) and (old, new) != ends:
            line, at = lines[at], at + 1
            if line.startswith("\\"):
                continue
            sign = line[:1] or " "
            block.append(NumberedLine(sign, None if sign == "+" else old, None if sign == "-" else new, line[1:]))
            old, new = old + (sign != "+"), new + (sign != "-")
        yield ChangedBlock(found[5], tuple(block))
