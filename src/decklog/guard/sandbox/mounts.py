"""Mount namespaces: a Linux process hides folders from itself and its children; other processes still see them.

Landlock allows whole trees and can't exclude a folder in them, but an empty mount can hide it. A sandboxed process can't unmount
it, because Landlock forbids mounting, and can't move the hidden folder, because the kernel keeps mount points in place.
"""

import ctypes
import os
import sys
from collections.abc import Sequence
from functools import cache

NEW_MOUNTS, NEW_USER = 0x00020000, 0x10000000
READ_ONLY, NO_SETUID, NO_DEVICES, NO_PROGRAMS = 1, 2, 4, 8
RECURSIVE, PRIVATE = 1 << 14, 1 << 18
TRIAL_SECONDS = 10.0
_TRIAL = "import sys; sys.path.insert(0, sys.argv[1]); from decklog.guard.sandbox.mounts import cover; cover(sys.argv[2:])"
_SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))

_libc = ctypes.CDLL(None, use_errno=True)


def cover(folders: Sequence[str]) -> None:
    """Cover each folder with an empty, read-only mount, for this process and its children.

    Change to the working directory before: a handle from before the mount still reaches the hidden folder.
    """
    _enter_namespace()
    _mount(None, "/", None, RECURSIVE | PRIVATE)
    for folder in folders:
        _mount("tmpfs", folder, "tmpfs", READ_ONLY | NO_SETUID | NO_DEVICES | NO_PROGRAMS, "size=4k,mode=0555")


@cache
def can_cover() -> bool:
    """Return whether this process may create a mount namespace; some machines and most containers forbid it."""
    # Import here: the supervisor of every command loads this module and does not need these.
    import subprocess
    import tempfile

    if sys.platform != "linux":
        return False
    with tempfile.TemporaryDirectory(prefix="decklog-") as folder:
        words = [sys.executable, "-I", "-S", "-c", _TRIAL, _SOURCE, folder]
        try:
            return subprocess.run(words, capture_output=True, timeout=TRIAL_SECONDS, check=False).returncode == 0
        except (OSError, subprocess.TimeoutExpired):
            return False


def _enter_namespace() -> None:
    if _libc.unshare(NEW_MOUNTS) == 0:
        return
    # Without root, a user namespace is needed too. It maps the user and the group to the same numbers.
    user, group = os.geteuid(), os.getegid()
    if _libc.unshare(NEW_USER | NEW_MOUNTS) != 0:
        raise _build_error("a mount namespace can't be created")
    _write("/proc/self/setgroups", "deny")
    _write("/proc/self/uid_map", f"{user} {user} 1")
    _write("/proc/self/gid_map", f"{group} {group} 1")


def _write(path: str, text: str) -> None:
    with open(path, "w", encoding="ascii") as file:
        file.write(text)


def _mount(source: str | None, target: str, form: str | None, flags: int, settings: str | None = None) -> None:
    words = [os.fsencode(word) if word is not None else None for word in (source, target, form)]
    if _libc.mount(*words, ctypes.c_ulong(flags), settings and settings.encode()) != 0:
        raise _build_error(f"{target} can't be covered")


def _build_error(message: str) -> OSError:
    code = ctypes.get_errno()
    return OSError(code, f"{message}: {os.strerror(code)}")
