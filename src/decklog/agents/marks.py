"""How far programs' own files were read: as long as they are the same files, and the log has what was read of them.

A file may be written anew, and a log may be replaced or go back to a backup. Then nothing holds that was remembered, and all is
read again: what is known is not written twice.
"""

import os
from contextlib import suppress
from hashlib import sha256
from typing import TYPE_CHECKING

from decklog.agents.lines import opened
from decklog.core.errors import NotFound

if TYPE_CHECKING:
    from typing import Any

    from decklog.agents.spool import Spool
    from decklog.log import Decklog

# The entry that was the newest when something was last remembered; it is kept like the rest.
_WITNESS = os.path.join("log", "witness")
# Lines end with ids and moments, so that no other file has the same bytes in the same place.
_COMPARED_BYTES = 256


# Where a session is recorded that was named a run of others'.
OF_A_RUN = ("session", "run", "task")


class ReadMarks:
    """What is remembered beside one log. All of it has the log's age, which is another as soon as the log is."""

    def __init__(self, spool: "Spool", age: str, program: str | None = None) -> None:
        """Take the program as whose files they are read, where somebody names them: they may be another's."""
        self._spool = spool
        self.age = age
        self._program = program
        self._own = {"age": age} if program is None else {"age": age, "program": program}

    def of(self, path: str) -> "dict[str, Any]":
        """Return how far a file was read and what reading on needs to know; nothing when it is not the same any more."""
        mark = self._spool.mark(path)
        # Who took it for another program's has read nothing of it.
        is_anothers = self._program is not None and mark.get("program", self._program) != self._program
        if mark.get("age", "") != self.age or is_anothers:
            return {}
        return mark if "end" not in mark or mark["end"] == _end_of(path, mark["place"]) else {}

    def after(self, path: str, place: int, kept: "dict[str, Any] | None" = None) -> "dict[str, Any]":
        """Return what is to be remembered of a file that was read up to a place."""
        return {"place": place, "kept": kept, **self._own, "end": _end_of(path, place)}

    def of_state(self, state: int) -> "dict[str, Any]":
        """Return what is to be remembered of a database, which has no place: how it stood."""
        return {"place": state, **self._own}


def age_of(log: "Decklog", spool: "Spool") -> str:
    """Return the age that what is remembered must have: a new one when the log has not the entry that it had then."""
    known = spool.mark(_WITNESS)
    if not known:
        return ""
    try:
        is_there = log.journal.get(str(known.get("entry"))).hash == known.get("hash")
    except NotFound:
        is_there = False
    return str(known.get("age", "")) if is_there else os.urandom(16).hex()


def bear_witness(log: "Decklog", spool: "Spool", age: str, run_id: str | None) -> None:
    """Remember the newest entry of a run that was just written to; one of which nothing could be written is none."""
    with suppress(NotFound):
        for entry in log.journal.find(run_id, limit=1) if run_id is not None else ():
            spool.set_mark(_WITNESS, {"age": age, "entry": entry.id, "hash": entry.hash})


def _end_of(path: str, place: int) -> str | None:
    """Return what stands before a place in a file; None where there is no such file, or it is shorter."""
    if not place:
        # Of a file that is yet to come it was told whose it will be.
        return ""
    with suppress(OSError, ValueError), opened(path) as file:
        size = min(place, _COMPARED_BYTES)
        found = os.pread(file.fileno(), size, place - size)
        return sha256(found).hexdigest()[:16] if len(found) == size else None
    return None
