"""Folders for an import's own copies of what it reads. One that was killed can't remove its own: the next import does."""

import fcntl
import os
import shutil
import stat
import tempfile
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_PREFIX = "decklog-import-"
# Locked for as long as the folder is in use; the lock ends with its process, however that ends.
_HELD = "in-use"


class PrivateFolder:
    """A temporary folder that only its owner can read, and that goes with it."""

    def __init__(self) -> None:
        remove_left_over()
        self.path, self._lock = _made()

    def remove(self) -> None:
        """Remove the folder with all that is in it."""
        shutil.rmtree(self.path, ignore_errors=True)
        os.close(self._lock)

    def __enter__(self) -> str:
        return self.path

    def __exit__(self, *_: object) -> None:
        self.remove()


def _made() -> tuple[str, int]:
    while True:
        path = tempfile.mkdtemp(prefix=_PREFIX)
        lock = os.open(os.path.join(path, _HELD), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(lock, fcntl.LOCK_EX)
        # Whoever looked for left-over folders may have come before the lock.
        if os.path.exists(os.path.join(path, _HELD)):
            return path, lock
        os.close(lock)


def remove_left_over() -> None:
    """Remove this user's folders whose imports were killed. One that is in use is locked, and one of another user is not ours."""
    for path in _own_folders():
        with suppress(OSError):
            lock = os.open(os.path.join(path, _HELD), os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(path, ignore_errors=True)
            finally:
                os.close(lock)


def _own_folders() -> "Iterator[str]":
    with os.scandir(tempfile.gettempdir()) as found:
        for one in found:
            if one.name.startswith(_PREFIX):
                with suppress(OSError):
                    facts = one.stat(follow_symlinks=False)
                    if stat.S_ISDIR(facts.st_mode) and facts.st_uid == os.getuid():
                        yield one.path
