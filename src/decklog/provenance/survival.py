"""Find which lines added by commits still exist at the end of a range, from the diffs of one `git log`.

Each file of a commit is a list of runs: a number of lines with one label. The caller labels added lines; lines from before the
range have no label. This takes one pass, while `git blame` walks the history again for every file.
"""

import os
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

from decklog.provenance.git import GitRepository
from decklog.provenance.git_output import parse_raw_log
from decklog.provenance.history import CommitChanges, FileChange

Label = TypeVar("Label")
# More lines than any file has: a file from before the range is not read.
_ENDLESS = 1 << 40


class _Runs(Generic[Label]):
    """Runs of labels, read from the first line on."""

    def __init__(self, runs: "list[tuple[int, Label | None]]") -> None:
        self._left = list(reversed(runs))

    def take(self, count: int) -> "list[tuple[int, Label | None]]":
        """Return the next lines."""
        found, left = [], self._left
        while count > 0 and left:
            size, label = left.pop()
            if size > count:
                left.append((size - count, label))
                size = count
            count -= size
            found.append((size, label))
        return found

    def skip(self, count: int) -> None:
        """Skip the next lines."""
        self.take(count)


# The blob of a file and the labels of its lines.
State = tuple[str | None, "list[tuple[int, Label | None]]"]


class Survival(Generic[Label]):
    """Follows labelled lines through commits. `label` returns the runs of the lines that a commit added to a file.

    It is called with the first and the last line of a block.

    `removed` is called with a commit, a label and the number of its lines that the commit removed. A merge removes none: where
    its sides differ, a commit of a side did.
    """

    def __init__(
        self,
        repo: GitRepository,
        label: "Callable[[CommitChanges, FileChange, int, int], Iterable[tuple[int, Label]]]",
        removed: "Callable[[CommitChanges, Label, int], None] | None" = None,
    ) -> None:
        self._repo = repo
        self._label = label
        self._removed = removed
        self._files: dict[str, dict[str, State[Label]]] = {}

    def count(self, commits: list[CommitChanges], span: str, end: str) -> "Counter[Label]":
        """Count the lines of each label at the end of a range, whose commits are given with parents first."""
        children = Counter(parent for commit in commits for parent in commit.parents)
        merged = _merged_blobs(self._repo, span) if any(len(commit.parents) > 1 for commit in commits) else {}
        for commit in commits:
            self._files[commit.commit] = self._after(commit, merged.get(commit.commit, {}))
            for parent in commit.parents:
                children[parent] -= 1
                if not children[parent] and parent != end:
                    self._files.pop(parent, None)
        found: Counter[Label] = Counter()
        for _, runs in self._files.get(end, {}).values():
            for size, label in runs:
                if label is not None:
                    found[label] += size
        return found

    def _after(self, commit: CommitChanges, merged: dict[str, str | None]) -> "dict[str, State[Label]]":
        """Return the files after a commit."""
        parents = [self._files.get(parent, {}) for parent in commit.parents]
        files = dict(parents[0]) if parents else {}
        if len(parents) > 1:
            self._take_sides(files, parents[1:], merged)
        for change in commit.files:
            self._take_change(commit, change, files, parents)
        return files

    def _take_sides(
        self, files: "dict[str, State[Label]]", sides: "list[dict[str, State[Label]]]", merged: dict[str, str | None]
    ) -> None:
        """Take the files of a merge that differ from its first parent from the side that has them."""
        for path, blob in merged.items():
            if blob is None:
                files.pop(path, None)
                continue
            base: State[Label] = (blob, [(_ENDLESS, None)])
            files[path] = next((side[path] for side in sides if path in side and side[path][0] == blob), base)

    def _take_change(
        self,
        commit: CommitChanges,
        change: FileChange,
        files: "dict[str, State[Label]]",
        parents: "list[dict[str, State[Label]]]",
    ) -> None:
        names = (
            change.old_paths if len(parents) > 1 and len(change.old_paths) == len(parents) else [change.old_path] * len(parents)
        )
        olds = [parent.get(name, (None, [(_ENDLESS, None)])) for name, parent in zip(names, parents, strict=True)]
        if change.old_path != change.path:
            files.pop(change.old_path, None)
        if change.is_deleted:
            files.pop(change.path, None)
            if len(parents) == 1:
                self._report(commit, olds[0][1])
        elif change.blob is None and olds:
            # Only the name or the mode changed.
            files[change.path] = olds[0]
        elif len(parents) > 1:
            files[change.path] = (change.blob, _join_runs(self._merge_runs(commit, change, [runs for _, runs in olds])))
        else:
            old = olds[0][1] if olds and change.old_blob is not None else []
            files[change.path] = (change.blob, _join_runs(self._change_runs(commit, change, old)))

    def _change_runs(
        self, commit: CommitChanges, change: FileChange, old: "list[tuple[int, Label | None]]"
    ) -> "list[tuple[int, Label | None]]":
        lines: list[tuple[int, Label | None]] = []
        reader, place = _Runs(old), 1
        for hunk in change.hunks:
            lines += reader.take(hunk.old - place)
            self._report(commit, reader.take(hunk.old_count))
            place = hunk.old + hunk.old_count
            if hunk.new_count:
                lines += self._label(commit, change, hunk.new, hunk.new + hunk.new_count - 1)
        return lines + reader.take(_ENDLESS)

    def _report(self, commit: CommitChanges, runs: "Iterable[tuple[int, Label | None]]") -> None:
        for size, label in runs:
            if label is not None and self._removed is not None:
                self._removed(commit, label, size)

    def _merge_runs(
        self, commit: CommitChanges, change: FileChange, olds: "list[list[tuple[int, Label | None]]]"
    ) -> "list[tuple[int, Label | None]]":
        """Return the lines of a merged file: those of the first parent that has them, and those of the merge itself."""
        lines: list[tuple[int, Label | None]] = []
        readers, line = [_Runs(old) for old in olds], 1
        for start, columns in change.combined:
            lines += readers[0].take(start - line)
            for reader in readers[1:]:
                reader.skip(start - line)
            line = start
            for column in columns:
                if b"-" in column:
                    for reader, sign in zip(readers, column, strict=True):
                        reader.skip(sign == ord("-"))
                    continue
                taken = [reader.take(1) for reader, sign in zip(readers, column, strict=True) if sign == ord(" ")]
                lines += taken[0] if taken else self._label(commit, change, line, line)
                line += 1
        return lines + readers[0].take(_ENDLESS)


def _join_runs(runs: "Iterable[tuple[int, Label | None]]") -> "list[tuple[int, Label | None]]":
    found: list[tuple[int, Label | None]] = []
    for size, label in runs:
        if found and found[-1][1] == label:
            found[-1] = (found[-1][0] + size, label)
        else:
            found.append((size, label))
    return found


def _merged_blobs(repo: GitRepository, span: str) -> dict[str, dict[str, str | None]]:
    """Return the files of each merge that differ from its first parent, with their blobs; None for a file that is gone."""
    words = ("--merges", "--diff-merges=first-parent", "--raw", "-z", "--no-renames", "--no-abbrev", "--format=%x01%H")
    out = os.fsdecode(repo.call("log", *words, span, "--"))
    return {commit: {change.path: change.new for change in changes} for commit, changes in parse_raw_log(out)}
