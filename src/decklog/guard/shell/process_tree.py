"""The processes that came of one command: found by their ancestry, and by a mark that they all inherit."""

import os
from typing import TYPE_CHECKING

from decklog.core.processes import Identity, Stat, stat_of

if TYPE_CHECKING:
    from collections.abc import Iterator

MARK = "DECKLOG_PROCESS"


def everyone() -> "Iterator[Stat]":
    """Yield every process that can be seen."""
    for name in os.listdir("/proc"):
        if name.isdigit() and (found := stat_of(int(name))) is not None:
            yield found


def descendants(ancestor: int) -> list[Stat]:
    """List the living processes below one, children before grandchildren."""
    children: dict[int, list[Stat]] = {}
    for one in everyone():
        children.setdefault(one.parent, []).append(one)
    found: list[Stat] = []
    pending = [ancestor]
    while pending:
        for child in children.get(pending.pop(), ()):
            pending.append(child.pid)
            found.append(child)
    return [one for one in found if not one.is_dead]


def carriers(mark: str) -> list[Stat]:
    """List the living processes that carry a mark in the environment they were started with.

    This finds what has left its process group and lost its parents. A process started with an environment wiped clean does
    not carry it, nor can one of another user be read.
    """
    wanted = f"{MARK}={mark}".encode()
    return [one for one in everyone() if not one.is_dead and wanted in _environment(one.pid)]


def _environment(pid: int) -> list[bytes]:
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            return file.read().split(b"\0")
    except OSError:
        # Gone meanwhile, or not ours to look at.
        return []


def strike(members: list[Stat], number: int) -> int:
    """Send a signal to each of these very processes; say how many got it."""
    hit = 0
    for member in members:
        identity = Identity.of(member.pid)
        if identity is not None and identity.ticks == member.ticks:
            hit += identity.send(number)
    return hit
