"""Import of sessions from the files that programs keep, for times without hooks.

Events that hooks or an earlier import recorded have the same ids and are not written again. A file that has not grown is not read
again.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

from decklog.agents.events import SessionEvent
from decklog.agents.history_files import EventBatch, HistoryRequest, Named, files_of, many_values, read_files, size_of
from decklog.agents.marks import age_of, bear_witness
from decklog.agents.recorder import Beside, Described, Prepared, PreparedBeside, Recorder
from decklog.agents.sessions import is_charged
from decklog.agents.spool import Spool
from decklog.core.errors import Conflict, Invalid, NotFound, Unavailable
from decklog.log import Decklog
from decklog.provenance.reconstructing import Reconstruction

Told = SessionEvent | Described | Prepared | Beside | PreparedBeside

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

    def count(self, part: EventBatch) -> None:
        """Add the counts of a batch."""
        self.files += part.files
        self.unchanged += part.unchanged
        self.unread += part.unread
        self.events.update(part.events)
        self.troubles += part.troubles

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
        self._values = many_values(log.db.values.limit_bytes)
        self._age = age_of(log, spool)
        self._last_run: str | None = None
        self._charged: dict[str, bool] = {}
        self._reconstruction = Reconstruction(log)
        self.result = HistorySummary(source, dry_run)

    def run(self) -> HistorySummary:
        """Import new events."""
        files = files_of(self.result.path, self._program, self._roots)
        if not files:
            raise self._nothing_found()
        asked = HistoryRequest(self._program, files, self._spool.folder, self._log.db.values.limit_bytes, self._age)
        size = size_of(asked)
        for part in read_files(asked):
            self._take(part, size)
        self._reconstruction.finish()
        self.result.edits = self._reconstruction.count
        self.result.troubles += self._reconstruction.troubles
        if self.result.troubles and not self.result.files + self.result.unchanged:
            raise Unavailable(f"nothing could be read below {self.result.path}: {self.result.troubles[0]}", path=self.result.path)
        return self.result

    def _nothing_found(self) -> NotFound:
        """Return the error for a folder without sessions, or without sessions of this repository."""
        path = self.result.path
        if not self._roots:
            return NotFound(f"there is no file of {self._program}'s sessions below {path}", path=path)
        others = len(files_of(path, self._program))
        hint = f"It has {others} files of sessions in other folders. Import all of them: decklog import {self._program} --all"
        return NotFound(
            f"no session of {self._program} in {self._roots[0]} found; looked below {path}",
            hint=hint if others else None,
            path=path,
            folders=list(self._roots),
        )

    def _take(self, part: EventBatch, size: int) -> None:
        self.result.count(part)
        if self.result.dry_run:
            return
        own = [one for one in part.told if not self._is_charged(_session_of(one))]
        for named, told in groupby(own, lambda one: part.named.get(_session_of(one))):
            self._write(named, [*told])
        self._reconstruction.take([edit for edit in part.edits if not self._is_charged(edit.session.partition(":")[2])])
        # Set the marks after the last commit. A killed import reads the file again and duplicates nothing.
        for path, mark in part.marks.items():
            self._spool.set_mark(path, mark)
        if part.marks:
            bear_witness(self._log, self._spool, self._age, self._last_run)
        if self._progress:
            self._progress(f"{self.result.events.total():,} events", part.bytes_done, size)

    def _is_charged(self, session: str) -> bool:
        """Check whether Decklog started a session and charged it to a run; such a session is not recorded again."""
        if session not in self._charged:
            self._charged[session] = is_charged(self._log, session)
        return self._charged[session]

    def _recorder(self, named: Named | None) -> Recorder:
        if named not in self._recorders:
            run_id, task_id = named or (None, None)
            self._recorders[named] = Recorder(self._log, self._program, run_id=run_id, task_id=task_id)
        return self._recorders[named]

    def _write(self, named: Named | None, told: Sequence[Told]) -> None:
        """Write events in one transaction; if one fails, split them in halves until only that event is left out."""
        recorder = self._recorder(named)
        try:
            with self._log.transaction():
                recorder.record_read(told, self._values)
        except (Invalid, NotFound, Conflict) as problem:
            # The recorder's cached state was rolled back too.
            del self._recorders[named]
            if len(told) == 1:
                self.result.unread += 1
                self.result.troubles.append(f"not written: {problem.message}")
                return
            middle = len(told) // 2
            self._write(named, told[:middle])
            self._write(named, told[middle:])
            return
        self.result.new += recorder.written
        self.result.redacted.update(recorder.redacted)
        self.result.sessions.update(_session_of(one) for one in told)
        recorder.written = 0
        recorder.redacted.clear()
        self._last_run = recorder.last_run


def _session_of(told: Told) -> str:
    if not isinstance(told, tuple):
        return told.session_id
    return told[0] if isinstance(told[0], str) else told[0].session_id
