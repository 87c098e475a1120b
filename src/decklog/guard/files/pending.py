"""A pending change of a file: the new bytes are in a temporary file until a rename replaces the original."""

import os
import secrets
from contextlib import suppress
from types import TracebackType
from typing import Protocol

from decklog.core.errors import Conflict
from decklog.guard.files.access import AccessRules, Op, build_denial
from decklog.guard.files.open_beneath import PASS


class ChangeContext(Protocol):
    """Interface of the root of a change."""

    rules: AccessRules

    def open_exact(self, path: str, flags: int) -> int: ...

    def remove_directories(self, created: list[str]) -> None: ...


class PendingFile:
    """A file that a commit will replace or remove; without a commit it stays unchanged."""

    def __init__(self, root: ChangeContext, path: str, name: str, directory_fd: int, created: list[str]) -> None:
        self.path = path
        self._root = root
        self._name = name
        self._fd = directory_fd
        self._created_directories = created
        self._temporary: str | None = None
        self._before = self._look()

    def __enter__(self) -> "PendingFile":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.abort()

    def _look(self) -> os.stat_result | None:
        try:
            return os.stat(self._name, dir_fd=self._fd, follow_symlinks=False)
        except FileNotFoundError:
            return None

    def prepare(self, data: bytes | None, *, is_executable: bool | None) -> None:
        """Write the new bytes to a temporary file; None removes the file."""
        if self._before is not None:
            self._root.rules.judge_file(self.path, Op.WRITE, self._before)
        elif data is None:
            raise FileNotFoundError(2, os.strerror(2), self.path)
        if data is not None:
            self._write_temporary(data, is_executable)

    def _write_temporary(self, data: bytes, is_executable: bool | None) -> None:
        name = f".decklog-{secrets.token_hex(8)}.tmp"
        # The mode of an existing file is applied at the end: until then nobody else may read the new bytes.
        mode = 0o600 if self._before else (0o777 if is_executable else 0o666)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        fd = os.open(name, flags, mode, dir_fd=self._fd)
        self._temporary = name
        try:
            view = memoryview(data)
            while view:
                view = view[os.write(fd, view) :]
            self._restore_owner_and_mode(fd, is_executable)
            os.fsync(fd)
        finally:
            os.close(fd)

    def _restore_owner_and_mode(self, fd: int, is_executable: bool | None) -> None:
        if self._before is None:
            return
        if os.geteuid() == 0:
            # Root in a container may lack the right to change owners; keep the content anyway.
            with suppress(PermissionError):
                os.fchown(fd, self._before.st_uid, self._before.st_gid)
        # Never restore the setuid bit: the new content was not granted it.
        mode = self._before.st_mode & 0o777
        if is_executable is not None:
            mode = mode | (mode & 0o444) >> 2 if is_executable else mode & ~0o111
        os.fchmod(fd, mode)

    def commit(self, expected: os.stat_result | None = None) -> None:
        """Commit the change; raise Conflict if the file or its directory has changed."""
        if not _is_same(self._look(), self._before) or (expected and not _is_same(expected, self._before)):
            hint = "Read the file again and repeat the change."
            raise Conflict(f"{self.path!r} was changed by someone else meanwhile", hint=hint, path=self.path)
        self._refuse_moved_directory()
        if self._temporary is None:
            os.unlink(self._name, dir_fd=self._fd)
        else:
            os.rename(self._temporary, self._name, src_dir_fd=self._fd, dst_dir_fd=self._fd)
            self._temporary = None
        self._created_directories = []
        os.fsync(self._fd)

    def _refuse_moved_directory(self) -> None:
        try:
            fd = self._root.open_exact(os.path.dirname(self.path) or ".", PASS)
        except OSError:
            raise build_denial("moved", self.path, Op.WRITE) from None
        try:
            if not os.path.samestat(os.fstat(fd), os.fstat(self._fd)):
                raise build_denial("moved", self.path, Op.WRITE)
        finally:
            os.close(fd)

    def abort(self) -> None:
        """Discard a change that was not committed. Repeated calls do nothing."""
        if self._fd < 0:
            return
        if self._temporary is not None:
            # Another process may have removed it with its directory.
            with suppress(FileNotFoundError):
                os.unlink(self._temporary, dir_fd=self._fd)
        os.close(self._fd)
        self._fd = -1
        self._root.remove_directories(self._created_directories)


def _is_same(now: os.stat_result | None, then: os.stat_result | None) -> bool:
    if now is None or then is None:
        return now is then
    return (now.st_ino, now.st_size, now.st_mtime_ns) == (then.st_ino, then.st_size, then.st_mtime_ns)
