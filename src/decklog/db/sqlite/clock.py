"""Clock of a SQLite log: the machine's time, which people can set; leases use the time since boot."""

import os
import time
from contextlib import suppress
from datetime import datetime, timedelta
from functools import cache

from decklog.core.clock import Clock, from_text, to_text


class BootClock(Clock):
    """Returns the machine's time, and for leases the boot time plus the time since boot.

    The first process after a boot stores the boot time in a file next to the lock, for all processes that use the log.
    It is valid only on this machine, and no part of the log.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._started: datetime | None = None

    def steady(self) -> datetime:
        boot = boot_id()
        if boot is None:
            return self.now()
        if self._started is None:
            self._started = self._agreed(boot)
        return self._started + _since_start()

    def _agreed(self, boot: str) -> datetime:
        """Load the boot time of this boot, or store it for later processes."""
        started = self.now() - _since_start()
        try:
            file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        except OSError:
            return _read_boot_time(self._path, boot) or started  # a read-only user takes no lease
        try:
            if (said := _read_boot_time(self._path, boot)) is not None:
                return said
            # If two processes append at the same time, the first line counts. A full disk may have cut the line before.
            os.write(file, f"\n{boot} {to_text(started)}\n".encode())
            return _read_boot_time(self._path, boot) or started
        except OSError:
            return started  # a full disk: readers continue, and nobody can take a lease
        finally:
            os.close(file)


def _read_boot_time(path: str, boot: str) -> datetime | None:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            lines = [line.split() for line in file]
    except OSError:
        return None
    for line in lines:
        if len(line) == 2 and line[0] == boot:
            with suppress(ValueError):
                return from_text(line[1])
    return None


def _since_start() -> timedelta:
    return timedelta(seconds=time.clock_gettime(time.CLOCK_BOOTTIME))


@cache
def boot_id() -> str | None:
    """Name this start of the machine, as those see it who share its clock; None where it is unknown."""
    if not hasattr(time, "CLOCK_BOOTTIME"):
        return None
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="utf-8") as file:
            boot = file.read().strip()
        # A container may have its own time.
        return f"{boot}/{os.readlink('/proc/self/ns/time')}"
    except OSError:
        return None
