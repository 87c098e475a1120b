"""Takes what hooks left in the spool into the log, with what the transcripts tell beside it."""

import json
from copy import deepcopy
from dataclasses import asdict, dataclass
from datetime import UTC, datetime

from decklog.agents.claude import payloads as claude
from decklog.agents.claude.transcript import State, Sums, Transcript
from decklog.agents.events import Event, Noted, Outcome, Returned
from decklog.agents.recorder import Recorder
from decklog.agents.spool import DROPPED
from decklog.errors import DecklogError, Unavailable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from decklog.agents.spool import Spool
    from decklog.app import Decklog

_UNREAD = "unread"
_SHOWN_OF_UNREAD = 2000
# So many lines are written together.
_BATCH = 200


@dataclass
class Taken:
    """What came of an intake."""

    events: int = 0
    unread: int = 0
    is_left_to_another: bool = False


def take_in(log: "Decklog", spool: "Spool") -> Taken:
    """Take in whatever waits, unless somebody else is at it; what comes meanwhile is taken in too."""
    taken = Taken()
    while True:
        with spool.alone() as is_mine:
            if not is_mine:
                taken.is_left_to_another = True
                return taken
            for name in spool.waiting():
                _File(log, spool, name, taken).take_in()
        # One who came while we held the lock left it to us.
        if spool.is_empty:
            return taken


class _File:
    """One session's waiting events."""

    def __init__(self, log: "Decklog", spool: "Spool", name: str, taken: Taken) -> None:
        self._log = log
        self._spool = spool
        self._name = name
        self._taken = taken
        self._states: dict[str, State] = {}

    def take_in(self) -> None:
        lines, end = self._spool.read(self._name)
        for start in range(0, len(lines), _BATCH):
            self._write(lines[start : start + _BATCH])
        self._spool.done(self._name, end)
        for path, state in self._states.items():
            self._spool.set_mark(path, asdict(state))

    def _write(self, lines: "list[tuple[dict[str, Any], bytes]]") -> None:
        """Write lines together; when one of them can't be written, each for itself."""
        before = deepcopy(self._states)
        try:
            with self._log.transaction():
                counted = sum(self._record(facts, payload) for facts, payload in lines)
            self._taken.events += counted
        except Unavailable:
            raise
        except DecklogError:
            self._states = before
            for facts, payload in lines:
                self._write_one(facts, payload)

    def _write_one(self, facts: "dict[str, Any]", payload: bytes) -> None:
        try:
            with self._log.transaction():
                self._taken.events += self._record(facts, payload)
        except Unavailable:
            raise
        except DecklogError as problem:
            with self._log.transaction():
                self._keep(facts, payload, str(problem))

    def _record(self, facts: "dict[str, Any]", payload: bytes) -> int:
        if self._name == DROPPED and not payload:
            return self._keep(facts, payload, f"an event of {facts.get('bytes')} bytes found no room beside the log")
        try:
            told = json.loads(payload)
        except (ValueError, RecursionError) as problem:
            return self._keep(facts, payload, str(problem))
        if not isinstance(told, dict) or not isinstance(told.get("session_id"), str):
            return self._keep(facts, payload, "it names no session")
        return self._recorder(facts).record(self._events(facts, told))

    def _events(self, facts: "dict[str, Any]", told: "dict[str, Any]") -> "Iterator[Event]":
        at = _time_of(facts)
        for path, agent_id in claude.transcripts_of(told):
            forked_at = facts.get("at") if told.get("source") == "fork" else None
            yield from self._transcript(path, agent_id, told["session_id"], forked_at)
        yield from claude.events_of(told, at)
        if facts.get("denied") and isinstance(call := told.get("tool_use_id"), str):
            yield Returned(
                session_id=told["session_id"],
                agent_id=told.get("agent_id"),
                at=at,
                call_id=call,
                tool=told.get("tool_name"),
                outcome=Outcome.DENIED,
                output=str(facts["denied"]),
            )

    def _transcript(self, path: str, agent_id: str | None, session_id: str, forked_at: float | None = None) -> "Iterator[Event]":
        """Read on in a transcript: what hooks tell too is known by its ids; what was said and spent is told only here."""
        state = self._states.get(path) or _state(self._spool.mark(path))
        if forked_at is not None:
            state.forked_at = forked_at
        reader = Transcript(agent_id=agent_id, session_id=session_id, is_backstop=True, state=state)
        self._states[path] = state
        try:
            for line, place in lines_of(path, state.place):
                if line.get("type") == "cost-state":
                    yield from self._settle(reader, line, path, session_id)
                else:
                    yield from reader.events(line)
                state.place = place
        except OSError:
            # It is the second telling of what hooks tell; the next one who finds it reads on.
            return
        yield from reader.rest()

    def _settle(self, reader: Transcript, line: "dict[str, Any]", path: str, session_id: str) -> "Iterator[Event]":
        others: Sums = {}
        for below, agent_id in claude.transcripts_below(path):
            yield from self._transcript(below, agent_id, session_id)
            for model, tokens in self._states[below].answers.items():
                others[model] = [known + new for known, new in zip(others.get(model, (0, 0, 0, 0)), tokens, strict=True)]
        yield from reader.settle(line, others)

    def _keep(self, facts: "dict[str, Any]", payload: bytes, why: str) -> int:
        """Keep a line that can't be read, as far as it can be shown, and say why."""
        self._taken.unread += 1
        text = payload[:_SHOWN_OF_UNREAD].decode(errors="replace")
        shown = {"why": why, "bytes": len(payload)}
        event = Noted(session_id=str(facts.get("session") or _UNREAD), at=_time_of(facts), name=_UNREAD, text=text, facts=shown)
        return self._recorder(facts).record([event])

    def _recorder(self, facts: "dict[str, Any]") -> Recorder:
        return Recorder(self._log, str(facts.get("program") or "agent"), run_id=facts.get("run"), task_id=facts.get("task"))


def lines_of(path: str, start: int = 0) -> "Iterator[tuple[dict[str, Any], int]]":
    """Read a file's whole lines that are JSON objects, from a place on, each with the place where it ends."""
    with open(path, "rb") as file:
        size = file.seek(0, 2)
        # A file that became shorter is another one.
        place = file.seek(start if start <= size else 0)
        for line in file:
            if not line.endswith(b"\n"):
                return
            place += len(line)
            try:
                found = json.loads(line)
            except (ValueError, RecursionError):
                continue
            if isinstance(found, dict):
                yield found, place


def _state(kept: "dict[str, Any]") -> State:
    try:
        return State(**kept)
    except TypeError:
        # Of another version: reading it all again adds nothing twice.
        return State()


def _time_of(facts: "dict[str, Any]") -> datetime | None:
    at = facts.get("at")
    return datetime.fromtimestamp(at, UTC) if isinstance(at, int | float) else None
