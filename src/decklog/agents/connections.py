"""Connections between editors and agents that are open: a file each beside what waits, locked for as long as its process lives.

Whoever takes events in closes the sessions of a process that is gone, however it went.
"""

import fcntl
import json
import os
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from decklog.agents.spool import Spool

_SUFFIX = ".open"
# A number that no line reaches: the end comes after all of them.
_LAST = 2**53


class Connection:
    """The file of one connection beside one log: it names the sessions that are told of there."""

    def __init__(self, folder: str, name: str) -> None:
        os.makedirs(folder, mode=0o700, exist_ok=True)
        self._path = os.path.join(folder, f"{name}{_SUFFIX}")
        fresh = f"{self._path}.new"
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
        self._file = os.open(fresh, flags, 0o600)
        # Locked before anybody can see it: one that is not locked is over.
        fcntl.flock(self._file, fcntl.LOCK_EX)
        os.rename(fresh, self._path)

    def add(self, program: str, session: str, facts: "dict[str, Any]") -> None:
        """Name a session, with what is to be said of it when the connection ends."""
        line = json.dumps({"program": program, "session": session, "facts": facts})
        os.write(self._file, line.encode() + b"\n")


def has_ended(spool: "Spool") -> bool:
    """Return whether there are connections that ended and were not closed."""
    return next(_ended(spool.folder), None) is not None


def close_ended(spool: "Spool") -> None:
    """Say of each session of a connection whose process is gone that it is over; what is told twice here is heard once."""
    for path, lines in _ended(spool.folder):
        for line in lines:
            with suppress(ValueError, KeyError, TypeError, RecursionError):
                told = json.loads(line)
                facts = told["facts"]
                end = {**facts, "acp": {**facts["acp"], "n": _LAST, "end": True}}
                spool.append(told["program"], told["session"], end, b"{}", is_synced=True)
        with suppress(FileNotFoundError):
            os.unlink(path)


def _ended(folder: str) -> "Iterator[tuple[str, list[bytes]]]":
    names: list[str] = []
    with suppress(FileNotFoundError):
        names = sorted(name for name in os.listdir(folder) if name.endswith(_SUFFIX))
    for name in names:
        path = os.path.join(folder, name)
        with suppress(FileNotFoundError, BlockingIOError), open(path, "rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            yield path, file.read().splitlines()
