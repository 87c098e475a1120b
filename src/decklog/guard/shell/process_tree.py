"""Find the processes of a command by their ancestry and by an inherited environment variable."""

import os
from collections.abc import Iterator

from decklog.core.processes import Identity, Stat, stat_of

MARK = "DECKLOG_PROCESS"


def all_processes() -> Iterator[Stat]:
    """Yield all visible processes."""
    for name in os.listdir("/proc"):
        if name.isdigit() and (found := stat_of(int(name))) is not None:
            yield found


def find_descendants(ancestor: int) -> list[Stat]:
    """List the live descendants of a process, children before grandchildren."""
    children: dict[int, list[Stat]] = {}
    for one in all_processes():
        children.setdefault(one.parent, []).append(one)
    found: list[Stat] = []
    pending = [ancestor]
    while pending:
        for child in children.get(pending.pop(), ()):
            pending.append(child.pid)
            found.append(child)
    return [one for one in found if not one.is_dead]


def find_marked_processes(mark: str) -> list[Stat]:
    """List the live processes with a mark in their initial environment.

    This also finds processes that left their group or lost their parents. Processes of other users, or with a cleared
    environment, are not found.
    """
    wanted = f"{MARK}={mark}".encode()
    return [one for one in all_processes() if not one.is_dead and wanted in _environment(one.pid)]


def _environment(pid: int) -> list[bytes]:
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            return file.read().split(b"\0")
    except OSError:
        # The process has ended, or it belongs to another user.
        return []


def send_signal(members: list[Stat], number: int) -> int:
    """Send a signal to these processes, unless their numbers were reused; return how many received it."""
    count = 0
    for member in members:
        identity = Identity.of(member.pid)
        if identity is not None and identity.ticks == member.ticks:
            count += identity.send(number)
    return count
