"""Hosts made of namespaces: each has its own processes, name, network, boot, machine and home, and dies as a whole."""

import ctypes
import os
import signal
import time
import traceback
from collections.abc import Callable
from pathlib import Path

from tests.conductor.repositories import consent, git

_MOUNT, _NAME, _USER, _PROCESSES, _NETWORK = 0x20000, 0x4000000, 0x10000000, 0x20000000, 0x40000000
_BIND, _PRIVATE, _ALL_BELOW = 4096, 1 << 18, 16384
_DIES_WITH_PARENT = 1
_libc = ctypes.CDLL(None, use_errno=True)


def why_not() -> str | None:
    """Say why no host can be made here; None when one can."""
    child = os.fork()
    if child == 0:
        try:
            _apart()
            os._exit(0)
        finally:
            os._exit(1)
    return "namespaces are not to be had here" if os.waitpid(child, 0)[1] else None


class Host:
    """One machine with a clone of its own; `boot` starts a program there, and may be called again once it is down."""

    def __init__(self, folder: Path, name: str, remote: Path) -> None:
        self.name = name
        self.home = folder / name
        self.clone = self.home / "clone"
        self.state = self.home / "state"
        self.home.mkdir()
        git(self.home, "clone", "-q", str(remote), "clone")
        git(self.clone, "config", "user.name", name)
        git(self.clone, "config", "user.email", f"{name}@example.test")
        consent(self.clone, self.home)
        self._boots = 0
        self._power: int | None = None

    @property
    def process(self) -> int:
        """The process that the machine's spaces belong to."""
        assert self._power is not None
        return self._power

    def boot(self, program: Callable[[], object]) -> None:
        """Start the machine with one program; it goes down with it, and with everything that it started."""
        self._boots += 1
        self._power = os.fork()
        if self._power == 0:
            try:
                _apart()
                first = os.fork()
                if first == 0:
                    self._begin(program)
                signal.signal(signal.SIGTERM, lambda *_: os.kill(first, signal.SIGKILL))
                os._exit(_code(os.waitpid(first, 0)[1]))
            finally:
                os._exit(99)

    def _begin(self, program: Callable[[], object]) -> None:
        """Be the first process of a new space of processes: when it ends, the kernel kills all others."""
        try:
            _ok(_libc.prctl(_DIES_WITH_PARENT, signal.SIGKILL))
            _ok(_libc.sethostname(self.name.encode(), len(self.name)))
            _ok(_libc.mount(b"proc", b"/proc", b"proc", 0, None))
            self._cover("/proc/sys/kernel/random/boot_id", f"{self.name}-{self._boots}")
            self._cover("/etc/machine-id", f"{self.name:0<32}")
            os.environ["HOME"] = str(self.home)
            os._exit(_alone(program))
        finally:
            os._exit(98)

    def _cover(self, path: str, text: str) -> None:
        own = self.home / Path(path).name
        own.write_text(text + "\n", encoding="ascii")
        _ok(_libc.mount(os.fsencode(own), path.encode(), None, _BIND, None))

    def wait(self, seconds: float = 60.0) -> int:
        """Wait until the machine is down; give how its program ended. One that takes too long is cut off."""
        assert self._power is not None
        end = time.monotonic() + seconds
        while (done := os.waitpid(self._power, os.WNOHANG))[0] == 0:
            if time.monotonic() > end:
                self.cut()
                end += 10
            time.sleep(0.005)
        return _code(done[1])

    def cut(self) -> None:
        """Cut the power: nothing that runs there gets to do anything more."""
        assert self._power is not None
        os.kill(self._power, signal.SIGTERM)


def _apart() -> None:
    """Leave the machine's spaces for new ones."""
    uid, gid = os.getuid(), os.getgid()
    _ok(_libc.unshare((_USER if uid else 0) | _MOUNT | _NAME | _PROCESSES | _NETWORK))
    if uid:
        Path("/proc/self/setgroups").write_text("deny", encoding="ascii")
        Path("/proc/self/uid_map").write_text(f"{uid} {uid} 1", encoding="ascii")
        Path("/proc/self/gid_map").write_text(f"{gid} {gid} 1", encoding="ascii")
    _ok(_libc.mount(b"none", b"/", None, _PRIVATE | _ALL_BELOW, None))


def _alone(program: Callable[[], object]) -> int:
    """Run a program as a process of its own, and everything that is left to the first process besides."""
    child = os.fork()
    if child == 0:
        try:
            program()
            os._exit(0)
        except BaseException:
            traceback.print_exc()
            raise
        finally:
            os._exit(97)
    while (done := os.wait())[0] != child:
        continue
    return _code(done[1])


def _code(status: int) -> int:
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else 128 - code


def _ok(code: int) -> None:
    if code:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
