"""Files that a backup, a restore or a recovery works on: named after their process, and swept up when it was killed."""

import fcntl
import os
import re
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager

from decklog.db.sqlite.file import filesystem_of, is_network

_NAMED = re.compile(
    r"\.(?P<pid>\d+)\.(partial|restoring)(-wal|-shm|-lock|-journal|-owner)?$|^\.decklog-recover-(?P<recovering>\d+)-"
)
_OWNER = "-owner"
# Another machine or container may use the same process numbers; a process at work touches its files.
_SECONDS_UNTOUCHED = 3600.0


@contextmanager
def working_on(partial: str) -> "Iterator[None]":
    """Hold a lock while a file is made, so that others can tell at once whether this process is still at work on it."""
    owner = partial + _OWNER
    descriptor = os.open(owner, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.unlink(owner)
        os.close(descriptor)


def sweep(folder: str) -> None:
    """Remove from a folder what processes that are gone have left of their work."""
    names = os.listdir(folder)
    # The system gives a lock back when its process ends. Over a network it may not know of it.
    if not is_network(filesystem_of(folder)):
        for name in names:
            named = _NAMED.search(name) if name.endswith(_OWNER) else None
            # A process that lives may be about to take its lock.
            if named and not _is_alive(int(named["pid"])) and _is_abandoned(os.path.join(folder, name)):
                _remove_all(folder, name.removesuffix(_OWNER), names)
    for name in names:
        named = _NAMED.search(name)
        path = os.path.join(folder, name)
        if named and os.path.lexists(path) and not _is_alive(int(named["pid"] or named["recovering"])) and _is_untouched(path):
            _remove(path)


def _is_abandoned(owner: str) -> bool:
    try:
        descriptor = os.open(owner, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return False  # it has just ended, or is not ours
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    finally:
        os.close(descriptor)
    return True


def _remove_all(folder: str, partial: str, names: list[str]) -> None:
    """Remove a file and those that belong to it; the owner's mark goes last."""
    for name in sorted((name for name in names if name.startswith(partial)), key=lambda name: name.endswith(_OWNER)):
        if _NAMED.search(name):
            _remove(os.path.join(folder, name))


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        return True
    return True


def _is_untouched(path: str) -> bool:
    names = [path, *(os.path.join(path, name) for name in (os.listdir(path) if os.path.isdir(path) else []))]
    try:
        return all(time.time() - os.lstat(name).st_mtime > _SECONDS_UNTOUCHED for name in names)
    except FileNotFoundError:
        return False  # somebody else is sweeping


def _remove(path: str) -> None:
    if os.path.isdir(path) and not os.path.islink(path):
        shutil.rmtree(path, ignore_errors=True)
        return
    try:
        os.unlink(path)
    except FileNotFoundError:
        return  # somebody else was faster
