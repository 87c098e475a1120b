"""Import of sessions from the files that programs keep, for times without hooks.

Events that hooks or an earlier import recorded have the same ids and are not written again. A file that has not grown is not read
again.
"""

import json
import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache, partial
from itertools import groupby
from typing import Any, NoReturn

from decklog.agents.entries import session_run_id
from decklog.agents.events import (
    IMPORTED,
    STOPPED,
    CallOutcome,
    SessionEnded,
    SessionEvent,
    ToolCalled,
    ToolReturned,
    TurnEnded,
)
from decklog.agents.programs import claude
from decklog.agents.programs import program as known_program
from decklog.agents.programs.base import TokenSums, TranscriptInput
from decklog.agents.recorder import Recorder
from decklog.agents.sessions import is_charged
from decklog.agents.spool import Spool
from decklog.agents.transcripts import OF_A_RUN, ReadMarks, age_of, lines_of, opened, store_witness
from decklog.core.errors import Conflict, Invalid, NotFound, Unavailable
from decklog.log import Decklog
from decklog.provenance.reconstructing import EditCall, Reconstruction, is_edit
from decklog.records.values import Values

Named = tuple[str, str | None]

# Number of events in a batch.
_BATCH = 1000
_DATABASE = ".db"
_ENDINGS = {"opencode": _DATABASE}
_BELOW = os.sep + "subagents" + os.sep
# Read at most this number of lines to find the session's folder.
_HEAD_LINES = 100
# Errors that are shown.
_SHOWN = 10


@dataclass
class HistorySummary:
    """Result of an import: files read, unchanged files, events by kind, and new entries and charges."""

    path: str
    dry_run: bool = False
    files: int = 0
    unchanged: int = 0
    unread: int = 0
    events: Counter[str] = field(default_factory=Counter)
    new: int = 0
    # Reconstructed edits of files.
    edits: int = 0
    # Sessions that were read.
    sessions: set[str] = field(default_factory=set)
    # Number of redacted secrets by kind.
    redacted: Counter[str] = field(default_factory=Counter)
    # Errors of files and events that could not be read or written.
    troubles: list[str] = field(default_factory=list)

    @property
    def warnings(self) -> list[str]:
        """The first errors, and the number of the others."""
        more = len(self.troubles) - _SHOWN
        return [*self.troubles[:_SHOWN], *([f"and {more} more"] if more > 0 else [])]

    def as_dict(self) -> dict[str, Any]:
        events = dict(sorted(self.events.items()))
        rest = {"files": self.files, "unchanged": self.unchanged, "unread": self.unread, "new": self.new}
        if self.dry_run:
            return {"path": self.path, "dry_run": True, **rest, "events": events}
        found = {"sessions": len(self.sessions), "edits": self.edits, "redacted": dict(self.redacted.most_common())}
        return {"path": self.path, "dry_run": False, **rest, "events": events, **found}


@dataclass
class EventBatch:
    """Events in order, with the calls among them that changed files, and the marks of their files."""

    events: list[SessionEvent] = field(default_factory=list)
    edits: list[EditCall] = field(default_factory=list)
    marks: dict[str, dict[str, Any]] = field(default_factory=dict)


def files_of(source: str, program: str, roots: Sequence[str] | None = None) -> list[str]:
    """List the session files below a folder, or one file, in reading order: files of sub-agents last.

    With `roots`, list only sessions that began in one of these folders or below.
    """
    # Absolute paths: the marks of what was read are kept by path.
    heads = {path: head_of(path) for path in _files(os.path.abspath(source), _ENDINGS.get(program, ".jsonl"))}
    wanted = [path for path, head in heads.items() if roots is None or head.is_in(roots)]
    files = sorted(wanted, key=lambda path: (heads[path].begun_at, path))
    return [*(path for path in files if _BELOW not in path), *(path for path in files if _BELOW in path)]


def _rest_of(path: str, place: int) -> int:
    try:
        size = os.stat(path).st_size
    except OSError:
        # The reader reports the error.
        return 0
    if path.endswith(_DATABASE):
        return 0 if place == _extent(path) else size
    return max(0, size - place)


def _extent(path: str) -> int:
    """Return the size of a file; for a database, which changes in place, its modification time."""
    if not path.endswith(_DATABASE):
        return os.stat(path).st_size
    return max(os.stat(name).st_mtime_ns for name in (path, f"{path}-wal") if os.path.exists(name))


class SessionFileReader:
    """Reader of the new events of files. It counts what it reads in a summary."""

    def __init__(self, program: str, paths: list[str], marks: ReadMarks, summary: HistorySummary) -> None:
        self._name = program
        self._paths = paths
        self._program = known_program(program)
        self._remembered = marks
        self._summary = summary
        self._part = EventBatch()
        # Marks of this reading; the importer stores them after the commit.
        self._marks: dict[str, dict[str, Any]] = {}
        # Hashes of the lines that were read, with their folder: a fork starts with copies of another session's lines.
        self._known_lines: set[int] = set()
        self._known_folders: set[str] = set()
        # The calls of the file that is read, of which no end was read.
        self._calls: dict[str, ToolCalled] = {}
        # Sessions that hooks recorded in a named run, each with that run and its task.
        self.named: dict[str, Named] = {}
        self.bytes_done = 0

    @property
    def size(self) -> int:
        """The number of bytes that were still unread at the start."""
        return sum(_rest_of(path, int(self._remembered.of(path).get("place") or 0)) for path in self._paths)

    def batches(self) -> Iterator[EventBatch]:
        """Yield the new events of all files."""
        for path in self._paths:
            try:
                yield from self._take_in(path)
            except OSError as problem:
                # A missing or unreadable file must not stop the others.
                self._summary.troubles.append(f"{path}: {(problem.strerror or str(problem)).lower()}")
        yield self._handed_on()

    def _take_in(self, path: str) -> Iterator[EventBatch]:
        mark, extent = self._mark(path), _extent(path)
        if "run" in mark:
            self.named[mark["session"]] = (mark["run"], mark.get("task"))
        if mark.get("place") == extent:
            self._summary.unchanged += 1
            return
        marks: dict[str, dict[str, Any]] = {}
        if path.endswith(_DATABASE):
            events = self._stored(path, extent, marks)
        else:
            if not mark:
                self._remember_folder(os.path.dirname(path))
            events = self._events(path, mark, marks)
        folder = head_of(path).cwd
        self._calls.clear()
        for event in events:
            self._summary.events[event.summary_key] += 1
            self._see_edit(event, folder)
            self._part.events.append(event)
            if len(self._part.events) >= _BATCH:
                yield self._handed_on()
        self._summary.files += 1
        self._part.marks.update(marks)

    def _see_edit(self, event: SessionEvent, folder: str | None) -> None:
        """Keep a call that changed files, once it is known to have succeeded."""
        if isinstance(event, ToolCalled):
            self._calls[event.call_id] = event
            return
        call = self._calls.pop(event.call_id, None) if isinstance(event, ToolReturned) else None
        if call is not None and folder is not None and is_edit(call.tool, call.arguments):
            assert isinstance(event, ToolReturned)
            self._part.edits += self._edit_call(call, event, folder) if event.outcome is CallOutcome.OK else ()

    def _edit_call(self, call: ToolCalled, result: ToolReturned, folder: str) -> Iterator[EditCall]:
        at, own = result.at or call.at, call.arguments.get("workdir")
        run_id, task_id = self.named.get(call.session_id) or (session_run_id(self._name, call.session_id, call.agent_id), None)
        if at is not None:
            yield EditCall(
                session=f"{self._name}:{call.session_id}",
                run_id=run_id,
                task_id=task_id,
                call_id=call.call_id,
                at=at,
                folder=os.path.join(folder, own) if isinstance(own, str) else folder,
                tool=call.tool,
                arguments=call.arguments,
                original=result.original,
            )

    def _handed_on(self) -> EventBatch:
        part, self._part = self._part, EventBatch()
        return part

    def _mark(self, path: str) -> dict[str, Any]:
        return self._marks.get(path) or self._remembered.of(path)

    def _stored(self, path: str, extent: int, marks: dict[str, dict[str, Any]]) -> Iterator[SessionEvent]:
        """Yield all events of a database; those that are known have the same ids."""
        from decklog.agents.programs.opencode import events_in

        yield from events_in(path, self._count_unread)
        marks[path] = self._remembered.of_state(extent)

    def _events(self, path: str, mark: dict[str, Any], marks: dict[str, dict[str, Any]]) -> Iterator[SessionEvent]:
        place = int(mark.get("place") or 0)
        reading = TranscriptInput(
            path=path,
            session_id=os.path.basename(path.partition(_BELOW)[0]) if _BELOW in path else None,
            agent_id=os.path.basename(path).removeprefix("agent-").removesuffix(".jsonl") if _BELOW in path else None,
            stored_state=mark.get("kept") or {},
            read_subagents=lambda: self._below(path, marks),
        )
        reader, folder = self._program.reader(reading), os.path.dirname(path)
        self._known_folders.add(folder)
        last: SessionEvent | None = None
        for line, end in lines_of(path, place, self._count_unread, reader.has_events):
            for event in () if self._is_copied(line, folder, reading) else reader.events(line):
                yield event
                last = event
            self.bytes_done += max(0, end - place)
            place = end
        yield from reader.pending_events()
        if last is not None:
            # A file has no end marker. A session that continues is reopened by its next event.
            is_failed = isinstance(last, TurnEnded) and last.error is not None and last.error not in STOPPED
            outcome = CallOutcome.FAILED if is_failed else CallOutcome.OK
            yield SessionEnded(session_id=last.session_id, agent_id=last.agent_id, at=last.at, reason=IMPORTED, outcome=outcome)
        of_a_run = {name: mark[name] for name in OF_A_RUN if name in mark}
        marks[path] = {**self._remembered.after(path, place, reader.state), **of_a_run}
        self._marks[path] = marks[path]

    def _below(self, path: str, marks: dict[str, dict[str, Any]]) -> Iterator[SessionEvent | TokenSums]:
        for below, _ in claude.transcripts_below(path):
            yield from self._events(below, marks.get(below) or self._mark(below), marks)
            kept = marks[below]["kept"] or {}
            yield kept.get("answers") or {}

    def _remember_folder(self, folder: str) -> None:
        """Load the line ids of files from an earlier import: a new file may start with copies of their lines."""
        if folder in self._known_folders:
            return
        self._known_folders.add(folder)
        for name in os.listdir(folder):
            path = os.path.join(folder, name)
            if name.endswith(".jsonl") and (end := self._mark(path).get("place")):
                # A file that can't be read now was not copied just now.
                with suppress(OSError):
                    for line, place in lines_of(path):
                        self._is_copied(line, folder, TranscriptInput())
                        if place >= end:
                            break

    def _is_copied(self, line: dict[str, Any], folder: str, reading: TranscriptInput) -> bool:
        """Return whether a line is a copy from another file of the folder; register it otherwise."""
        uuid = line.get("uuid")
        if not isinstance(uuid, str):
            return False
        known = hash((folder, uuid))
        if known not in self._known_lines:
            self._known_lines.add(known)
            return False
        reading.is_fork = True
        return True

    def _count_unread(self) -> None:
        self._summary.unread += 1


def _files(source: str, ending: str) -> Iterator[str]:
    if os.path.isfile(source):
        yield source
        return
    for folder, _, names in os.walk(source):
        yield from (os.path.join(folder, name) for name in sorted(names) if name.endswith(ending))


@dataclass(frozen=True)
class Head:
    """The first timestamp of a session file, and the folder that the session began in."""

    begun_at: str = ""
    cwd: str | None = None

    def is_in(self, roots: Sequence[str]) -> bool:
        """Check whether the session began in one of these folders or below."""
        if self.cwd is None:
            return False
        names = (os.path.normpath(self.cwd), os.path.realpath(self.cwd))
        return any(name == root or name.startswith(root + os.sep) for name in names for root in roots)


def head_of(path: str) -> Head:
    """Read the head of a session file. A fork's first timestamp is later than that of the session it was made from."""
    begun_at, cwd = "", None
    with suppress(OSError), opened(path) as file:
        for number, line in enumerate(file if not path.endswith(_DATABASE) else ()):
            if begun_at and (cwd or number >= _HEAD_LINES):
                break
            try:
                found = json.loads(line)
            except (ValueError, RecursionError):
                continue
            if isinstance(found, dict):
                begun_at = begun_at or _text_in(found, "timestamp")
                cwd = cwd or _text_in(found, "cwd") or _text_in(found.get("payload"), "cwd") or None
    return Head(begun_at, cwd)


def _text_in(value: Any, name: str) -> str:
    found = value.get(name) if isinstance(value, dict) else None
    return found if isinstance(found, str) else ""


class HistoryImport:
    """Import of every session of a program below a folder, or in one file."""

    def __init__(
        self,
        log: Decklog,
        program: str,
        source: str,
        spool: Spool,
        *,
        roots: Sequence[str] | None = None,
        dry_run: bool = False,
        progress: Callable[[str, int, int], None] | None = None,
    ) -> None:
        self._log = log
        self._program = program
        # Import only sessions that began in one of these folders; None for all.
        self._roots = roots
        self._spool = spool
        self._progress = progress
        # One recorder for each run that hooks named, and one for all sessions with their own run.
        self._recorders: dict[Named | None, Recorder] = {}
        self._values = Values(log.db.values.limit_bytes)
        self._age = age_of(log, spool)
        self._last_run: str | None = None
        # A session that Decklog started and charged to a run is not recorded again.
        self._is_charged = cache(partial(is_charged, log))
        self._reconstruction = Reconstruction(log)
        self.result = HistorySummary(source, dry_run)

    def run(self) -> HistorySummary:
        """Import new events."""
        files = files_of(self.result.path, self._program, self._roots)
        if not files:
            self._refuse_empty()
        marks = ReadMarks(self._spool, self._age, self._program)
        reader = SessionFileReader(self._program, files, marks, self.result)
        size = reader.size
        for part in reader.batches():
            self._take(reader, part, size)
        self._reconstruction.finish()
        self.result.edits = self._reconstruction.count
        self.result.troubles += self._reconstruction.problems
        if self.result.troubles and not self.result.files + self.result.unchanged:
            raise Unavailable(f"nothing could be read below {self.result.path}: {self.result.troubles[0]}", path=self.result.path)
        return self.result

    def _refuse_empty(self) -> NoReturn:
        """Raise NotFound for a folder without sessions, or without sessions of this repository."""
        path = self.result.path
        if not self._roots:
            raise NotFound(f"there is no file of {self._program}'s sessions below {path}", path=path)
        others = len(files_of(path, self._program))
        hint = f"It has {others} files of sessions in other folders. Import all of them: decklog import {self._program} --all"
        raise NotFound(
            f"no session of {self._program} in {self._roots[0]} found; looked below {path}",
            hint=hint if others else None,
            path=path,
            folders=list(self._roots),
        )

    def _take(self, reader: SessionFileReader, part: EventBatch, size: int) -> None:
        if self.result.dry_run:
            return
        own = [event for event in part.events if not self._is_charged(event.session_id)]
        for named, events in groupby(own, lambda event: reader.named.get(event.session_id)):
            self._write(named, [*events])
        self._reconstruction.add([edit for edit in part.edits if not self._is_charged(edit.session.partition(":")[2])])
        # Set the marks after the last commit. A killed import reads the file again and duplicates nothing.
        for path, mark in part.marks.items():
            self._spool.set_mark(path, mark)
        if part.marks:
            store_witness(self._log, self._spool, self._age, self._last_run)
        if self._progress:
            self._progress(f"{self.result.events.total():,} events", reader.bytes_done, size)

    def _write(self, named: Named | None, events: Sequence[SessionEvent]) -> None:
        """Write events in one transaction; if one fails, split them in halves until only that event is left out."""
        if named not in self._recorders:
            run_id, task_id = named or (None, None)
            self._recorders[named] = Recorder(self._log, self._program, run_id=run_id, task_id=task_id, values=self._values)
        recorder = self._recorders[named]
        try:
            with self._log.transaction():
                recorder.record(events)
        except (Invalid, NotFound, Conflict) as problem:
            # The recorder's cached state was rolled back too.
            del self._recorders[named]
            if len(events) == 1:
                self.result.unread += 1
                self.result.troubles.append(f"not written: {problem.message}")
                return
            middle = len(events) // 2
            self._write(named, events[:middle])
            self._write(named, events[middle:])
            return
        self.result.new += recorder.written
        self.result.redacted.update(recorder.redacted)
        self.result.sessions.update(event.session_id for event in events)
        recorder.written = 0
        recorder.redacted.clear()
        self._last_run = recorder.last_run
