"""Mount namespaces: a Linux process covers folders for itself and all that it starts; everybody else goes on seeing them.

Landlock opens whole trees and can't take one folder out of them again; a cover can. A sandboxed process can neither lift it, for
Landlock refuses it to mount, nor move what lies under it, for the kernel keeps the place of a mount.
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
    """Cover each folder with an empty, read-only one, for this process and its children.

    The working directory must have been set before: a handle from outside still leads beneath the cover.
    """
    _enter_namespace()
    _mount(None, "/", None, RECURSIVE | PRIVATE)
    for folder in folders:
        _mount("tmpfs", folder, "tmpfs", READ_ONLY | NO_SETUID | NO_DEVICES | NO_PROGRAMS, "size=4k,mode=0555")


@cache
def can_cover() -> bool:
    """Return whether a mount namespace can be had here; some machines and most containers refuse it."""
    # Not above: the supervisor of every command loads this module, and only covers.
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
    # Who is not root needs a user namespace around it, in which the user and the group keep their numbers.
    user, group = os.geteuid(), os.getegid()
    if _libc.unshare(NEW_USER | NEW_MOUNTS) != 0:
        raise _problem("no mount namespace can be had")
    _write("/proc/self/setgroups", "deny")
    _write("/proc/self/uid_map", f"{user} {user} 1")
    _write("/proc/self/gid_map", f"{group} {group} 1")


def _write(path: str, text: str) -> None:
    with open(path, "w", encoding="ascii") as file:
        file.write(text)


def _mount(source: str | None, target: str, form: str | None, flags: int, settings: str | None = None) -> None:
    words = [os.fsencode(word) if word is not None else None for word in (source, target, form)]
    if _libc.mount(*words, ctypes.c_ulong(flags), settings and settings.encode()) != 0:
        raise _problem(f"{target} can't be covered")


def _problem(what: str) -> OSError:
    code = ctypes.get_errno()
    return OSError(code, f"{what}: {os.strerror(code)}")
