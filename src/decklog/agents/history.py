"""Import of sessions from the files that programs keep, for times without hooks.

Events that hooks or an earlier import recorded have the same ids and are not written again. A file that has not grown is not read
again.
"""

from collections.abc import Callable, Sequence
from itertools import groupby

from decklog.agents.events import SessionEvent
from decklog.agents.history_files import EventBatch, HistorySummary, Named, SessionFileReader, files_of
from decklog.agents.recorder import Recorder
from decklog.agents.sessions import is_charged
from decklog.agents.spool import Spool
from decklog.agents.transcripts import ReadMarks, age_of, bear_witness
from decklog.core.errors import Conflict, Invalid, NotFound, Unavailable
from decklog.log import Decklog
from decklog.provenance.reconstructing import Reconstruction
from decklog.records.values import Values

__all__ = ["HistoryImport", "HistorySummary"]

_REMEMBERED_BYTES = 8 * 1024**2


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
        # Cached for many texts: agents read the same files again and again.
        self._values = Values(log.db.values.limit_bytes, remembered_bytes=_REMEMBERED_BYTES)
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
        marks = ReadMarks(self._spool, self._age, self._program)
        reader = SessionFileReader(self._program, files, marks, self.result)
        size = reader.size
        for part in reader.batches():
            self._take(reader, part, size)
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

    def _take(self, reader: SessionFileReader, part: EventBatch, size: int) -> None:
        if self.result.dry_run:
            return
        own = [event for event in part.events if not self._is_charged(event.session_id)]
        for named, events in groupby(own, lambda event: reader.named.get(event.session_id)):
            self._write(named, [*events])
        self._reconstruction.take([edit for edit in part.edits if not self._is_charged(edit.session.partition(":")[2])])
        # Set the marks after the last commit. A killed import reads the file again and duplicates nothing.
        for path, mark in part.marks.items():
            self._spool.set_mark(path, mark)
        if part.marks:
            bear_witness(self._log, self._spool, self._age, self._last_run)
        if self._progress:
            self._progress(f"{self.result.events.total():,} events", reader.bytes_done, size)

    def _is_charged(self, session: str) -> bool:
        """Check whether Decklog started a session and charged it to a run; such a session is not recorded again."""
        if session not in self._charged:
            self._charged[session] = is_charged(self._log, session)
        return self._charged[session]

    def _recorder(self, named: Named | None) -> Recorder:
        if named not in self._recorders:
            run_id, task_id = named or (None, None)
            self._recorders[named] = Recorder(self._log, self._program, run_id=run_id, task_id=task_id, values=self._values)
        return self._recorders[named]

    def _write(self, named: Named | None, events: Sequence[SessionEvent]) -> None:
        """Write events in one transaction; if one fails, split them in halves until only that event is left out."""
        recorder = self._recorder(named)
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
