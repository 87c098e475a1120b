"""Intake of the spool into the log: events of hooks and editor connections, with their transcripts."""

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from typing import Any

from decklog.agents.acp.wire import AcpReaders
from decklog.agents.entries import session_run_id
from decklog.agents.events import CallOutcome, OtherEvent, SessionEvent, ToolReturned
from decklog.agents.programs import claude, program
from decklog.agents.programs.base import TokenSums, TranscriptInput, TranscriptProgram
from decklog.agents.recorder import Recorder
from decklog.agents.spool import DROPPED, Spool
from decklog.agents.texts import text_or_none
from decklog.agents.transcripts import ReadMarks, age_of, find_session_transcripts, lines_of, store_witness
from decklog.core.errors import Conflict, Invalid, NotFound, Unavailable
from decklog.log import Decklog
from decklog.provenance.git import GitFailed
from decklog.provenance.recording import keep_objects, record_captured

_UNREAD = "unread"
_SHOWN_OF_UNREAD = 2000
# Number of lines in one transaction.
_BATCH = 200
# Read a large unread transcript in parts of this number of lines, because other processes wait for the log.
_MUCH_BYTES = 4 * 1024**2
_LINES_TOGETHER = 4000


@dataclass
class IntakeResult:
    """Result of an intake."""

    events: int = 0
    unread: int = 0
    was_locked: bool = False


def run_intake(log: Decklog, spool: Spool, *, is_one_round: bool = False) -> IntakeResult:
    """Take in all waiting events, unless another process does. Repeat until the spool is empty, or stop after one round."""
    result = IntakeResult()
    while True:
        with spool.intake_lock() as is_mine:
            if not is_mine:
                result.was_locked = True
                return result
            spool.close_ended_sessions()
            for name in spool.list_waiting():
                _SpoolFile(log, spool, name, result).process()
        # A process that found the lock taken left its events to us.
        is_empty = spool.is_empty and not spool.find_ended_connections()
        if is_empty:
            spool.clear_error()
        if is_empty or is_one_round:
            return result


class _SpoolFile:
    """Waiting events of one session."""

    def __init__(self, log: Decklog, spool: Spool, name: str, result: IntakeResult) -> None:
        self._log = log
        self._spool = spool
        self._name = name
        self._result = result
        self._stored_marks = ReadMarks(spool, age_of(log, spool))
        self._marks: dict[str, dict[str, Any]] = {}
        self._readers = AcpReaders(spool)
        self._last_run: str | None = None
        # The run and task ids that the current facts name.
        self._run_and_task: dict[str, str] = {}
        # Captured edits by session; their Git objects are kept once the edits are recorded.
        self._captured: dict[str, list[dict[str, Any]]] = {}

    def process(self) -> None:
        lines, end = self._spool.read(self._name)
        for start in range(0, len(lines), _BATCH):
            self._write(lines[start : start + _BATCH])
        # Store partial state before its lines are removed: it exists nowhere else. Lines read twice are known by number.
        self._readers.keep()
        self._keep_objects()
        self._spool.remove_lines(self._name, end)
        self._readers.forget_ended()
        for path, mark in self._marks.items():
            self._spool.set_mark(path, mark)
        if self._marks:
            store_witness(self._log, self._spool, self._stored_marks.age, self._last_run)

    def _write(self, lines: list[tuple[dict[str, Any], bytes]]) -> None:
        """Write lines in one transaction; if it fails, write each line in its own, and keep a failing one as unread."""
        for facts, payload in lines:
            self._read_large_transcripts(facts, payload)
        marks, readers = dict(self._marks), self._readers.copied()
        try:
            with self._log.transaction():
                count = sum(self._record_line(facts, payload) for facts, payload in lines)
        except Unavailable:
            raise
        except Exception as problem:  # noqa: BLE001
            # Other programs may send invalid data. It must not lose the other events.
            self._marks, self._readers = marks, readers
            if len(lines) > 1:
                for line in lines:
                    self._write([line])
                return
            with self._log.transaction():
                self._record_unread(*lines[0], f"{type(problem).__name__}: {problem}")
            count = 0
        self._result.events += count

    def _record_line(self, facts: dict[str, Any], payload: bytes) -> int:
        if self._name == DROPPED and not payload:
            return self._record_unread(facts, payload, f"an event of {facts.get('bytes')} bytes did not fit into the spool")
        try:
            parsed = json.loads(payload)
        except (ValueError, RecursionError) as problem:
            return self._record_unread(facts, payload, str(problem))
        is_editor = isinstance(facts.get("acp"), dict)
        if not isinstance(parsed, dict) or not (is_editor or isinstance(parsed.get("session_id"), str)):
            return self._record_unread(facts, payload, "it names no session")
        count = self._record_events(facts, self._editor_events(facts, parsed) if is_editor else self._hook_events(facts, parsed))
        if isinstance(captured := facts.get("provenance"), dict):
            count += self._record_captured(facts, parsed, captured)
        return count

    def _record_captured(self, facts: dict[str, Any], parsed: dict[str, Any], captured: dict[str, Any]) -> int:
        """Record the edits that a hook or the proxy captured around a call."""
        name, session, agent = str(facts.get("program") or "agent"), parsed["session_id"], text_or_none(parsed.get("agent_id"))
        if "failed" in captured:
            return self._record_note(facts, session, "capture", f"edits could not be captured: {captured['failed']}")
        count = record_captured(
            self._log,
            captured,
            session=f"{name}:{session}",
            kind=captured.get("kind", "tool"),
            run_id=text_or_none(facts.get("run")) or session_run_id(name, session, agent),
            task_id=text_or_none(facts.get("task")),
            call_id=text_or_none(parsed.get("tool_use_id")),
            at=_event_time(facts),
        )
        self._captured.setdefault(f"{name}:{session}", []).append(captured)
        return count

    def _record_note(self, facts: dict[str, Any], session: str, name: str, text: str, **more: Any) -> int:
        event = OtherEvent(session_id=session, at=_event_time(facts), name=name, text=text, facts=more)
        return self._record_events(facts, iter([event]))

    def _keep_objects(self) -> None:
        """Keep the Git objects of recorded edits. Record a repository that can't be written to, and continue."""
        for session, captured in self._captured.items():
            try:
                keep_objects(session, captured)
            except (GitFailed, OSError) as problem:
                name, _, session_id = session.partition(":")
                with self._log.transaction():
                    self._record_note({"program": name}, session_id, "capture", f"edits could not be captured: {problem}")

    def _read_large_transcripts(self, facts: dict[str, Any], payload: bytes) -> None:
        """Read most of a large unread transcript in parts, before the event that refers to it."""
        try:
            parsed = json.loads(payload) if len(payload) < _MUCH_BYTES and "acp" not in facts else None
        except (ValueError, RecursionError):
            # Recording the line reports it.
            return
        if not isinstance(parsed, dict) or not isinstance(session := parsed.get("session_id"), str):
            return
        module = program(str(facts.get("program")))
        for path, agent_id in module.transcripts_of(parsed):
            while (rest := self._unread_bytes(path)) > _MUCH_BYTES:
                marks = dict(self._marks)
                try:
                    with self._log.transaction():
                        part = self._read_transcript(module, path, agent_id, session, _fork_time(facts, parsed), _LINES_TOGETHER)
                        self._result.events += self._record_events(facts, part)
                except (Invalid, NotFound, Conflict):
                    # Writing the lines one by one finds the invalid one and keeps the others.
                    self._marks = marks
                if self._unread_bytes(path) >= rest:
                    break

    def _unread_bytes(self, path: str) -> int:
        try:
            return os.stat(path).st_size - int((self._marks.get(path) or self._stored_marks.of(path)).get("place") or 0)
        except (OSError, ValueError):
            return 0

    def _hook_events(self, facts: dict[str, Any], parsed: dict[str, Any]) -> Iterator[SessionEvent]:
        at, session, module = _event_time(facts), parsed["session_id"], program(str(facts.get("program")))
        for path, agent_id in module.transcripts_of(parsed):
            yield from self._read_transcript(module, path, agent_id, session, _fork_time(facts, parsed))
        yield from module.events_of(parsed, at)
        if facts.get("denied") and isinstance(call := parsed.get("tool_use_id"), str):
            yield ToolReturned(
                session_id=session,
                agent_id=parsed.get("agent_id"),
                at=at,
                call_id=call,
                tool=parsed.get("tool_name"),
                outcome=CallOutcome.DENIED,
                output=str(facts["denied"]),
            )
        elif facts.get("denied"):
            # Some programs do not name the call.
            tool = text_or_none(parsed.get("tool_name"))
            yield OtherEvent(session_id=session, at=at, name="denied", text=str(facts["denied"]), facts={"tool": tool})

    def _editor_events(self, facts: dict[str, Any], parsed: dict[str, Any]) -> Iterator[SessionEvent]:
        """Return the events of a message between editor and agent. At the end of a turn, add those of the session's files."""
        name, session = str(facts.get("program") or "agent"), str(facts.get("session"))
        reader = self._readers.of(name, session, str(facts["acp"].get("c")))
        reader.own_files = lambda: self._read_session_files(name, session, facts["acp"])
        # Read the session's files before its end.
        if facts["acp"].get("end"):
            yield from reader.own_files()
        yield from reader.events(facts["acp"], parsed, _event_time(facts))
        if reader.is_at_rest:
            yield from reader.own_files()

    def _read_session_files(self, name: str, session: str, facts: dict[str, Any]) -> Iterator[SessionEvent]:
        for path, agent_id in find_session_transcripts(name, session, facts):
            yield from self._read_transcript(program(name), path, agent_id, session)

    def _read_transcript(
        self,
        module: TranscriptProgram,
        path: str,
        agent_id: str | None,
        session_id: str,
        forked_at: float | None = None,
        most_lines: int | None = None,
    ) -> Iterator[SessionEvent]:
        """Read on in a transcript. Events that hooks report too have the same ids; answers and usage only occur here."""
        kept = self._marks.get(path) or self._stored_marks.of(path)
        reading = TranscriptInput(
            path=path,
            session_id=session_id,
            agent_id=agent_id,
            stored_state=kept.get("kept") or {},
            is_backstop=True,
            forked_at=forked_at,
            read_subagents=lambda: self._read_subagents(module, path, session_id),
        )
        reader, place = module.reader(reading), int(kept.get("place") or 0)
        try:
            for line, end in islice(lines_of(path, place, has_events=reader.has_events), most_lines):
                yield from reader.events(line)
                place = end
            yield from reader.pending_events()
        except OSError:
            # The transcript only repeats what hooks report; the next intake reads on.
            yield from reader.pending_events()
        of_a_run = {"session": session_id, **self._run_and_task} if self._run_and_task else {}
        self._marks[path] = {**self._stored_marks.after(path, place, reader.state), **of_a_run}

    def _read_subagents(self, module: TranscriptProgram, path: str, session_id: str) -> Iterator[SessionEvent | TokenSums]:
        for below, agent_id in claude.transcripts_below(path):
            yield from self._read_transcript(module, below, agent_id, session_id)
            yield (self._marks[below]["kept"] or {}).get("answers") or {}

    def _record_unread(self, facts: dict[str, Any], payload: bytes, why: str) -> int:
        """Record an unreadable line, shortened, with the reason."""
        self._result.unread += 1
        text = payload[:_SHOWN_OF_UNREAD].decode(errors="replace")
        session = text_or_none(facts.get("session")) or _UNREAD
        # Use the session's own run: the named run may be what can't be written.
        own = {name: value for name, value in facts.items() if name not in ("run", "task")}
        return self._record_note(own, session, _UNREAD, text, why=why, bytes=len(payload))

    def _record_events(self, facts: dict[str, Any], events: Iterator[SessionEvent]) -> int:
        run_id, task_id = text_or_none(facts.get("run")), text_or_none(facts.get("task"))
        self._run_and_task = {name: value for name, value in (("run", run_id), ("task", task_id)) if run_id and value}
        recorder = Recorder(self._log, str(facts.get("program") or "agent"), run_id=run_id, task_id=task_id)
        count = recorder.record(events)
        self._last_run = recorder.last_run or self._last_run
        return count


def _fork_time(facts: dict[str, Any], parsed: dict[str, Any]) -> float | None:
    return facts.get("at") if parsed.get("source") == "fork" else None


def _event_time(facts: dict[str, Any]) -> datetime | None:
    at = facts.get("at")
    try:
        return datetime.fromtimestamp(at, UTC) if isinstance(at, int | float) else None
    except (OverflowError, OSError, ValueError):
        return None
