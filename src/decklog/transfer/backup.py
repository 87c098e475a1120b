"""A copy of a log as it is at one moment, taken while others write it."""

import os
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from decklog.core.clock import to_text
from decklog.core.errors import Conflict
from decklog.db.sqlite.backup import publish
from decklog.transfer.move import Move, is_same
from decklog.transfer.progress import Progress, silent
from decklog.transfer.unfinished import sweep, working_on

if TYPE_CHECKING:
    from typing import Any

    from decklog.log import Decklog


@dataclass(kw_only=True)
class BackedUp:
    """The copy, and how far it goes."""

    path: str
    bytes: int
    streams: int
    entries: int

    def as_dict(self) -> "dict[str, Any]":
        return asdict(self)


def default_path(log: "Decklog") -> str:
    """Name a new backup: next to a SQLite log, in the present folder for a server."""
    moment = to_text(log.clock.now())[:19].replace(":", "")
    folder = os.path.dirname(log.db.target) if log.db.engine == "sqlite" else os.getcwd()
    return os.path.join(folder, f"decklog-{moment}Z.backup.db")


def back_up(log: "Decklog", path: str | None = None, *, overwrite: bool = False, progress: Progress = silent) -> BackedUp:
    """Write a consistent copy as a SQLite file that only its owner can read.

    An existing file is kept, unless `overwrite` is set.
    """
    path = os.path.abspath(path or default_path(log))
    if os.path.lexists(path) and (not overwrite or is_same(path, log.db.target)):
        raise Conflict(f"{path} is there already, and was left as it is", hint="Name another file.", path=path)
    os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
    sweep(os.path.dirname(path))
    partial = f"{path}.{os.getpid()}.partial"
    with working_on(partial):
        try:
            log.db.back_up(partial, lambda done, whole: progress("backing up pages", done, whole))
            streams, entries = _extent(log, partial, progress)
            publish(partial, path, overwrite=overwrite)
        finally:
            _remove(partial)
    return BackedUp(path=path, bytes=os.path.getsize(path), streams=streams, entries=entries)


def _extent(log: "Decklog", partial: str, progress: Progress) -> tuple[int, int]:
    """Return how far a copy goes. What a server holds is moved into it first, all from one moment."""
    from decklog.log import Decklog

    if log.db.engine != "sqlite":
        with Decklog.open(partial, clock=log.clock) as copy:
            moved = log.db.read(lambda: Move(log, copy, progress).run())
        return moved.streams, moved.verified
    with Decklog.open(partial, clock=log.clock, read_only=True) as copy:
        heads = copy.journal.heads()
    return len(heads), sum(head["seq"] for head in heads)


def _remove(partial: str) -> None:
    for name in (partial, f"{partial}-journal", f"{partial}-wal", f"{partial}-shm", f"{partial}-lock"):
        if os.path.lexists(name):
            os.unlink(name)
