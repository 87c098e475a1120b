"""Open files beneath a directory handle so that no link and no race leads out.

A path is opened in two steps. `canonical` follows the links in user space and gives a path without any;
that is advice, since the disk may change meanwhile. An `Opener` then opens that path refusing every link,
so what is opened is what was judged. Linux 5.6 and newer do it in one system call (`openat2`); elsewhere a
walk opens one directory after another, each with `O_NOFOLLOW`.
"""

import ctypes
import errno
import os
import stat
import sys
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import lru_cache

from decklog.guard.files.access import denied

OPENAT2 = 437
RESOLVE_NO_MAGICLINKS = 0x02
RESOLVE_NO_SYMLINKS = 0x04
RESOLVE_BENEATH = 0x08
MOST_LINKS = 40
# O_PATH needs only the right to pass through a directory, not to list it.
PATH = getattr(os, "O_PATH", 0)
PASS = PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# Opening a FIFO must not wait for its other end, nor a terminal become ours.
SAFE = os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY

Opener = Callable[[int, str, int], int]


class _How(ctypes.Structure):
    _fields_ = (("flags", ctypes.c_uint64), ("mode", ctypes.c_uint64), ("resolve", ctypes.c_uint64))


def _safe(flags: int) -> int:
    # openat2 takes no flag that O_PATH would make meaningless.
    return flags if flags & PATH else flags | SAFE


@lru_cache(maxsize=32)
def _how(flags: int) -> _How:
    return _How(_safe(flags), 0, RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS)


_syscall = ctypes.CDLL(None, use_errno=True).syscall if sys.platform == "linux" else None


def open_by_openat2(root_fd: int, path: str, flags: int) -> int:
    """Open an existing file beneath the root in one system call; any link on the way is ELOOP."""
    if _syscall is None:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS), path)
    name, how = os.fsencode(path), _how(flags)
    while True:
        fd: int = _syscall(OPENAT2, root_fd, name, ctypes.byref(how), ctypes.sizeof(how))
        if fd >= 0:
            return fd
        code = ctypes.get_errno()
        # The kernel answers EAGAIN when a rename elsewhere kept it from being sure.
        if code not in (errno.EAGAIN, errno.EINTR):
            raise OSError(code, os.strerror(code), path)


def open_by_walk(root_fd: int, path: str, flags: int) -> int:
    """Open an existing file beneath the root one directory at a time; any link on the way is ELOOP."""
    *directories, name = path.split("/")
    if ".." in directories or name == "..":
        raise OSError(errno.EXDEV, os.strerror(errno.EXDEV), path)
    fd = os.dup(root_fd)
    try:
        for directory in directories:
            below = _open_no_link(directory, PASS, fd)
            os.close(fd)
            fd = below
        return _open_no_link(name, _safe(flags), fd)
    finally:
        os.close(fd)


def _open_no_link(name: str, flags: int, dir_fd: int) -> int:
    try:
        return os.open(name, flags, dir_fd=dir_fd)
    except NotADirectoryError:
        # With O_DIRECTORY a link is reported as "not a directory"; tell the two apart.
        if stat.S_ISLNK(os.stat(name, dir_fd=dir_fd, follow_symlinks=False).st_mode):
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), name) from None
        raise


@lru_cache(maxsize=1)
def best_opener() -> Opener:
    """Choose `openat2` where the kernel has it and the sandbox lets it through, else the walk."""
    fd = os.open("/", PASS)
    try:
        os.close(open_by_openat2(fd, ".", PASS))
    except OSError:
        return open_by_walk
    else:
        return open_by_openat2
    finally:
        os.close(fd)


@dataclass(frozen=True)
class ResolvedPath:
    """Where a path leads: relative to the root, free of links, with what is there (None if nothing)."""

    path: str
    found: os.stat_result | None


def canonical(root_fd: int, parts: Sequence[str], homes: Sequence[str], spelled: str, op: str = "") -> ResolvedPath:
    """Follow a path's links and `..` beneath the root, or refuse it where one leads out.

    Names that do not exist yet are taken as they are.
    """
    with closing(_Descent(root_fd, spelled, op)) as descent:
        queue = deque(parts)
        while queue:
            target = descent.step(queue.popleft())
            if target is not None:
                queue.extendleft(reversed(descent.follow(target, homes)))
        return descent.place()


class _Descent:
    """A walk down from the root that remembers the handles it passed, so that `..` can go back up."""

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
        """Take one name; give the target if it is a link."""
        if self.file is not None and not self.missing:
            raise denied("not-a-directory", self.spelled, self.op)
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
            raise denied("symlink-out" if self.links else "outside", self.spelled, self.op)

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

    def follow(self, target: str, homes: Sequence[str]) -> list[str]:
        """Return the names a link leads through; an absolute link into the root starts again from it."""
        self.links += 1
        if self.links > MOST_LINKS:
            raise denied("symlink-loop", self.spelled, self.op)
        if not target.startswith("/"):
            return target.split("/")
        for home in homes:
            if target == home or target.startswith(f"{home}/"):
                self.close()
                return target[len(home) :].split("/")
        raise denied("symlink-out", self.spelled, self.op, target=target)

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
