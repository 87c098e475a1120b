"""Identify processes, also after their numbers were reused.

The supervisor of a command imports this, so it imports nothing that is slow.
"""

import json
import os
import signal
from typing import NamedTuple

_HAS_PROC = os.path.exists("/proc/self/stat")


class Stat(NamedTuple):
    """State of a process at one moment, as the system reports it."""

    pid: int
    name: str
    state: str
    parent: int
    group: int
    session: int
    # When it started, in a unit that is the same for all processes of this machine.
    ticks: int

    @property
    def is_dead(self) -> bool:
        """Whether only its entry in the table is left."""
        return self.state in "ZXx"


def stat_of(pid: int) -> Stat | None:
    """Return the state of a process; None if there is none with this number."""
    return _stat_from_proc(pid) if _HAS_PROC else _stat_from_ps(pid)


def _stat_from_proc(pid: int) -> Stat | None:
    try:
        text = _read_proc(f"/proc/{pid}/stat")
    except (FileNotFoundError, ProcessLookupError):
        return None
    # The name is in parentheses and may contain any character, parentheses too.
    head, _, tail = text.rpartition(")")
    fields = tail.split()
    parent, group, session = (int(field) for field in fields[1:4])
    return Stat(pid, head.partition("(")[2], fields[0], parent, group, session, int(fields[19]))


def _stat_from_ps(pid: int) -> Stat | None:
    """Run ps where there is no /proc, as on macOS. Start times have a resolution of one second there."""
    import subprocess
    import time

    words = ["ps", "-o", "state=,ppid=,pgid=,sess=,lstart=,comm=", "-p", str(pid)]
    environment = {**os.environ, "LC_ALL": "C"}
    done = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=10, check=False)
    fields = done.stdout.split()
    if done.returncode != 0 or len(fields) < 9:
        return None
    started = time.mktime(time.strptime(" ".join(fields[4:9]), "%a %b %d %H:%M:%S %Y"))
    # On macOS the session is an address, and of no use here.
    session = int(fields[3]) if fields[3].isdigit() else 0
    return Stat(pid, " ".join(fields[9:]), fields[0][0], int(fields[1]), int(fields[2]), session, int(started))


def _read_proc(path: str) -> str:
    """Read a small file of /proc with one system call."""
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(handle, 4096).decode("utf-8", "replace")
    finally:
        os.close(handle)


def _boot_id() -> str:
    """Return the id of this boot; the name of the machine where there is no /proc, as on macOS."""
    try:
        return _read_proc("/proc/sys/kernel/random/boot_id").strip()
    except OSError:
        return os.uname().nodename


def _pid_space() -> str:
    try:
        return os.readlink("/proc/self/ns/pid")
    except OSError:
        return ""


class Identity(NamedTuple):
    """A process: its number and start time, and the boot, the host and the PID namespace that it runs in."""

    boot_id: str
    host: str
    pid: int
    pid_space: str
    ticks: int

    @classmethod
    def of(cls, pid: int) -> "Identity | None":
        """Identify a running process; None if there is none with this number."""
        found = stat_of(pid)
        if found is None or found.is_dead:
            return None
        return cls(pid=pid, ticks=found.ticks, boot_id=_boot_id(), pid_space=_pid_space(), host=os.uname().nodename)

    @classmethod
    def own(cls) -> "Identity":
        """Identify this process."""
        found = cls.of(os.getpid())
        if found is None:
            from decklog.core.errors import Unavailable

            raise Unavailable("this process can't be identified", hint="Mount /proc, or install the program ps.")
        return found

    @classmethod
    def from_text(cls, text: str) -> "Identity":
        """Parse the output of `as_text`."""
        return cls(**json.loads(text))

    def as_text(self) -> str:
        """Return the identity as JSON."""
        return json.dumps(self._asdict())

    @property
    def is_visible(self) -> bool:
        """Whether this process could see the other one if it ran."""
        return self.boot_id == _boot_id() and self.pid_space == _pid_space()

    def is_alive(self) -> bool | None:
        """Return whether the process still runs; None if it can't be seen from here."""
        if self.is_visible:
            found = stat_of(self.pid)
            return found is not None and not found.is_dead and found.ticks == self.ticks
        if self.host == os.uname().nodename and self.boot_id != _boot_id():
            # The machine was rebooted since.
            return False
        return None

    def send(self, number: int) -> bool:
        """Send a signal to exactly this process; return False if it is gone."""
        if not hasattr(os, "pidfd_open"):
            return self._send_by_number(number)
        try:
            handle = os.pidfd_open(self.pid)
        except OSError:
            return False
        try:
            # Check after opening the handle, so that the signal goes to the process that was checked.
            if not self.is_alive():
                return False
            signal.pidfd_send_signal(handle, number)
        except OSError:
            return False
        else:
            return True
        finally:
            os.close(handle)

    def _send_by_number(self, number: int) -> bool:
        """Send a signal without a handle: the number could be reused between check and signal."""
        if not self.is_alive():
            return False
        try:
            os.kill(self.pid, number)
        except OSError:
            return False
        return True
