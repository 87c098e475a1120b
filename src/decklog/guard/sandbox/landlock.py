"""Landlock: a Linux process gives up, for itself and all it starts, the right to touch files it has not named.

Spoken to by system call, since no library is needed for three of them. What a kernel offers grows with its version (ABI): a
right it does not know is left out of the rules, and `uncovered` names what stays open.
"""

import ctypes
import os
import stat
import sys
from collections.abc import Sequence

from decklog.core.errors import Unavailable
from decklog.guard.sandbox import seccomp

CREATE_RULESET, ADD_RULE, RESTRICT_SELF = 444, 445, 446
PATH_BENEATH = 1
NO_NEW_PRIVS = 38
DROP_BOUND = 24
CLEAR_AMBIENT = (47, 4)
CAPABILITY_VERSION = 0x20080522

EXECUTE, WRITE_FILE, READ_FILE, READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
REFER, TRUNCATE, IOCTL_DEV = 1 << 13, 1 << 14, 1 << 15
FIRST_RIGHTS = (1 << 13) - 1
READING = EXECUTE | READ_FILE | READ_DIR
# What can be said of a file that is not a directory.
OF_FILES = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEV
BIND_TCP, CONNECT_TCP = 1 << 0, 1 << 1
SCOPE_ABSTRACT_SOCKETS, SCOPE_SIGNALS = 1 << 0, 1 << 1


_libc = ctypes.CDLL(None, use_errno=True)


class _Ruleset(ctypes.Structure):
    _fields_ = (("files", ctypes.c_uint64), ("network", ctypes.c_uint64), ("scoped", ctypes.c_uint64))


class _Beneath(ctypes.Structure):
    # Python 3.14 wants it said whose layout a packed one has; of these two fields all layouts are the same.
    _layout_ = "ms"
    _pack_ = 1
    _fields_ = (("rights", ctypes.c_uint64), ("parent", ctypes.c_int32))


# What is called after a fork is made before it: to look a function up, or to make a type, copies pages in every child.
if sys.platform == "linux":
    _prctl, _capset = _libc.prctl, _libc.capset
_OF_THIS_PROCESS, _NO_CAPABILITIES = (ctypes.c_uint32 * 2)(CAPABILITY_VERSION, 0), (ctypes.c_uint32 * 6)()


class AllowedPaths:
    """What a process may still touch: directories and files to read and run, others to write too, and the network.

    `listed` are directories of which only the names are for everybody; `covered` are hidden ones amid others.
    """

    def __init__(
        self,
        readable: Sequence[str],
        writable: Sequence[str],
        network: bool,
        listed: Sequence[str] = (),
        covered: Sequence[str] = (),
    ) -> None:
        self.readable = tuple(readable)
        self.writable = tuple(writable)
        self.network = network
        self.listed = tuple(listed)
        self.covered = tuple(covered)

    def places(self) -> list[tuple[str, str]]:
        """List every place that rules speak of, each with what it is."""
        return [(part, path) for part in ("listed", "readable", "writable") for path in getattr(self, part)]


def _call(number: int, *arguments: object) -> int:
    result: int = _libc.syscall(number, *arguments)
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return result


def abi() -> int:
    """Return the version of Landlock that the kernel offers; 0 when it offers none."""
    if sys.platform != "linux":
        return 0
    try:
        return _call(CREATE_RULESET, None, 0, 1)
    except OSError:
        return 0


def rights(version: int) -> int:
    """Return the rights over files that a version can take away."""
    return FIRST_RIGHTS | (REFER if version >= 2 else 0) | (TRUNCATE if version >= 3 else 0) | (IOCTL_DEV if version >= 5 else 0)


def uncovered(version: int, *, network: bool) -> tuple[str, ...]:
    """Return what a version leaves open although a sandbox would close it."""
    gaps = ["reading names and attributes of files", "unix sockets with a path"]
    if not network and not seccomp.is_available():
        gaps.append("UDP and raw sockets" if version >= 4 else "the whole network")
    if version < 3:
        gaps.append("truncating files")
    if version < 5:
        gaps.append("device controls")
    if version < 6:
        gaps += ["signals to processes outside", "abstract unix sockets"]
    return tuple(gaps)


def make_rules(ground: AllowedPaths) -> int:
    """Create a Landlock ruleset from the allowed paths and return its file descriptor."""
    version = abi()
    handled = rights(version)
    rules = _Ruleset(handled, 0, 0)
    if version >= 4 and not ground.network:
        rules.network = BIND_TCP | CONNECT_TCP
    if version >= 6:
        rules.scoped = SCOPE_SIGNALS | SCOPE_ABSTRACT_SOCKETS
    size = 8 if version < 4 else 16 if version < 6 else 24
    ruleset = _call(CREATE_RULESET, ctypes.byref(rules), size, 0)
    allowed = {"listed": READ_DIR, "readable": READING & handled, "writable": handled}
    try:
        for part, path in ground.places():
            _allow(ruleset, path, allowed[part])
    except BaseException:
        os.close(ruleset)
        raise
    return ruleset


def restrict(rules: int, *, network: bool) -> None:
    """Restrict this process and its children permanently to what the rules allow."""
    if _prctl(NO_NEW_PRIVS, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "no_new_privs can't be set")
    _call(RESTRICT_SELF, rules, 0)
    _drop_capabilities()
    if not network and seccomp.is_available():
        seccomp.refuse_network()


def _drop_capabilities() -> None:
    """Drop what makes root more than a user, also for programs started later: some of it sees past Landlock."""
    _prctl(CLEAR_AMBIENT[0], CLEAR_AMBIENT[1], 0, 0, 0)
    number = 0
    # A user without capabilities is refused at the first; the kernel refuses the first that it does not know.
    while _prctl(DROP_BOUND, number, 0, 0, 0) == 0:
        number += 1
    if _capset(ctypes.byref(_OF_THIS_PROCESS), ctypes.byref(_NO_CAPABILITIES)) != 0:
        raise OSError(ctypes.get_errno(), "capabilities can't be dropped")


def _allow(ruleset: int, path: str, allowed: int) -> None:
    """Add a rule for a file, or for everything beneath a directory."""
    try:
        handle = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except FileNotFoundError:
        # A directory that this machine does not have needs no rule.
        return
    try:
        own = allowed if stat.S_ISDIR(os.fstat(handle).st_mode) else allowed & OF_FILES
        _call(ADD_RULE, ruleset, PATH_BENEATH, ctypes.byref(_Beneath(own, handle)), 0)
    finally:
        os.close(handle)


def require_linux() -> None:
    """Raise Unavailable on other systems: there nothing could confine a command, or be sure to end it."""
    if sys.platform != "linux":
        raise Unavailable(
            f"guarded commands and the sandbox need Linux; this is {sys.platform}",
            hint="Run this on Linux, or in a Linux container. Recording, import, tasks and the dashboard work here.",
        )
