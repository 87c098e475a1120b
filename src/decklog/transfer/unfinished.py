"""Files that a backup, a restore or a recovery works on: named after their process, and swept up when it was killed."""

import os
import re
import shutil
import time

_NAMED = re.compile(r"\.(?P<pid>\d+)\.(partial|restoring)(-wal|-shm|-lock|-journal)?$|^\.decklog-recover-(?P<recovering>\d+)-")
# Another machine, or a container, may have processes of its own numbers; one that is at work touches its files.
_SECONDS_UNTOUCHED = 3600.0


def sweep(folder: str) -> None:
    """Remove from a folder what processes that are gone have left of their work."""
    for name in os.listdir(folder):
        named = _NAMED.search(name)
        path = os.path.join(folder, name)
        if named and not _is_alive(int(named["pid"] or named["recovering"])) and _is_untouched(path):
            _remove(path)


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
