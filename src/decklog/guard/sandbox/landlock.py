"""Landlock: a Linux process restricts itself and its children to the files that it lists.

Landlock has three system calls, so no library is needed. Newer kernel versions (ABI) support more rights. The rules omit rights
that the kernel does not know, and `find_gaps` lists what stays unrestricted.
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
READ_RIGHTS = EXECUTE | READ_FILE | READ_DIR
# Rights that apply to a file that is not a directory.
FILE_RIGHTS = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEV
BIND_TCP, CONNECT_TCP = 1 << 0, 1 << 1
SCOPE_ABSTRACT_SOCKETS, SCOPE_SIGNALS = 1 << 0, 1 << 1


_libc = ctypes.CDLL(None, use_errno=True)


class _Ruleset(ctypes.Structure):
    _fields_ = (("files", ctypes.c_uint64), ("network", ctypes.c_uint64), ("scoped", ctypes.c_uint64))


class _PathBeneath(ctypes.Structure):
    # Python 3.14 requires a layout for packed structures; for these two fields all layouts are equal.
    _layout_ = "ms"
    _pack_ = 1
    _fields_ = (("rights", ctypes.c_uint64), ("parent", ctypes.c_int32))


# Look up functions and create types before a fork: doing so in every child would copy memory pages.
if sys.platform == "linux":
    _prctl, _capset = _libc.prctl, _libc.capset
_THIS_PROCESS, _NO_CAPABILITIES = (ctypes.c_uint32 * 2)(CAPABILITY_VERSION, 0), (ctypes.c_uint32 * 6)()


class AllowedPaths:
    """Paths that a process may read and run, paths that it may also write, and whether it may use the network.

    `listed` are directories of which only the names may be read; `covered` are directories that are hidden.
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

    def list_rules(self) -> list[tuple[str, str]]:
        """Return (attribute, path) pairs of all paths that need a rule."""
        return [(part, path) for part in ("listed", "readable", "writable") for path in getattr(self, part)]


def _system_call(number: int, *arguments: object) -> int:
    result: int = _libc.syscall(number, *arguments)
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return result


def abi_version() -> int:
    """Return the kernel's Landlock version; 0 without Landlock."""
    if sys.platform != "linux":
        return 0
    try:
        return _system_call(CREATE_RULESET, None, 0, 1)
    except OSError:
        return 0


def available_rights(version: int) -> int:
    """Return the file rights that a Landlock version can restrict."""
    return FIRST_RIGHTS | (REFER if version >= 2 else 0) | (TRUNCATE if version >= 3 else 0) | (IOCTL_DEV if version >= 5 else 0)


def find_gaps(version: int, *, network: bool) -> tuple[str, ...]:
    """Return what a Landlock version can't restrict."""
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


def make_rules(paths: AllowedPaths) -> int:
    """Create a Landlock ruleset from the allowed paths and return its file descriptor."""
    version = abi_version()
    handled = available_rights(version)
    rules = _Ruleset(handled, 0, 0)
    if version >= 4 and not paths.network:
        rules.network = BIND_TCP | CONNECT_TCP
    if version >= 6:
        rules.scoped = SCOPE_SIGNALS | SCOPE_ABSTRACT_SOCKETS
    size = 8 if version < 4 else 16 if version < 6 else 24
    ruleset = _system_call(CREATE_RULESET, ctypes.byref(rules), size, 0)
    allowed = {"listed": READ_DIR, "readable": READ_RIGHTS & handled, "writable": handled}
    try:
        for part, path in paths.list_rules():
            _allow(ruleset, path, allowed[part])
    except BaseException:
        os.close(ruleset)
        raise
    return ruleset


def restrict(rules: int, *, network: bool) -> None:
    """Restrict this process and its children permanently to what the rules allow."""
    if _prctl(NO_NEW_PRIVS, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "no_new_privs can't be set")
    _system_call(RESTRICT_SELF, rules, 0)
    _drop_capabilities()
    if not network and seccomp.is_available():
        seccomp.refuse_network()


def _drop_capabilities() -> None:
    """Drop root's capabilities, also for programs started later: some of them bypass Landlock."""
    _prctl(CLEAR_AMBIENT[0], CLEAR_AMBIENT[1], 0, 0, 0)
    number = 0
    # The kernel refuses the first unknown capability; for a user without capabilities it refuses the first one.
    while _prctl(DROP_BOUND, number, 0, 0, 0) == 0:
        number += 1
    if _capset(ctypes.byref(_THIS_PROCESS), ctypes.byref(_NO_CAPABILITIES)) != 0:
        raise OSError(ctypes.get_errno(), "capabilities can't be dropped")


def _allow(ruleset: int, path: str, allowed: int) -> None:
    """Add a rule for a file, or for everything beneath a directory."""
    try:
        handle = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except FileNotFoundError:
        # A directory that this machine does not have needs no rule.
        return
    try:
        file_rights = allowed if stat.S_ISDIR(os.fstat(handle).st_mode) else allowed & FILE_RIGHTS
        _system_call(ADD_RULE, ruleset, PATH_BENEATH, ctypes.byref(_PathBeneath(file_rights, handle)), 0)
    finally:
        os.close(handle)


def require_linux() -> None:
    """Raise Unavailable on other systems, where a command can't be confined or reliably stopped."""
    if sys.platform != "linux":
        raise Unavailable(
            f"guarded commands and the sandbox need Linux; this is {sys.platform}",
            hint="Run this on Linux, or in a Linux container. Recording, import, tasks and the dashboard work here.",
        )
