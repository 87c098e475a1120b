"""The output of `git blame --porcelain`."""

from collections.abc import Iterator
from dataclasses import dataclass


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


def parse_porcelain(out: bytes) -> "Iterator[BlameEntry]":
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
            facts_of[commit] = {**facts_of[commit], name: _unquoted(value)}
        else:
            facts_of[commit][name] = value


_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v"}


def _unquoted(name: str) -> str:
    """Read a file name that git quotes because of special characters."""
    if not (name.startswith('"') and name.endswith('"') and len(name) > 1):
        return name
    found, rest = bytearray(), iter(name[1:-1])
    for letter in rest:
        if letter != "\\":
            found += letter.encode(errors="surrogateescape")
            continue
        escaped = next(rest)
        if escaped.isdigit():
            found.append(int(escaped + next(rest) + next(rest), 8))
        else:
            found += _ESCAPES.get(escaped, escaped).encode()
    return found.decode(errors="surrogateescape")
