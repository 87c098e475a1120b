"""The history of a file: the edits that may have led to its content, by the commit graph, and its former paths."""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property

from decklog.provenance.git import GitRepository
from decklog.provenance.git_output import parse_raw, parse_raw_log
from decklog.stores.provenance.edits import Edit

# Two empty files are no copies of each other.
_EMPTY = ("e69de29bb2d1d6434b8b29ae775ad8c2e48c5391", "473a0f4c3be8a93681a267e3b1e9a7dcda1185436fe141f7749120a303721813")
_LOG = ("log", "--exclude=refs/decklog/*", "--all", "--reflog", "--ignore-missing", "--stdin", "-m", "--raw", "-z", "-C")


class CommitGraph:
    """All commits that refs lead to, with their parents."""

    def __init__(self, repo: GitRepository) -> None:
        self._repo = repo

    @cached_property
    def parents(self) -> dict[str, tuple[str, ...]]:
        """The parents of each commit, children first."""
        out = self._repo.text("rev-list", "--parents", "--topo-order", "--all", "--reflog", "HEAD", "--", accepted=(0, 128))
        rows = (row.split() for row in out.splitlines())
        return {row[0]: tuple(row[1:]) for row in rows if row}

    def parents_of(self, commit: str) -> tuple[str, ...]:
        found = self.parents.get(commit)
        if found is None:
            found = tuple(self._repo.text("rev-list", "--parents", "--max-count=1", commit, "--").split()[1:])
        return found

    def join_bits(self, own: dict[str, int], *, is_down: bool = False) -> dict[str, int]:
        """Join the bits of each commit with those of its ancestors, or with `is_down` with those of its descendants."""
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


class PathHistory:
    """The edits of one path, each represented by a bit, and the commits that contain them."""

    def __init__(
        self,
        repo: GitRepository,
        graph: CommitGraph,
        path: str,
        edits: Sequence[Edit],
        edit_of_blob: Callable[[str], Edit | None],
        blob_at: Callable[[str, str], str | None],
        remember: Callable[[dict[tuple[str, str], str | None]], None],
        prefetch: Callable[[Iterable[tuple[str, str]]], None],
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

    def candidates(self, blob: str, parents: Sequence[str], commit: str | None, before: str | None) -> Iterator[Edit]:
        """Yield the edits that a content may be based on, newest first.

        Edits after its commit are excluded, and so are edits committed in its ancestors, whose lines the parents would have.
        """
        if not self._edits:
            return
        excluded = self.made_after(commit)
        for parent in parents:
            excluded |= self._committed_edits.get(parent, 0)
        left = self._writing_edits & ~excluded
        while left:
            place = left.bit_length() - 1
            left &= ~(1 << place)
            edit = self._edits[place]
            if edit.new_blob != blob and (before is None or edit.id < before):
                yield edit

    def made_after(self, commit: str | None) -> int:
        """Return the edits that were made on a commit or a descendant."""
        return self._made_after.get(commit, 0) if commit is not None else 0

    def is_in(self, edit: Edit, bits: int) -> bool:
        """Return whether an edit is in a set of bits."""
        return bool(self._bits.get(edit.id, 0) & bits)

    @cached_property
    def _writing_edits(self) -> int:
        """The edits that did not delete the file."""
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
        """The edits that were made on each commit or a descendant."""
        return self._graph.join_bits(self._at_head, is_down=True)

    @cached_property
    def _made_below(self) -> dict[str, int]:
        """The edits that were made on each commit or an ancestor."""
        return self._graph.join_bits(self._at_head)

    @cached_property
    def _committed_edits(self) -> dict[str, int]:
        """The edits that each commit or an ancestor has committed."""
        words = ("--literal-pathspecs", "log", "--all", "--full-history", "-m", "--raw", "--no-abbrev", "-z", "--format=%x01%H")
        out = os.fsdecode(self._repo.call(*words, "HEAD", "--", self._path, accepted=(0, 128)))
        changes = [(commit, change.new) for commit, found in parse_raw_log(out) for change in found]
        # Remember the listed blobs, so that they are not looked up again.
        known = {(commit, self._path): blob for commit, blob in changes}
        self._remember(known)
        below = ((edit.head, edit.old_path or edit.path) for edit in self._edits if edit.head is not None)
        self._prefetch(file for file in below if file not in known)
        own: dict[str, int] = {}
        for commit, blob in changes:
            if blob is not None and (edit := self._edit_of_blob(blob)) is not None:
                own[commit] = own.get(commit, 0) | self._chain_bits(edit)
        return self._graph.join_bits(own)

    def _chain_bits(self, edit: Edit) -> int:
        """Return an edit and the edits that it is based on. If their chain has a gap, add all edits that may be in it."""
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
                bits = self._gap_bits(newest)
                break
            newest = older
        for one in reversed(chain):
            bits |= self._bits.get(one.id, 0)
            self._pasts[one.id] = bits
        return bits

    def _gap_bits(self, edit: Edit) -> int:
        if edit.old_blob is None or edit.head is None:
            return 0
        if self._blob_at(edit.head, edit.old_path or edit.path) == edit.old_blob:
            # The edit is based on the committed content.
            return 0
        earlier = sum(bit for edit_id, bit in self._bits.items() if edit_id < edit.id)
        return self._made_below.get(edit.head, 0) & earlier


class RelatedPaths:
    """Groups paths by the renames and copies that `git diff -C` finds, by exact copies, and by edits that moved a file.

    Rewritten commits are included while git has them, as a squash may hide a rename. Commits before the first edit are not read,
    because they have no recorded lines.
    """

    def __init__(self, repo: GitRepository, moves: Sequence[tuple[str, str]], heads: Sequence[str | None]) -> None:
        self._repo = repo
        self._moves = moves
        # The commits that edits were made on, by the time of the first edit; None is before the first commit.
        self._heads = heads

    def others(self, path: str) -> tuple[str, ...]:
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

    def _pairs(self) -> Iterator[tuple[str, str]]:
        yield from self._moves
        paths: dict[str, str] = {}
        for blob, old, new in self._committed():
            if old != new:
                yield old, new
            if blob not in _EMPTY and paths.setdefault(blob, new) != new:
                yield paths[blob], new

    def _committed(self) -> Iterator[tuple[str, str, str]]:
        """Yield each content that a commit wrote, with the file's paths before and after it."""
        if not self._heads:
            return
        heads = [head for head in self._heads if head is not None]
        given = "".join(f"{name}\n" for name in (*heads, *(f"^{head}" for head in self._heads[:1] if head is not None)))
        out = self._repo.call(*_LOG, "--no-abbrev", "--diff-filter=ACMR", "--format=", given=given.encode())
        for change in parse_raw(os.fsdecode(out).split("\0")):
            yield change.new or "", change.old_path or change.path, change.path


def find_deleted_paths(repo: GitRepository, old: str, new: str | None) -> list[str]:
    """Return the files of a commit that are missing in another one; without another one, in the worktree."""
    out = repo.call("diff", "--name-only", "-z", "--no-renames", "--diff-filter=D", old, *([new] if new else []), "--")
    return os.fsdecode(out).split("\0")[:-1]


def find_most_similar(repo: GitRepository, contents: Sequence[tuple[str, str]], blob: str) -> str | None:
    """Return which of some paths is the former path of a blob by `git diff -M`; None if none is."""
    olds = repo.existing([old for _, old in contents]) if contents else []
    if not any(olds):
        return None
    trees = [repo.call("mktree", given=_tree(blobs)).decode().strip() for blobs in (olds, [*[None] * len(olds), blob])]
    words = repo.text("diff-tree", "-M", "--diff-filter=R", "--name-status", *trees).split()
    return contents[int(words[1])][0] if words else None


def _tree(blobs: Sequence[str | None]) -> bytes:
    """Build the input of `git mktree` for a tree whose names are numbers."""
    return "".join(f"100644 blob {blob}\t{place}\n" for place, blob in enumerate(blobs) if blob is not None).encode()
