"""Open files beneath a directory handle so that no link and no race leads outside.

A path is opened in two steps. `canonical` follows the links and returns a path without links, which may be outdated at once.
`open_beneath` then opens this path directory by directory, each with `O_NOFOLLOW`, so only the checked path is opened.
"""

import errno
import os
import stat
from collections import deque
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass

from decklog.guard.files.access import build_denial

MOST_LINKS = 40
# O_PATH needs only the right to pass through a directory, not to list it.
PATH = getattr(os, "O_PATH", 0)
PASS = PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# Opening a FIFO must not block, and a terminal must not become the controlling terminal.
SAFE = os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY


def open_beneath(root_fd: int, path: str, flags: int) -> int:
    """Open an existing file beneath the root; a link in its path raises ELOOP."""
    *directories, name = path.split("/")
    if ".." in directories or name == "..":
        raise OSError(errno.EXDEV, os.strerror(errno.EXDEV), path)
    fd = os.dup(root_fd)
    try:
        for directory in directories:
            below = _open_no_link(directory, PASS, fd)
            os.close(fd)
            fd = below
        return _open_no_link(name, flags | SAFE, fd)
    finally:
        os.close(fd)


def _open_no_link(name: str, flags: int, dir_fd: int) -> int:
    try:
        return os.open(name, flags, dir_fd=dir_fd)
    except NotADirectoryError:
        # With O_DIRECTORY a link is reported as "not a directory"; distinguish the two.
        if stat.S_ISLNK(os.stat(name, dir_fd=dir_fd, follow_symlinks=False).st_mode):
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), name) from None
        raise


@dataclass(frozen=True)
class ResolvedPath:
    """A path relative to the root, without links, and the file's status (None if it is missing)."""

    path: str
    found: os.stat_result | None


def canonical(root_fd: int, parts: Sequence[str], root_paths: Sequence[str], spelled: str, op: str = "") -> ResolvedPath:
    """Resolve a path's links and `..` beneath the root; raise Denied if one leads outside.

    Missing names stay as they are.
    """
    with closing(_Descent(root_fd, spelled, op)) as descent:
        queue = deque(parts)
        while queue:
            target = descent.step(queue.popleft())
            if target is not None:
                queue.extendleft(reversed(descent.follow(target, root_paths)))
        return descent.place()


class _Descent:
    """A walk down from the root. The directory handles stay open, so that `..` can go back up."""

    def __init__(self, root_fd: int, spelled: str, op: str) -> None:
        self.root_fd, self.spelled, self.op = root_fd, spelled, op
        self.handles: list[tuple[str, int]] = []
        self.file: tuple[str, os.stat_result] | None = None
        self.missing: list[str] = []
        self.links = 0

    def close(self) -> None:
        while self.handles:
            os.close(self.handles.pop()[1])

    def step(self, name: str) -> str | None:
        """Enter one name; return the target if it is a link."""
        if self.file is not None and not self.missing:
            raise build_denial("not-a-directory", self.spelled, self.op)
        if name == "..":
            self._up()
        elif name not in ("", ".") and self.missing:
            self.missing.append(name)
        elif name not in ("", "."):
            return self._down(name)
        return None

    def _up(self) -> None:
        if self.missing:
            self.missing.pop()
        elif self.handles:
            os.close(self.handles.pop()[1])
        else:
            raise build_denial("symlink-out" if self.links else "outside", self.spelled, self.op)

    def _down(self, name: str) -> str | None:
        top = self.handles[-1][1] if self.handles else self.root_fd
        try:
            found = os.stat(name, dir_fd=top, follow_symlinks=False)
            if stat.S_ISLNK(found.st_mode):
                return os.readlink(name, dir_fd=top)
            if stat.S_ISDIR(found.st_mode):
                self.handles.append((name, os.open(name, PASS, dir_fd=top)))
            else:
                self.file = (name, found)
        except FileNotFoundError:
            self.missing.append(name)
        return None

    def follow(self, target: str, root_paths: Sequence[str]) -> list[str]:
        """Return the names in a link's target; an absolute link into the root starts at the root again."""
        self.links += 1
        if self.links > MOST_LINKS:
            raise build_denial("symlink-loop", self.spelled, self.op)
        if not target.startswith("/"):
            return target.split("/")
        for home in root_paths:
            if target == home or target.startswith(f"{home}/"):
                self.close()
                return target[len(home) :].split("/")
        raise build_denial("symlink-out", self.spelled, self.op, target=target)

    def place(self) -> ResolvedPath:
        names = [name for name, _ in self.handles]
        found: os.stat_result | None = None
        if self.missing:
            names += self.missing
        elif self.file is not None:
            names.append(self.file[0])
            found = self.file[1]
        else:
            found = os.fstat(self.handles[-1][1] if self.handles else self.root_fd)
        return ResolvedPath("/".join(names) or ".", found)
