"""Commands that call git: content that git restored or merged is not the command's, but content that it committed is.

At its end a command may have committed what it wrote, so git has it. And a file that it changed may have lines that git brought
from a stash, a branch or an earlier commit. A line that is in any content that the file had before is one of those.
"""

import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from decklog.provenance.git import GitFailed, GitRepository, NewObjects
from decklog.provenance.git_output import parse_raw, parse_raw_log

Captured = dict[str, Any]

# What `git commit` writes into the reflog. Merges, picks and pulls write other words.
_COMMITTED = ("commit: ", "commit (initial): ", "commit (amend): ")
_SOURCES = ("FETCH_HEAD", "ORIG_HEAD", "MERGE_HEAD", "CHERRY_PICK_HEAD")
_LOG = (
    "log",
    "--exclude=refs/decklog/*",
    "--all",
    "--reflog",
    "--ignore-missing",
    "--stdin",
    "--full-history",
    "-m",
    "--raw",
    "-z",
)
_PLAIN = ("--no-renames", "--no-abbrev", "--format=%x01%H")
_MOST_CONTENTS = 200
_MOST_COMPARED = 20
# Seconds that the times of files may lag behind.
_CLOCK_STEP = 0.02


def git_state(repo: GitRepository) -> Captured:
    """Return the state of git before a command, read from a few files without a call of git."""
    stashes = [line.split(b" ", 2)[1].decode() for line in _read(repo.common_dir, "logs/refs/stash").splitlines()]
    return {"index": _stamp(repo), "log": len(_read(repo.git_dir, "logs/HEAD")), "stashes": stashes, "at": time.time()}


def _stamp(repo: GitRepository) -> list[int] | None:
    try:
        found = os.stat(os.path.join(repo.git_dir, "index"))
    except FileNotFoundError:
        return None
    return [found.st_mtime_ns, found.st_size, found.st_ino]


def _read(folder: str, name: str) -> bytes:
    try:
        with open(os.path.join(folder, name), "rb") as file:
            return file.read()
    except FileNotFoundError:
        return b""


@dataclass
class CommandWithGit:
    """What git did during a command. `before` has the blobs of all files when it began."""

    repo: GitRepository
    state: Captured
    head: str | None
    before: dict[str, str]
    objects: NewObjects
    _contents: dict[str, list[str]] = field(default_factory=dict)

    @classmethod
    def is_used(cls, repo: GitRepository, state: Captured, head: str | None) -> bool:
        """Return whether git was called during a command, other than to read."""
        now = git_state(repo)
        return any(state[name] != now[name] for name in ("index", "log", "stashes")) or head != repo.head()

    @cached_property
    def commits(self) -> list[str]:
        """The commits that the command made, oldest first."""
        lines = _read(self.repo.git_dir, "logs/HEAD")[self.state["log"] :].decode(errors="replace").splitlines()
        parts = (line.partition("\t") for line in lines)
        return list(dict.fromkeys(head.split(" ")[1] for head, _, action in parts if action.startswith(_COMMITTED)))

    @cached_property
    def _known(self) -> set[str]:
        """The contents that were in the worktree or in the commit below it."""
        committed = self.repo.tree(self.head) if self.head else {}
        return {*self.before.values(), *committed.values()}

    def committed(self) -> Iterator[Captured]:
        """Yield the edits that the command's commits have: of contents that nothing had before."""
        for commit in self.commits:
            changes = list(self._changes(commit))
            self._load([path for change in changes for path in (change["path"], change["old_path"]) if path])
            for change in changes:
                if self._is_new(change):
                    bases = map(self.before.get, (change["path"], change["old_path"] or change["path"]))
                    yield from self._own_part(change, [change["old"], *bases])

    def uncommitted(self, edits: Sequence[Captured]) -> Iterator[Captured]:
        """Yield edits of the worktree's files without content that git added to them."""
        paths, top = [edit["path"] for edit in edits], self.repo.head()
        self._load(paths)
        committed = self.repo.existing([f"{top}:{path}" for path in paths]) if top else [None] * len(paths)
        staged = self.repo.existing([f":{path}" for path in paths])
        for edit, *bases in zip(edits, committed, staged, strict=True):
            if edit["new"] is None:
                yield edit
            else:
                yield from self._own_part({**edit, "head": top}, [edit["old"], *bases])

    def _changes(self, commit: str) -> Iterator[Captured]:
        """Yield the files that a commit changed, in the form of edits."""
        below = self.repo.resolve(f"{commit}^")
        words = ("diff-tree", "-r", "-M", "--root", "--raw", "--no-abbrev", "--no-commit-id", "--diff-filter=AMR", "-z")
        out = os.fsdecode(self.repo.call(*words, *([below] if below else []), commit))
        for one in parse_raw(out.split("\0")):
            if one.mode.startswith("100"):
                yield {"path": one.path, "old_path": one.old_path, "old": one.old, "new": one.new, "head": below}

    def _is_new(self, change: Captured) -> bool:
        """Return whether a committed content is younger than the command, and no other commit and no file had it."""
        blob = change["new"]
        place = os.path.join(self.repo.objects, blob[:2], blob[2:])
        if blob in self._known or blob in self._contents[change["path"]] or not os.path.exists(place):
            return False
        begun: float = self.state["at"]
        return os.stat(place).st_ctime >= begun - _CLOCK_STEP

    def _load(self, paths: Sequence[str]) -> None:
        """Load the contents that files had in commits other than the command's, newest first, and in stashes."""
        wanted = [path for path in dict.fromkeys(paths) if path not in self._contents]
        self._contents.update((path, []) for path in wanted)
        if not wanted:
            return
        sources = "".join(f"{name}\n" for name in (*self.state["stashes"], *_SOURCES))
        given = (sources + "--\n" + "".join(f":(literal){path}\n" for path in wanted if "\n" not in path)).encode()
        out = os.fsdecode(self.repo.call(*_LOG, *_PLAIN, given=given, accepted=(0, 128)))
        for commit, changes in parse_raw_log(out):
            for change in changes if commit not in self.commits else ():
                if change.new is not None and change.path in self._contents:
                    self._contents[change.path].append(change.new)

    def _own_part(self, edit: Captured, bases: Sequence[str | None]) -> Iterator[Captured]:
        """Yield an edit whose former content has all lines that were there before, in the new content's order."""
        lines = self._lines(edit["new"])
        known = {blob for blob in bases if blob is not None}
        old = {number for blob in known for number in self._unchanged(blob, edit["new"], len(lines))}
        fresh = {text for number, text in enumerate(lines) if number not in old and text.strip()}
        for blob in self._sources(edit, known, fresh):
            old |= self._unchanged(blob, edit["new"], len(lines))
        if len(old) == len(lines):
            return
        if edit["old"] is None or old - self._unchanged(edit["old"], edit["new"], len(lines)):
            text = b"".join(lines[number] + b"\n" for number in sorted(old))
            edit = {**edit, "old": self._keep(text) if text else None}
        yield edit

    def _sources(self, edit: Captured, known: set[str], fresh: set[bytes]) -> list[str]:
        """Return the earlier contents of a file that share most of the lines that seem new."""
        blobs = [blob for blob in dict.fromkeys(self._contents[edit["path"]]) if blob not in (*known, edit["new"])]
        found = self.repo.lines_of(blobs[:_MOST_CONTENTS]) if blobs and fresh else {}
        shared = {blob: len(fresh.intersection(lines)) for blob, lines in found.items()}
        return sorted((blob for blob in shared if shared[blob]), key=lambda blob: -shared[blob])[:_MOST_COMPARED]

    def _unchanged(self, old: str, new: str, count: int) -> set[int]:
        difference = self.repo.difference(old, new)
        return {number for number in range(count) if difference.old_line(number + 1) is not None}

    def _lines(self, blob: str) -> list[bytes]:
        found = self.repo.lines_of([blob]).get(blob)
        if found is None:
            raise GitFailed(f"{blob} is gone")
        return found

    def _keep(self, text: bytes) -> str:
        blob = self.objects.write_text(None, text)
        if self.objects.is_new(blob):
            self.objects.keep(blob)
        return blob
