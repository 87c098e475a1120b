"""Who a process is: more than its number, which the system gives to a stranger once the process is gone.

The supervisor of a command imports this, so it stays with what costs nothing to import.
"""

import json
import os
import signal
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Any


class Stat:
    """What the kernel says of a process at one moment."""

    __slots__ = ("group", "name", "parent", "pid", "session", "state", "ticks")

    def __init__(self, pid: int, text: str) -> None:
        # The name stands in parentheses and may hold any character, parentheses too.
        head, _, tail = text.rpartition(")")
        fields = tail.split()
        self.pid = pid
        self.name = head.partition("(")[2]
        self.state = fields[0]
        self.parent, self.group, self.session = (int(field) for field in fields[1:4])
        self.ticks = int(fields[19])

    def __repr__(self) -> str:
        return f"Stat({self.pid}, {self.name!r}, {self.state})"

    @property
    def is_dead(self) -> bool:
        """Whether only its entry in the table is left."""
        return self.state in "ZXx"


def stat_of(pid: int) -> Stat | None:
    """Look a process up; None when there is none with this number."""
    try:
        return Stat(pid, _told(f"/proc/{pid}/stat"))
    except (FileNotFoundError, ProcessLookupError):
        return None


def _told(path: str) -> str:
    """Read what the kernel tells in a few words; a file object takes five times as many calls for it."""
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(handle, 4096).decode("utf-8", "replace")
    finally:
        os.close(handle)


def _boot_id() -> str:
    return _told("/proc/sys/kernel/random/boot_id").strip()


def _pid_space() -> str:
    try:
        return os.readlink("/proc/self/ns/pid")
    except OSError:
        return ""


class Identity:
    """A process: its number, when it started, and the boot, the host and the space of numbers that it is one of."""

    __slots__ = ("boot_id", "host", "pid", "pid_space", "ticks")

    def __init__(self, *, pid: int, ticks: int, boot_id: str, pid_space: str, host: str) -> None:
        self.pid = pid
        self.ticks = ticks
        self.boot_id = boot_id
        self.pid_space = pid_space
        self.host = host

    @classmethod
    def of(cls, pid: int) -> "Identity | None":
        """Identify a living process; None when there is none with this number."""
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

            raise Unavailable("Processes can't be identified: there is no /proc", hint="Use Linux with /proc mounted.")
        return found

    @classmethod
    def from_text(cls, text: str) -> "Identity":
        """Read what `as_text` wrote."""
        facts: dict[str, Any] = json.loads(text)
        return cls(**facts)

    def as_text(self) -> str:
        """Write the identity down for a record."""
        return json.dumps({name: getattr(self, name) for name in self.__slots__})

    @property
    def is_visible(self) -> bool:
        """Whether this process would see that one, were it alive."""
        return self.boot_id == _boot_id() and self.pid_space == _pid_space()

    def is_alive(self) -> bool | None:
        """Say whether the process still runs; None when it can't be seen from here."""
        if self.is_visible:
            found = stat_of(self.pid)
            return found is not None and not found.is_dead and found.ticks == self.ticks
        if self.host == os.uname().nodename and self.boot_id != _boot_id():
            # The same machine has started anew since: nothing of then is left.
            return False
        return None

    def send(self, number: int) -> bool:
        """Send a signal to this very process; say whether it was there to get it."""
        try:
            handle = os.pidfd_open(self.pid)
        except OSError:
            return False
        try:
            # The handle pins whoever has the number now, so what is checked is what gets the signal.
            if not self.is_alive():
                return False
            signal.pidfd_send_signal(handle, number)
        except OSError:
            return False
        else:
            return True
        finally:
            os.close(handle)
