"""Who a process is: more than its number, which the system gives to a stranger once the process is gone."""

import json
import os
import signal
from dataclasses import asdict, dataclass
from functools import lru_cache

from decklog.errors import Unavailable


@dataclass(frozen=True)
class Stat:
    """What the kernel says of a process at one moment."""

    pid: int
    name: str
    state: str
    parent: int
    group: int
    session: int
    ticks: int

    @property
    def is_dead(self) -> bool:
        """Whether only its entry in the table is left."""
        return self.state in "ZXx"


def stat_of(pid: int) -> Stat | None:
    """Look a process up; None when there is none with this number."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            text = file.read()
    except (FileNotFoundError, ProcessLookupError):
        return None
    # The name stands in parentheses and may hold any character, parentheses too.
    head, _, tail = text.rpartition(")")
    fields = tail.split()
    name = head.partition("(")[2]
    return Stat(pid, name, fields[0], int(fields[1]), int(fields[2]), int(fields[3]), int(fields[19]))


@lru_cache(maxsize=1)
def _boot_id() -> str:
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            return file.read().strip()
    except OSError:
        raise Unavailable("Processes can't be identified: there is no /proc", hint="Use Linux with /proc mounted.") from None


def _pid_space() -> str:
    try:
        return os.readlink("/proc/self/ns/pid")
    except OSError:
        return ""


@dataclass(frozen=True)
class Identity:
    """A process: its number, when it started, and the boot, the host and the space of numbers that it is one of."""

    pid: int
    ticks: int
    boot_id: str
    pid_space: str
    host: str

    @classmethod
    def of(cls, pid: int) -> "Identity | None":
        """Identify a living process; None when there is none with this number."""
        found = stat_of(pid)
        if found is None or found.is_dead:
            return None
        return cls(pid, found.ticks, _boot_id(), _pid_space(), os.uname().nodename)

    @classmethod
    def own(cls) -> "Identity":
        """Identify this process."""
        found = cls.of(os.getpid())
        assert found is not None
        return found

    @classmethod
    def from_text(cls, text: str) -> "Identity":
        """Read what `as_text` wrote."""
        return cls(**json.loads(text))

    def as_text(self) -> str:
        """Write the identity down for a record."""
        return json.dumps(asdict(self), sort_keys=True)

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
