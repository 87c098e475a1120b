"""Sessions as programs kept them in files of their own, from before there were hooks or while there were none.

What hooks told, or an import before, is known by the programs' own ids and not written again. A file that has not grown since
is not read again.
"""

import json
import os
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from decklog.agents import claude
from decklog.agents.events import IMPORTED, Ended
from decklog.agents.lines import lines_of
from decklog.agents.programs import program as known_program
from decklog.agents.reading import Reading
from decklog.agents.recorder import Recorder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from decklog.agents.events import Event
    from decklog.agents.reading import Sums
    from decklog.agents.spool import Spool
    from decklog.app import Decklog

# So many events are written together.
_BATCH = 500
_BELOW = os.sep + "subagents" + os.sep


@dataclass
class Imported:
    """What came of an import: files read, files that had not grown, events by their kind, entries and charges that were new."""

    path: str
    dry_run: bool = False
    files: int = 0
    unchanged: int = 0
    unread: int = 0
    events: Counter[str] = field(default_factory=Counter)
    new: int = 0

    def as_dict(self) -> dict[str, Any]:
        events = dict(sorted(self.events.items()))
        rest = {"files": self.files, "unchanged": self.unchanged, "unread": self.unread, "new": self.new}
        return {"path": self.path, "dry_run": self.dry_run, **rest, "events": events}


class HistoryImport:
    """Reads every session of a program below a folder, or one file."""

    def __init__(
        self,
        log: "Decklog",
        program: str,
        source: str,
        spool: "Spool",
        *,
        dry_run: bool = False,
        progress: "Callable[[str, int, int], None] | None" = None,
    ) -> None:
        self._log = log
        self._name = program
        self._program = known_program(program)
        self._source = source
        self._spool = spool
        self._progress = progress
        self.result = Imported(source, dry_run)
        # The lines that a fork begins with are those of the session it was made of, in the same folder.
        self._seen: dict[str, set[int]] = {}

    def run(self) -> Imported:
        """Take in what is new."""
        files = sorted(_files(self._source), key=_begun_at)
        for number, path in enumerate(files, 1):
            if _BELOW not in path:
                self._take_in(path)
            if self._progress:
                self._progress("files", number, len(files))
        for path in files:
            # Those of sessions whose own file is gone.
            if _BELOW in path:
                self._take_in(path)
        return self.result

    def _take_in(self, path: str) -> None:
        mark, size = self._spool.mark(path), os.stat(path).st_size
        if mark.get("place") == size:
            self.result.unchanged += 1
            return
        self.result.files += 1
        if not mark:
            self._remember_folder(os.path.dirname(path))
        marks: dict[str, dict[str, Any]] = {}
        batch: list[Event] = []
        for event in self._events(path, mark, marks):
            self.result.events[type(event).__name__.lower()] += 1
            batch.append(event)
            if len(batch) >= _BATCH:
                self._write(batch)
                batch.clear()
        self._write(batch)
        if not self.result.dry_run:
            # After the last commit: one who is killed before this reads the file again, and adds nothing twice.
            for each, kept in marks.items():
                self._spool.set_mark(each, kept)

    def _write(self, batch: "list[Event]") -> None:
        if self.result.dry_run or not batch:
            return
        with self._log.transaction():
            recorder = Recorder(self._log, self._name)
            recorder.record(batch)
        self.result.new += recorder.written

    def _events(self, path: str, mark: dict[str, Any], marks: dict[str, dict[str, Any]]) -> "Iterator[Event]":
        place = int(mark.get("place") or 0)
        reading = Reading(
            session_id=_session_above(path),
            agent_id=_agent_of(path),
            kept=mark.get("kept"),
            below=lambda: self._below(path, marks),
        )
        reader = self._program.reader(reading)
        last: Event | None = None
        for line, end in lines_of(path, place, self._unread):
            for event in () if self._is_copied(path, line, reading) else reader.events(line):
                yield event
                last = event
            place = end
        yield from reader.rest()
        if last is not None:
            # Nothing in the file says that the session is over; one that goes on is taken up again by whoever tells of it.
            yield Ended(session_id=last.session_id, agent_id=last.agent_id, at=last.at, reason=IMPORTED)
        marks[path] = {"place": place, "kept": reader.kept()}

    def _below(self, path: str, marks: dict[str, dict[str, Any]]) -> "Iterator[Event | Sums]":
        for below, _ in claude.transcripts_below(path):
            yield from self._events(below, marks.get(below) or self._spool.mark(below), marks)
            kept = marks[below]["kept"] or {}
            yield kept.get("answers") or {}

    def _is_copied(self, path: str, line: dict[str, Any], reading: Reading) -> bool:
        """Say whether a line is known from another file; remember it otherwise."""
        uuid = line.get("uuid")
        if not isinstance(uuid, str):
            return False
        seen = self._seen.setdefault(os.path.dirname(path), set())
        if (number := hash(uuid)) in seen:
            reading.is_fork = True
            return True
        seen.add(number)
        return False

    def _remember_folder(self, folder: str) -> None:
        """Know the lines of files that an earlier import has read: a new file may begin with them."""
        if folder in self._seen:
            return
        self._seen[folder] = set()
        for name in os.listdir(folder):
            path = os.path.join(folder, name)
            if name.endswith(".jsonl") and (end := self._spool.mark(path).get("place")):
                for line, place in lines_of(path):
                    self._is_copied(path, line, Reading())
                    if place >= end:
                        break

    def _unread(self) -> None:
        self.result.unread += 1


def _files(source: str) -> "Iterator[str]":
    if os.path.isfile(source):
        yield source
        return
    for folder, _, names in os.walk(source):
        yield from (os.path.join(folder, name) for name in sorted(names) if name.endswith(".jsonl"))


def _begun_at(path: str) -> tuple[str, str]:
    """Give the first moment that a file tells of: a fork's own is later than that of the session it was made of."""
    with open(path, "rb") as file:
        for line in file:
            try:
                found = json.loads(line)
            except ValueError:
                continue
            if isinstance(found, dict) and isinstance(at := found.get("timestamp"), str):
                return at, path
    return "", path


def _agent_of(path: str) -> str | None:
    return os.path.basename(path).removeprefix("agent-").removesuffix(".jsonl") if _BELOW in path else None


def _session_above(path: str) -> str | None:
    return os.path.basename(path.partition(_BELOW)[0]) if _BELOW in path else None
