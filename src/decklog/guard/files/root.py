"""Read and replace files beneath one directory only.

A `Root` keeps the directory open and opens all paths from that handle, so neither a link nor a concurrently swapped directory
leads outside. To replace a file, it writes a temporary file and renames it, so it never writes through an existing link.
"""

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from types import TracebackType

from decklog.core.errors import Closed, Conflict, DecklogError, DiskFull, Invalid, NotFound, ReadOnly, TooLarge, Unavailable
from decklog.guard.files.access import AccessRules, Op, build_denial, split
from decklog.guard.files.open_beneath import PASS, ResolvedPath, open_beneath
from decklog.guard.files.path_check import DEFAULT, find_root_paths, judge, open_directory, rules_for
from decklog.guard.files.pending import PendingFile

LARGEST_FILE = 10 * 1024 * 1024
MOST_TRIES = 8


@dataclass(frozen=True)
class Content:
    """The bytes of a file, with its path without links and its status at the time of reading."""

    path: str
    data: bytes
    found: os.stat_result


class Root:
    """A directory in which tools may work until it is closed."""

    def __init__(self, path: str | os.PathLike[str], *, rules: AccessRules = DEFAULT) -> None:
        self.root_paths = find_root_paths(path)
        self.fd = open_directory(path)
        self.rules = rules_for(self.fd, self.root_paths, rules)

    @property
    def path(self) -> str:
        """The absolute path of the directory, without links."""
        return self.root_paths[0]

    def __enter__(self) -> "Root":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Close the directory. Closing twice is harmless."""
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1

    def place(self, path: str, op: Op) -> ResolvedPath:
        """Resolve a path, or raise Denied. The file may still change before it is opened."""
        if self.fd < 0:
            raise Closed(f"The root {self.path} is closed", hint="Open it again.", root=self.path)
        return judge(self.fd, self.root_paths, path, op, self.rules)

    def open_exact(self, path: str, flags: int) -> int:
        """Open a path that was checked and has no links; a link raises ELOOP."""
        return open_beneath(self.fd, path, flags)

    def read(self, path: str, *, limit: int = LARGEST_FILE) -> Content:
        """Read a whole file; raise TooLarge for more than `limit` bytes."""
        for _ in range(MOST_TRIES):
            with translate_errors(path, Op.READ):
                content = self._read_once(path, limit)
            if self.rules.allow_hardlinks or self._is_still_valid(content):
                return content
        raise Conflict(f"{path!r} keeps being replaced", hint="Try again when nothing else changes it.", path=path)

    def _read_once(self, path: str, limit: int) -> Content:
        exact, fd = self._open_to_read(path)
        try:
            found = os.fstat(fd)
            self.rules.judge_file(exact, Op.READ, found)
            return Content(exact, _read_all(fd, exact, found, limit), found)
        finally:
            os.close(fd)

    def _is_still_valid(self, content: Content) -> bool:
        # A hard link can be replaced after it was opened; the outside file then has one link and looks harmless. So check
        # that the file still has this name and the same links: a new link changes only ctime, new bytes also mtime.
        try:
            now = os.stat(content.path, dir_fd=self.fd, follow_symlinks=False)
        except FileNotFoundError:
            return False
        then = content.found
        is_settled = now.st_ctime_ns == then.st_ctime_ns or now.st_mtime_ns != then.st_mtime_ns
        return os.path.samestat(now, then) and now.st_nlink == 1 and is_settled

    def _open_to_read(self, path: str) -> tuple[str, int]:
        if self.fd < 0:
            self.place(path, Op.READ)
        parts = split(path, self.root_paths, Op.READ)
        if ".." not in parts and parts[-1] not in ("", "."):
            exact = "/".join(parts)
            self.rules.judge(exact, Op.READ)
            with ignore_link():
                return exact, self.open_exact(exact, os.O_RDONLY)
        exact = self.place(path, Op.READ).path
        return exact, self.open_exact(exact, os.O_RDONLY)

    def stage(self, path: str, data: bytes | None, *, is_executable: bool | None = None) -> PendingFile:
        """Prepare to replace a file's content, or to remove the file (None); a commit then does so."""
        place = self.place(path, Op.WRITE)
        with translate_errors(path, Op.WRITE):
            directory, _, name = place.path.rpartition("/")
            fd, created = self._open_directory(directory or ".", create=data is not None)
            change = PendingFile(self, place.path, name, fd, created)
            try:
                change.prepare(data, is_executable=is_executable)
            except BaseException:
                change.abort()
                raise
        return change

    def write(self, path: str, data: bytes, *, over: Content | None = None) -> str:
        """Write a file's new content, creating its directories; return its path without links.

        With `over`, raise Conflict if the file has changed since it was read.
        """
        with self.stage(path, data) as change, translate_errors(path, Op.WRITE):
            change.commit(over.found if over else None)
        return change.path

    def _open_directory(self, directory: str, *, create: bool) -> tuple[int, list[str]]:
        created: list[str] = []
        try:
            return self.open_exact(directory, os.O_RDONLY | os.O_DIRECTORY), created
        except FileNotFoundError:
            if not create:
                raise
        for prefix in _prefixes(directory):
            parent = self.open_exact(os.path.dirname(prefix) or ".", os.O_RDONLY | os.O_DIRECTORY)
            try:
                os.mkdir(os.path.basename(prefix), dir_fd=parent)
                created.append(prefix)
                os.fsync(parent)
            except FileExistsError:
                continue
            finally:
                os.close(parent)
        return self.open_exact(directory, os.O_RDONLY | os.O_DIRECTORY), created

    def remove_directories(self, created: list[str]) -> None:
        """Remove directories that were created for a change that was aborted."""
        for directory in reversed(created):
            with suppress(OSError):
                parent = self.open_exact(os.path.dirname(directory) or ".", PASS)
                try:
                    os.rmdir(os.path.basename(directory), dir_fd=parent)
                finally:
                    os.close(parent)


def _prefixes(directory: str) -> Iterator[str]:
    names = directory.split("/")
    for count in range(1, len(names) + 1):
        yield "/".join(names[:count])


def _read_all(fd: int, path: str, found: os.stat_result, limit: int) -> bytes:
    if stat.S_ISDIR(found.st_mode):
        raise Invalid(f"{path!r} is a directory", hint="List it with list_files.", path=path)
    chunks: list[bytes] = []
    left = limit + 1
    while left and (chunk := os.read(fd, min(left, max(found.st_size + 1, 65536)))):
        chunks.append(chunk)
        left -= len(chunk)
    if not left:
        hint = "Read a part of it with another tool, or raise the limit."
        raise TooLarge(f"{path!r} is larger than {limit} bytes", hint=hint, path=path, limit=limit)
    return b"".join(chunks)


@contextmanager
def ignore_link() -> Iterator[None]:
    """Ignore a link in a path: the caller then follows links safely."""
    try:
        yield
    except OSError as error:
        if error.errno != errno.ELOOP:
            raise


@contextmanager
def translate_errors(path: str, op: Op) -> Iterator[None]:
    """Convert errors of the operating system to Decklog's errors."""
    try:
        yield
    except OSError as error:
        raise translate_error(error, path, op) from error


def translate_error(error: OSError, path: str, op: Op) -> DecklogError:
    """Return the Decklog error for an error of the operating system."""
    match error.errno:
        case errno.ENOENT:
            return NotFound(f"{path!r} does not exist", hint="Look for it with glob or list_files.", path=path)
        case errno.ELOOP | errno.EXDEV:
            return build_denial("symlink-race", path, op)
        case errno.ENOTDIR:
            return build_denial("not-a-directory", path, op)
        case errno.EISDIR:
            return build_denial("directory", path, op)
        case errno.ENXIO | errno.ENODEV:
            return build_denial("special-file", path, op)
        case errno.ENAMETOOLONG:
            return build_denial("too-long", path, op)
        case errno.EACCES | errno.EPERM:
            return build_denial("permission", path, op)
        case errno.EROFS:
            return ReadOnly(f"{path!r} lies on a read-only file system", hint="Work on a copy.", path=path)
        case errno.ENOSPC | errno.EDQUOT:
            return DiskFull(f"No room is left to write {path!r}", hint="Free some space.", path=path)
        case errno.EEXIST | errno.ENOTEMPTY:
            return Conflict(f"{path!r} was created meanwhile", hint="Read it and try again.", path=path)
    return Unavailable(f"{path!r} can't be used: {error.strerror}", hint="Check the disk.", path=path)
