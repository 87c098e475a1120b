"""Calls of the git program. They write objects, a private index and refs/decklog only."""

import hashlib
import os
import re
import shutil
import subprocess
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Self

from decklog.provenance.git_output import LineDifference, parse_hunks, parse_raw

# Turn off settings that would start programs of the repository or background work.
_SETTINGS = {
    "core.hooksPath": "/dev/null",
    "core.fsmonitor": "false",
    "core.quotePath": "false",
    "gc.auto": "0",
    "maintenance.auto": "false",
    "protocol.allow": "never",
    "submodule.recurse": "false",
    # A shared part of an index would be written into the user's git directory.
    "core.splitIndex": "false",
    # Above it git writes a pack instead of an object; captured files are smaller.
    "core.bigFileThreshold": "512m",
}
_WORDS = [word for name, value in _SETTINGS.items() for word in ("-c", f"{name}={value}")]
_VARIABLES = {
    "LC_ALL": "C",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_AUTHOR_NAME": "Decklog",
    "GIT_AUTHOR_EMAIL": "decklog@localhost",
    "GIT_COMMITTER_NAME": "Decklog",
    "GIT_COMMITTER_EMAIL": "decklog@localhost",
}
_SECONDS = 60.0
# Files and folders in a git directory that exist while an operation waits for its user.
_UNFINISHED = ("MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD", "rebase-merge", "rebase-apply", "BISECT_START")
_HASH = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")


class GitFailed(Exception):
    """A call of git failed; for most calls that means that an object is missing."""


class GitRepository:
    """A repository with a worktree. `state` is a folder of Decklog's inside the worktree's git directory."""

    def __init__(self, top: str, git_dir: str, common_dir: str) -> None:
        self.top = top
        self.git_dir = git_dir
        self.common_dir = common_dir
        self.state = os.path.join(git_dir, "decklog")
        self.objects = os.path.join(common_dir, "objects")

    @classmethod
    def find(cls, folder: str) -> "GitRepository | None":
        """Find the repository of a folder without starting a process; None if there is none with a worktree."""
        top = os.path.realpath(folder)
        while True:
            git_dir = _git_dir(os.path.join(top, ".git"))
            if git_dir is not None:
                return cls(top, git_dir, _common_dir(git_dir))
            parent = os.path.dirname(top)
            if parent == top or os.path.exists(os.path.join(top, ".git")):
                return None
            top = parent

    @property
    def is_unfinished(self) -> bool:
        """Whether a merge, a rebase or the like waits for its user."""
        return any(os.path.exists(os.path.join(self.git_dir, name)) for name in _UNFINISHED)

    def call(
        self,
        *words: str,
        given: bytes | None = None,
        index: str | None = None,
        objects: str | None = None,
        accepted: Sequence[int] = (0,),
    ) -> bytes:
        """Call git in the worktree and return its output; raise `GitFailed` for any other exit code.

        `index` is the index that it uses, and `objects` the folder that it writes new objects to.
        """
        variables = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")} | _VARIABLES
        if index is not None:
            variables["GIT_INDEX_FILE"] = index
        if objects is not None:
            variables["GIT_OBJECT_DIRECTORY"] = objects
            variables["GIT_ALTERNATE_OBJECT_DIRECTORIES"] = _quoted(self.objects, always=True)
        try:
            done = subprocess.run(
                ["git", *_WORDS, *words],
                cwd=self.top,
                env=variables,
                input=b"" if given is None else given,
                capture_output=True,
                timeout=_SECONDS,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as problem:
            raise GitFailed(f"git {words[0]}: {problem}") from None
        if done.returncode not in accepted:
            raise GitFailed(f"git {words[0]}: {done.stderr.decode(errors='replace').strip()[:500]}")
        return done.stdout

    def text(self, *words: str, accepted: Sequence[int] = (0,)) -> str:
        return self.call(*words, accepted=accepted).decode(errors="surrogateescape").strip()

    # Names

    def resolve(self, name: str) -> str | None:
        """Return the object that a name means; None if there is none."""
        found = self.text("rev-parse", "--verify", "--quiet", "--end-of-options", name, accepted=(0, 1, 128))
        return found or None

    def existing(self, names: Sequence[str]) -> list[str | None]:
        """Return the object that each name means, None for those that mean none, in one call."""
        given = b"".join(os.fsencode(name) + b"\n" for name in names)
        lines = self.call("cat-file", "--batch-check=%(objectname)", given=given).splitlines()
        found = [line.decode(errors="replace") for line in lines]
        return [None if line.endswith((" missing", " ambiguous")) else line for line in found]

    def head(self) -> str | None:
        """Return the commit that is checked out; None before the first one."""
        # Read as git writes it, to save a process; other forms are for git to read.
        try:
            named = _line_of(os.path.join(self.git_dir, "HEAD"))
            if named.startswith("ref: "):
                named = self._read_ref(named.removeprefix("ref: "))
        except OSError:
            named = ""
        return named if _HASH.fullmatch(named) else self.resolve("HEAD^{commit}")

    def _read_ref(self, ref: str) -> str:
        """Return what a ref names, by its file or among the packed refs."""
        try:
            return _line_of(os.path.join(self.common_dir, ref))
        except FileNotFoundError:
            with open(os.path.join(self.common_dir, "packed-refs"), encoding="utf-8", errors="surrogateescape") as file:
                return next((line.split(" ")[0] for line in file if line.endswith(f" {ref}\n")), "")

    @cached_property
    def identity(self) -> str:
        """The first commit of the checked out history; it is the same in all clones. Without a commit, the folder's digest."""
        try:
            return _line_of(self._read_identity)
        except OSError:
            pass
        found = self.text("rev-list", "--first-parent", "--max-parents=0", "HEAD", "--", accepted=(0, 128)).split()
        return found[0] if found else self.unborn_identity

    @cached_property
    def is_sha256(self) -> bool:
        """Whether the names of objects are SHA-256 digests."""
        return self.text("rev-parse", "--show-object-format") == "sha256"

    def save_identity(self) -> None:
        """Remember the identity for the next process: a long history takes long to walk."""
        if self.identity != self.unborn_identity and not os.path.exists(self._read_identity):
            os.makedirs(os.path.dirname(self._read_identity), exist_ok=True)
            fresh = f"{self._read_identity}.{os.getpid()}"
            with open(fresh, "w", encoding="ascii") as file:
                file.write(self.identity)
            os.replace(fresh, self._read_identity)

    @property
    def _read_identity(self) -> str:
        return os.path.join(self.common_dir, "decklog", "root")

    @property
    def unborn_identity(self) -> str:
        return f"unborn-{hashlib.sha256(os.fsencode(self.common_dir)).hexdigest()[:32]}"

    @cached_property
    def identities(self) -> frozenset[str]:
        """All names under which edits of this repository may be recorded."""
        roots = self.text("rev-list", "--max-parents=0", "--all", "HEAD", "--", accepted=(0, 128)).split()
        return frozenset([*roots, self.identity, self.unborn_identity])

    def relative(self, path: str) -> str | None:
        """Return a path as git names it; None for one outside the worktree, in a nested repository or in the git directory."""
        folder = os.path.realpath(os.path.dirname(os.path.join(self.top, path)))
        whole = os.path.join(folder, os.path.basename(path))
        if not whole.startswith(self.top + os.sep):
            return None
        inner = os.path.relpath(whole, self.top)
        if inner.split(os.sep)[0] == ".git":
            return None
        while folder != self.top:
            if os.path.lexists(os.path.join(folder, ".git")):
                return None
            folder = os.path.dirname(folder)
        return inner

    # Contents

    def blob_at(self, commit: str, path: str) -> str | None:
        """Return the blob of a path in a commit; None if the commit has no file there."""
        found = self.existing([f"{commit}:{path}"])
        return found[0] if found else None

    def hash_files(self, paths: Sequence[str], *, objects: str | None = None) -> list[str]:
        """Write files as `git add` would, and return their blobs."""
        if not paths:
            return []
        given = "".join(_quoted(path) + "\n" for path in paths)
        return self.call("hash-object", "-w", "--stdin-paths", given=os.fsencode(given), objects=objects).decode().split()

    def difference(self, old: str, new: str) -> LineDifference:
        """Compare two blobs by git's own diff."""
        words = ("diff", "--no-ext-diff", "--no-textconv", "--no-color", "--text", "-U0", "--inter-hunk-context=0")
        out = self.call(*words, "--diff-algorithm=myers", "--no-indent-heuristic", old, new, accepted=(0, 1))
        return LineDifference(parse_hunks(out))

    def contents(self, blobs: Iterable[str]) -> dict[str, bytes]:
        """Return the contents of blobs in one call, without those blobs that are gone."""
        out = self.call("cat-file", "--batch", given="".join(f"{blob}\n" for blob in blobs).encode())
        found: dict[str, bytes] = {}
        place = 0
        while place < len(out):
            end = out.index(b"\n", place)
            name, kind, *size = out[place:end].decode().split()
            place = end + 1
            if kind != "missing":
                found[name] = out[place : place + int(size[0])]
                place += int(size[0]) + 1
        return found

    def lines_of(self, blobs: Iterable[str]) -> dict[str, list[bytes]]:
        """Return the lines of blobs in one call, without those blobs that are gone."""
        return {blob: _lines(content) for blob, content in self.contents(blobs).items()}

    def tree(self, commit: str) -> dict[str, str]:
        """Return the blobs of all files of a commit, by path."""
        rows = os.fsdecode(self.call("ls-tree", "-r", "-z", "--full-tree", commit)).split("\0")
        parts = (row.partition("\t") for row in rows if row)
        return {path: facts.split(" ")[2] for facts, _, path in parts}

    def renames(self, old: str, new: str) -> dict[str, str]:
        """Return the files that were renamed between two trees, by their new paths."""
        out = self.call("diff-tree", "-r", "-M", "--diff-filter=R", "--raw", "--no-abbrev", "-z", old, new)
        changes = parse_raw(os.fsdecode(out).split("\0"))
        return {change.path: change.old_path for change in changes if change.old_path is not None}

    def is_ancestor(self, old: str, new: str) -> bool:
        """Return whether a commit is in the history of another one, or the same; False where one of them is gone."""
        if old == new:
            return True
        try:
            bases = self.text("merge-base", "--all", old, new, accepted=(0, 1))
        except GitFailed:
            return False
        return bases == old


def _lines(content: bytes) -> list[bytes]:
    """Split a content into lines as git does."""
    lines = content.split(b"\n")
    return lines if lines[-1] else lines[:-1]


def _quoted(path: str, *, always: bool = False) -> str:
    """Write a path as git reads it in a list: in quotes if it begins with one or has a line break."""
    if not always and not path.startswith('"') and "\n" not in path:
        return path
    return '"' + path.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'


def _git_dir(path: str) -> str | None:
    """Return the git directory that a `.git` is or names; None for neither."""
    if os.path.isdir(path):
        return path if os.path.exists(os.path.join(path, "HEAD")) else None
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            kind, _, named = file.read(4096).strip().partition(": ")
    except OSError:
        return None
    found = os.path.normpath(os.path.join(os.path.dirname(path), named))
    return found if kind == "gitdir" and os.path.isdir(found) else None


def _line_of(path: str) -> str:
    with open(path, encoding="utf-8", errors="surrogateescape") as file:
        return file.readline().strip()


def _common_dir(git_dir: str) -> str:
    try:
        with open(os.path.join(git_dir, "commondir"), encoding="utf-8", errors="surrogateescape") as file:
            return os.path.normpath(os.path.join(git_dir, file.read().strip()))
    except OSError:
        return git_dir


# Git removes what a killed process leaves under this name.
_PREFIX = "tmp_objdir-decklog-"


class NewObjects:
    """Writes blobs, and knows which of them are new. Blobs that are not kept are removed with the folder."""

    def __init__(self, repo: "GitRepository") -> None:
        self._repo = repo
        self._folder = os.path.join(repo.objects, f"{_PREFIX}{os.urandom(8).hex()}")

    def __enter__(self) -> Self:
        os.mkdir(self._folder, 0o700)
        return self

    def __exit__(self, *_: object) -> None:
        shutil.rmtree(self._folder)

    def write_files(self, paths: Sequence[str]) -> dict[str, str]:
        """Return the blobs of files as `git add` would make them."""
        return dict(zip(paths, self._repo.hash_files(paths, objects=self._folder), strict=True))

    def write_text(self, path: str | None, text: bytes) -> str:
        """Return the blob of a text, as `git add` would make it of a file at a path if there is one."""
        words = ("hash-object", "-w", "--stdin", *([f"--path={path}"] if path is not None else []))
        return self._repo.call(*words, given=text, objects=self._folder).decode().strip()

    def is_new(self, blob: str) -> bool:
        """Return whether git did not have a blob before it was written here."""
        return os.path.exists(os.path.join(self._folder, _place(blob)))

    def keep(self, blob: str) -> None:
        """Move a new blob to the objects of the repository."""
        place = os.path.join(self._repo.objects, _place(blob))
        folder = os.path.dirname(place)
        if not os.path.isdir(folder):
            os.makedirs(folder, exist_ok=True)
            shutil.copymode(self._repo.objects, folder)
        os.replace(os.path.join(self._folder, _place(blob)), place)


def _place(blob: str) -> str:
    return os.path.join(blob[:2], blob[2:])
