"""`git blame` with the sessions that wrote the lines."""

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from decklog.log import Decklog
from decklog.provenance.attribution import UNCOMMITTED, UNKNOWN, Attribution, Origin, group_ranges
from decklog.provenance.git import GitRepository
from decklog.provenance.git_output import BlameEntry, parse_porcelain


@dataclass(frozen=True)
class BlamedLine:
    """One line of a file with the commit that it came with, its path and number there, and its origin."""

    commit: str
    path: str
    line: int
    final_line: int
    text: str
    origin: Origin
    # Git's facts about the commit: author, author-mail, author-time, summary and others.
    facts: dict[str, str] = field(default_factory=dict, compare=False)


def blame_file(
    repo: GitRepository,
    log: Decklog,
    path: str,
    rev: str | None = None,
    lines: tuple[int, int] | None = None,
    options: Sequence[str] = (),
) -> list[BlamedLine]:
    """Return the lines of a file as `git blame` sees them, each with its origin; without `rev` those of the worktree.

    `options` are further options of git blame, such as -M, -C and -w.
    """
    words = ["blame", "--porcelain", *options]
    if lines is not None:
        words += ["-L", f"{lines[0]},{lines[1]}"]
    entries = list(parse_porcelain(repo.call(*words, *([rev] if rev else []), "--", path)))
    origins = _OriginCache(repo, log)
    origins.prefetch(entries)
    found = [_build_line(entry, origins.find(entry, path)) for entry in entries]
    origins.save()
    return found


def _build_line(entry: BlameEntry, origin: Origin) -> BlamedLine:
    text = entry.text.decode(errors="replace")
    return BlamedLine(entry.commit, entry.path, entry.line, entry.final_line, text, origin, entry.facts)


class _OriginCache:
    """Looks up origins, first among those stored in the log."""

    def __init__(self, repo: GitRepository, log: Decklog) -> None:
        self._repo = repo
        self._log = log
        self._attribution = Attribution(repo, log)
        self._kept: dict[tuple[str, str], dict[int, Origin]] = {}
        self._worktree = cache(self._read_worktree)
        self._new: set[tuple[str, str]] = set()

    def find(self, entry: BlameEntry, path: str) -> Origin:
        """Return the origin of a line of `git blame`."""
        if entry.commit == UNCOMMITTED:
            return self._uncommitted(path, entry.final_line)
        key = (entry.commit, entry.path)
        known = self._kept.setdefault(key, {})
        if entry.line not in known:
            missing = self._attribution.missing
            known[entry.line] = self._attribution.find_in_commit(*key, entry.line, entry.text)
            if self._attribution.missing == missing:
                self._new.add(key)
        return known[entry.line]

    def prefetch(self, entries: list[BlameEntry]) -> None:
        """Load the stored origins of some lines, and prepare the lookup of all others."""
        for path in dict.fromkeys(entry.path for entry in entries):
            for commit, ranges in self._log.edits.origins(self._repo.identity, path).items():
                self._kept[commit, path] = _read_ranges(ranges)
        wanted = [entry for entry in entries if entry.line not in self._kept.get((entry.commit, entry.path), {})]
        self._attribution.prefetch((entry.commit, entry.path) for entry in wanted if entry.commit != UNCOMMITTED)

    def _uncommitted(self, path: str, line: int) -> Origin:
        if not os.path.isfile(os.path.join(self._repo.top, path)):
            return UNKNOWN
        blob, head = self._worktree(path)
        return self._attribution.find_in_worktree(blob, path, head, line)

    def _read_worktree(self, path: str) -> tuple[str, str | None]:
        return self._repo.text("hash-object", "-w", "--", path), self._repo.resolve("HEAD^{commit}")

    def save(self) -> None:
        """Store the computed origins, unless the log is read-only."""
        if self._new and not self._log.db.read_only:
            found = {key: _ranges_as_data(self._kept[key]) for key in self._new}
            self._log.edits.keep_origins(self._repo.identity, found)


def _read_ranges(kept: list[Any]) -> dict[int, Origin]:
    found = ((start, end, Origin.from_dict(origin)) for start, end, origin in kept)
    return {line: origin for start, end, origin in found for line in range(start, end + 1)}


def _ranges_as_data(origins: dict[int, Origin]) -> list[Any]:
    return [[one.start, one.end, one.origin.as_dict()] for one in group_ranges(origins)]
