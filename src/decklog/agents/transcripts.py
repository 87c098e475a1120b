"""Reader of JSON Lines files that programs write: growing, cut off at the end, with unreadable lines."""

import errno
import glob
import json
import os
import stat
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from hashlib import sha256
from typing import IO, Any

from decklog.agents.programs.claude import transcripts_below
from decklog.agents.spool import Spool
from decklog.core.errors import NotFound
from decklog.log import Decklog

# Lines have some thousand characters; a smaller buffer would split nearly each of them.
_READ_AT_ONCE = 256 * 1024


def lines_of(
    path: str,
    start: int = 0,
    unread: Callable[[], None] | None = None,
    has_events: Callable[[bytes], object] | None = None,
) -> Iterator[tuple[dict[str, Any], int]]:
    """Yield the complete lines of a file that are JSON objects, from an offset on, each with its end offset.

    An object that `has_events` rejects is not parsed and is yielded as an empty dict.
    """
    with opened(path) as file:
        size = file.seek(0, 2)
        # A file that became shorter is a different file.
        place = file.seek(start if start <= size else 0)
        for line in file:
            if not line.endswith(b"\n"):
                return
            place += len(line)
            if has_events is not None and line.startswith(b"{") and line.endswith(b"}\n") and not has_events(line):
                yield {}, place
                continue
            try:
                found = json.loads(line)
            except (ValueError, RecursionError):
                found = None
            if isinstance(found, dict):
                yield found, place
            elif unread is not None and line.strip():
                unread()


def opened(path: str) -> IO[bytes]:
    """Open a regular file. Other programs supply the path, and a pipe or a device would never end."""
    # Without O_NONBLOCK, opening a pipe waits for a writer.
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "no plain file", path)
    return open(descriptor, "rb", _READ_AT_ONCE)


# Read positions

# Mark of the entry that was the newest when marks were last stored.
_WITNESS = os.path.join("log", "witness")
# Lines end with ids and times, so that no other file has the same bytes at the same offset.
_COMPARED_BYTES = 256


# Mark fields of a session that is recorded in a named run.
OF_A_RUN = ("session", "run", "task")


class ReadMarks:
    """Read positions for one log. Each has the log's age, which changes when the log is replaced."""

    def __init__(self, spool: Spool, age: str, program: str | None = None) -> None:
        """Create the marks. Set `program` if the user named the files, which may be another program's."""
        self._spool = spool
        self.age = age
        self._program = program
        self._own = {"age": age} if program is None else {"age": age, "program": program}

    def of(self, path: str) -> dict[str, Any]:
        """Return the mark of a file; empty if the file or the log has changed."""
        mark = self._spool.mark(path)
        # A reader for another program has not read this program's events.
        is_anothers = self._program is not None and mark.get("program", self._program) != self._program
        if mark.get("age", "") != self.age or is_anothers:
            return {}
        return mark if "end" not in mark or mark["end"] == _end_of(path, mark["place"]) else {}

    def after(self, path: str, place: int, kept: dict[str, Any] | None = None) -> dict[str, Any]:
        """Return the mark of a file that was read up to an offset."""
        return {"place": place, "kept": kept, **self._own, "end": _end_of(path, place)}

    def of_state(self, state: int) -> dict[str, Any]:
        """Return the mark of a database, which has a modification time instead of an offset."""
        return {"place": state, **self._own}


def age_of(log: Decklog, spool: Spool) -> str:
    """Return the age that valid marks must have; a new one if the log lacks the witness entry."""
    known = spool.mark(_WITNESS)
    if not known:
        return ""
    try:
        is_there = log.journal.get(str(known.get("entry"))).hash == known.get("hash")
    except NotFound:
        is_there = False
    return str(known.get("age", "")) if is_there else os.urandom(16).hex()


def store_witness(log: Decklog, spool: Spool, age: str, run_id: str | None) -> None:
    """Store the newest entry of a run as the witness; do nothing for a run without entries."""
    with suppress(NotFound):
        for entry in log.journal.find(run_id, limit=1) if run_id is not None else ():
            spool.set_mark(_WITNESS, {"age": age, "entry": entry.id, "hash": entry.hash})


def _end_of(path: str, place: int) -> str | None:
    """Return a digest of the bytes before an offset; None if the file is missing or shorter."""
    if not place:
        # The mark of a future file only names its run.
        return ""
    with suppress(OSError, ValueError), opened(path) as file:
        size = min(place, _COMPARED_BYTES)
        found = os.pread(file.fileno(), size, place - size)
        return sha256(found).hexdigest()[:16] if len(found) == size else None
    return None


# Files of a session


def find_session_transcripts(program: str, session: str, facts: Mapping[str, Any]) -> list[tuple[str, str | None]]:
    """Return the existing files of a session, each with the id of its sub-agent."""
    home, folder = facts.get("home"), facts.get("cwd")
    if not isinstance(home, str) or not session or os.sep in session:
        return []
    if program == "codex":
        pattern = os.path.join(glob.escape(home), "sessions", "*", "*", "*", f"rollout-*-{glob.escape(session)}.jsonl")
        return [(path, None) for path in sorted(glob.glob(pattern))]
    # Claude Code names the folder of its sessions after the project's path.
    name = "".join(character if character.isascii() and character.isalnum() else "-" for character in str(folder))
    path = os.path.join(home, "projects", name, f"{session}.jsonl")
    if not os.path.isfile(path):
        return []
    return [(path, None), *transcripts_below(path)]
