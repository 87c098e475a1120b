"""Makes this process see what macOS has: no /proc, no system calls and constants of Linux alone. Then runs `decklog`.

`python -m tests.project.like_macos import` imports every module instead, and prints those that can't be imported.
"""

import builtins
import ctypes
import fcntl
import os
import signal
import sys
import sysconfig
import types
from collections.abc import Callable
from typing import Any

# Names that Python has on Linux and not on macOS.
LINUX_ONLY: dict[Any, tuple[str, ...]] = {
    os: (
        *("O_PATH", "O_TMPFILE", "O_DIRECT", "sched_getaffinity", "sched_setaffinity", "pidfd_open", "memfd_create", "eventfd"),
        *("getrandom", "copy_file_range", "splice", "setns", "unshare", "setresuid", "setresgid", "fdatasync", "posix_fadvise"),
    ),
    fcntl: ("F_SETPIPE_SZ", "F_GETPIPE_SZ", "F_OFD_SETLK", "F_OFD_SETLKW", "F_OFD_GETLK", "F_ADD_SEALS"),
    signal: ("pidfd_send_signal", "SIGPOLL", "SIGSTKFLT", "SIGPWR", "SIGRTMIN", "SIGRTMAX"),
}
# Functions of the C library that only Linux has.
SYSTEM_CALLS = ("prctl", "unshare", "capset", "mount")


def pretend() -> None:
    """Take away what macOS does not have."""
    # Python's own modules for macOS are not on this machine.
    sysconfig.get_config_vars()
    sys.modules["_scproxy"] = types.ModuleType("_scproxy")
    sys.modules["_scproxy"].__dict__.update(_get_proxies=dict, _get_proxy_settings=dict)
    sys.platform = "darwin"
    for module, names in LINUX_ONLY.items():
        for name in names:
            if hasattr(module, name):
                delattr(module, name)
    for module, name in ((builtins, "open"), (os, "open"), (os, "readlink"), (os, "listdir"), (os, "stat")):
        setattr(module, name, _without_proc(getattr(module, name)))
    os.path.exists = _is_there(os.path.exists)
    ctypes.CDLL = _Library


def _is_proc(path: object) -> bool:
    return isinstance(path, str | os.PathLike) and os.fspath(path).startswith("/proc")


def _without_proc(function: Callable[..., Any]) -> Callable[..., Any]:
    def checked(path: Any = ".", *rest: Any, **settings: Any) -> Any:
        if _is_proc(path):
            raise FileNotFoundError(2, "No such file or directory", os.fspath(path))
        return function(path, *rest, **settings)

    return checked


def _is_there(function: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda path: not _is_proc(path) and function(path)


class _Library(ctypes.CDLL):
    def __getattr__(self, name: str) -> Any:
        if name in SYSTEM_CALLS:
            raise AttributeError(name)
        return super().__getattr__(name)


def _import_all() -> int:
    import pkgutil
    from importlib import import_module

    import decklog

    failed = []
    for found in pkgutil.walk_packages(decklog.__path__, "decklog."):
        if found.name.endswith("__main__"):
            continue
        try:
            import_module(found.name)
        except Exception as problem:  # noqa: BLE001
            failed.append(f"{found.name}: {type(problem).__name__}: {problem}")
    print("\n".join(failed))
    return 0


if __name__ == "__main__":
    pretend()
    if sys.argv[1:] == ["import"]:
        sys.exit(_import_all())
    from decklog.cli import run

    sys.exit(run(sys.argv[1:]))
