"""Paths that one file had: renames and copies, in any commit that still exists."""

import os
from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from decklog.provenance.git import GitRepository

_EMPTY = ("e69de29bb2d1d6434b8b29ae775ad8c2e48c5391", "473a0f4c3be8a93681a267e3b1e9a7dcda1185436fe141f7749120a303721813")
_LOG = ("log", "--exclude=refs/decklog/*", "--all", "--reflog", "--ignore-missing", "--stdin", "-m", "--raw", "-z", "-M")


class PathLinks:
    """Groups paths by the renames that `git diff -M` finds, by exact copies, and by edits that moved a file.

    Rewritten commits count as long as git has them: a squash may leave no trace of a rename. Commits below the first edit are
    not read, because they have no recorded line.
    """

    def __init__(self, repo: "GitRepository", moves: "Sequence[tuple[str, str]]", heads: "Sequence[str | None]") -> None:
        self._repo = repo
        self._moves = moves
        # The commits that edits were made on, by the time of the first edit; None is before the first commit.
        self._heads = heads

    def of(self, path: str) -> tuple[str, ...]:
        """Return the other paths that a file had."""
        return tuple(sorted(self._groups.get(path, {path}) - {path}))

    @cached_property
    def _groups(self) -> dict[str, set[str]]:
        found: dict[str, set[str]] = {}
        for old, new in self._pairs():
            group = found.setdefault(old, {old})
            other = found.setdefault(new, {new})
            if group is not other:
                group |= other
                found.update(dict.fromkeys(other, group))
        return found

    def _pairs(self) -> "Iterator[tuple[str, str]]":
        yield from self._moves
        paths: dict[str, str] = {}
        for blob, old, new in self._committed():
            if old != new:
                yield old, new
            if blob not in _EMPTY and paths.setdefault(blob, new) != new:
                yield paths[blob], new

    def _committed(self) -> "Iterator[tuple[str, str, str]]":
        """Yield each content that a commit wrote, with the file's paths before and after it."""
        if not self._heads:
            return
        heads = [head for head in self._heads if head is not None]
        given = "".join(f"{name}\n" for name in (*heads, *(f"^{head}" for head in self._heads[:1] if head is not None)))
        out = self._repo.call(*_LOG, "--no-abbrev", "--diff-filter=AMR", "--format=", given=given.encode())
        words = iter(os.fsdecode(out).split("\0"))
        for word in words:
            facts = word.lstrip("\n").split(" ")
            if len(facts) == 5 and facts[0].startswith(":"):
                old = next(words)
                yield facts[3], old, next(words) if facts[4].startswith("R") else old


def gone_paths(repo: "GitRepository", old: str, new: str | None) -> list[str]:
    """Return the files of a commit that another one has not; without one, those that the worktree has not."""
    out = repo.call("diff", "--name-only", "-z", "--no-renames", "--diff-filter=D", old, *([new] if new else []), "--")
    return os.fsdecode(out).split("\0")[:-1]


def most_similar(repo: "GitRepository", contents: "Sequence[tuple[str, str]]", blob: str) -> str | None:
    """Return the path, of some paths with blobs, that `git diff -M` takes for the former path of a blob; None for none."""
    olds = [one for _, one in contents]
    trees = [repo.call("mktree", given=_tree(blobs)).decode().strip() for blobs in (olds, [*[None] * len(olds), blob])]
    words = repo.text("diff-tree", "-M", "--diff-filter=R", "--name-status", *trees).split()
    return contents[int(words[1])][0] if words else None


def _tree(blobs: "Sequence[str | None]") -> bytes:
    """Write a tree whose names are numbers."""
    return "".join(f"100644 blob {blob}\t{place}\n" for place, blob in enumerate(blobs) if blob is not None).encode()
