"""All contents that commits of a repository have, from one `git log`."""

import os
from dataclasses import dataclass, field

from decklog.provenance.git import GitRepository

# The columns of `git log --raw`: the blob after the commit.
_NEW = 3
_ANY_REF = ("--exclude=refs/decklog/*", "--all", "--reflog")


@dataclass(frozen=True)
class CommittedBlob:
    """A content that a commit gave a path. Its time is the author's or the committer's, whichever is earlier."""

    blob: str
    commit: str
    at: int


@dataclass
class CommittedContents:
    """When each content was committed first, at any path, and the contents of each path, newest first."""

    first: dict[str, int] = field(default_factory=dict)
    by_path: dict[str, list[CommittedBlob]] = field(default_factory=dict)

    @classmethod
    def of(cls, repo: GitRepository) -> "CommittedContents":
        """Read all commits that refs and reflogs lead to."""
        words = ("-m", "--raw", "-z", "--no-renames", "--no-abbrev", "--format=%x01%H %at %ct")
        out = os.fsdecode(repo.call("log", *_ANY_REF, *words, "--", accepted=(0, 128)))
        found = cls()
        for part in out.split("\x01")[1:]:
            head, *rows = part.split("\0")
            commit, *times = head.split()
            found._take(commit, min(map(int, times)), rows)
        for blobs in found.by_path.values():
            blobs.sort(key=lambda one: one.at, reverse=True)
        return found

    def _take(self, commit: str, at: int, rows: list[str]) -> None:
        for facts, path in zip(rows[::2], rows[1::2], strict=False):
            blob = facts.split(" ")[_NEW] if facts.lstrip("\n").startswith(":") else ""
            if blob.strip("0"):
                self.first[blob] = min(at, self.first.get(blob, at))
                self.by_path.setdefault(path, []).append(CommittedBlob(blob, commit, at))
