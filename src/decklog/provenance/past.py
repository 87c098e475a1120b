"""Which edits of a file may be the past of a content, by the graph of commits."""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from decklog.provenance.git import GitRepository
    from decklog.stores.provenance.edits import Edit


class CommitGraph:
    """All commits that refs lead to, with their parents."""

    def __init__(self, repo: "GitRepository") -> None:
        self._repo = repo

    @cached_property
    def parents(self) -> dict[str, tuple[str, ...]]:
        """The parents of each commit, children first."""
        out = self._repo.text("rev-list", "--parents", "--topo-order", "--all", "HEAD", "--", accepted=(0, 128))
        rows = (row.split() for row in out.splitlines())
        return {row[0]: tuple(row[1:]) for row in rows if row}

    def parents_of(self, commit: str) -> tuple[str, ...]:
        found = self.parents.get(commit)
        if found is None:
            found = tuple(self._repo.text("rev-list", "--parents", "--max-count=1", commit, "--").split()[1:])
        return found

    def gathered(self, own: dict[str, int], *, is_down: bool = False) -> dict[str, int]:
        """Join the bits of each commit with those of its history, or (`is_down`) with those of all commits built on it."""
        found: dict[str, int] = {}
        if is_down:
            for commit, parents in self.parents.items():
                bits = found.get(commit, 0) | own.get(commit, 0)
                if bits:
                    for one in (commit, *parents):
                        found[one] = found.get(one, 0) | bits
            return found
        for commit, parents in reversed(self.parents.items()):
            bits = own.get(commit, 0)
            for parent in parents:
                bits |= found.get(parent, 0)
            if bits:
                found[commit] = bits
        return found


class PathPast:
    """The edits of one path, each a bit, and what became of them in the graph."""

    def __init__(
        self,
        repo: "GitRepository",
        graph: CommitGraph,
        path: str,
        edits: "Sequence[Edit]",
        edit_of_blob: "Callable[[str], Edit | None]",
        blob_at: "Callable[[str, str], str | None]",
        remember: "Callable[[dict[tuple[str, str], str | None]], None]",
        prefetch: "Callable[[Iterable[tuple[str, str]]], None]",
    ) -> None:
        self._repo = repo
        self._graph = graph
        self._path = path
        self._edits = edits
        self._edit_of_blob = edit_of_blob
        self._blob_at = blob_at
        self._remember = remember
        self._prefetch = prefetch
        self._bits = {edit.id: 1 << place for place, edit in enumerate(edits)}
        self._pasts: dict[str, int] = {}

    def candidates(self, blob: str, parents: Sequence[str], commit: str | None, before: str | None) -> "Iterator[Edit]":
        """Yield the edits that may be the past of a content, newest first.

        Edits that were made after its commit are not, and neither are those that were committed below it: their lines would
        be there.
        """
        if not self._edits:
            return
        excluded = self._made_after.get(commit, 0) if commit is not None else 0
        for parent in parents:
            excluded |= self._absorbed.get(parent, 0)
        left = self._writing & ~excluded
        while left:
            place = left.bit_length() - 1
            left &= ~(1 << place)
            edit = self._edits[place]
            if edit.new_blob != blob and (before is None or edit.id < before):
                yield edit

    @cached_property
    def _writing(self) -> int:
        """The edits that left a content."""
        return sum(self._bits[edit.id] for edit in self._edits if edit.new_blob is not None)

    @cached_property
    def _at_head(self) -> dict[str, int]:
        found: dict[str, int] = {}
        for edit in self._edits:
            if edit.head is not None:
                found[edit.head] = found.get(edit.head, 0) | self._bits[edit.id]
        return found

    @cached_property
    def _made_after(self) -> dict[str, int]:
        """The edits that were made on a commit, or on one that is built on it."""
        return self._graph.gathered(self._at_head, is_down=True)

    @cached_property
    def _made_below(self) -> dict[str, int]:
        """The edits that were made on a commit, or on one of its history."""
        return self._graph.gathered(self._at_head)

    @cached_property
    def _absorbed(self) -> dict[str, int]:
        """The edits that a commit has committed, or one of its history."""
        words = ("--literal-pathspecs", "log", "--all", "--full-history", "-m", "--raw", "--no-abbrev", "--format=%x00%H")
        out = os.fsdecode(self._repo.call(*words, "HEAD", "--", self._path, accepted=(0, 128)))
        rows = (row.partition("\n") for row in out.split("\0")[1:])
        changes = [(commit, line.split(" ")[3]) for commit, _, raw in rows for line in raw.splitlines() if line.startswith(":")]
        # What git has listed here is not asked of it again.
        known = {(commit, self._path): blob if blob.strip("0") else None for commit, blob in changes}
        self._remember(known)
        below = ((edit.head, edit.old_path or edit.path) for edit in self._edits if edit.head is not None)
        self._prefetch(file for file in below if file not in known)
        own: dict[str, int] = {}
        for commit, blob in changes:
            if (edit := self._edit_of_blob(blob)) is not None:
                own[commit] = own.get(commit, 0) | self._past_of(edit)
        return self._graph.gathered(own)

    def _past_of(self, edit: "Edit") -> int:
        """Return an edit and those that it was built on; where their chain has a gap, all that may be in it."""
        chain: list[Edit] = []
        newest: Edit | None = edit
        bits = 0
        while newest is not None:
            if newest.id in self._pasts:
                bits = self._pasts[newest.id]
                break
            chain.append(newest)
            older = self._edit_of_blob(newest.old_blob) if newest.old_blob is not None else None
            if older is None or older.id >= newest.id:
                bits = self._in_gap(newest)
                break
            newest = older
        for one in reversed(chain):
            bits |= self._bits.get(one.id, 0)
            self._pasts[one.id] = bits
        return bits

    def _in_gap(self, edit: "Edit") -> int:
        if edit.old_blob is None or edit.head is None:
            return 0
        if self._blob_at(edit.head, edit.old_path or edit.path) == edit.old_blob:
            # It was built on what is committed.
            return 0
        earlier = sum(bit for edit_id, bit in self._bits.items() if edit_id < edit.id)
        return self._made_below.get(edit.head, 0) & earlier
