"""Open connections between editors and agents: one file each in the spool, locked while its process lives.

Intake closes the sessions of a process that is gone, even after a crash.
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
# Larger than any line number: the end follows all lines.
_LAST = 2**53


class Connection:
    """File of one connection in a spool: it lists the sessions that the connection reports."""

    def __init__(self, folder: str, name: str) -> None:
        os.makedirs(folder, mode=0o700, exist_ok=True)
        self._path = os.path.join(folder, f"{name}{_SUFFIX}")
        fresh = f"{self._path}.new"
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
        self._file = os.open(fresh, flags, 0o600)
        # Lock the file before it is visible: an unlocked file means that the connection has ended.
        fcntl.flock(self._file, fcntl.LOCK_EX)
        os.rename(fresh, self._path)

    def add(self, program: str, session: str, facts: "dict[str, Any]") -> None:
        """Add a session, with the facts to record when the connection ends."""
        line = json.dumps({"program": program, "session": session, "facts": facts})
        os.write(self._file, line.encode() + b"\n")


def has_ended(spool: "Spool") -> bool:
    """Return whether a connection has ended and was not closed yet."""
    return next(_ended(spool.folder), None) is not None


def close_ended(spool: "Spool") -> None:
    """Append an end event for each session of a connection whose process is gone. Repeats are dropped on intake."""
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
