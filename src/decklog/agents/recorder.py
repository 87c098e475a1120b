"""Writes sessions' events into the log: a session is a run, its sub-agents are runs of their own below it.

Whatever is told twice has the same key and is written once; whatever is told late is written where it belongs, with its own time.
"""

import hashlib

from decklog.agents.events import (
    IMPORTED,
    Answered,
    Begun,
    Called,
    Compacted,
    Ended,
    Event,
    Joined,
    Noted,
    Outcome,
    Prompted,
    Rested,
    Returned,
    Said,
    Spawned,
    Thought,
)
from decklog.agents.retold import is_told_otherwise, newest_connection
from decklog.agents.texts import as_name, storable
from decklog.errors import NotFound
from decklog.stores.journal.entry import EntryKind
from decklog.stores.runs.run import ENDED, RunStatus

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from decklog.app import Decklog
    from decklog.stores.runs.run import Run

# Longer texts are cut; their digest says what they were.
MOST_CHARACTERS = 200_000
_GOAL_CHARACTERS = 200
_CALLS_LOOKED_AT = 1000
# What tells best what a call does, by the names that programs give it.
_TELLING = ("command", "cmd", "file_path", "path", "pattern", "query", "url", "description", "prompt")


class Recorder:
    """Writes the events of one program's sessions. With a run given, all of them belong to it."""

    def __init__(self, log: "Decklog", program: str, *, run_id: str | None = None, task_id: str | None = None) -> None:
        self._log = log
        self._program = program
        self._run_id = run_id
        self._task_id = task_id
        self._known: set[str] = set()
        # Of which runs an editor's connection tells too.
        self._retold: dict[str, bool] = {}
        # How many entries and charges were new.
        self.written = 0

    def record(self, events: "Iterable[Event]") -> int:
        """Write events in their order; give how many there were."""
        count = 0
        for event in events:
            self._write(event)
            count += 1
        return count

    def run_of(self, event: Event) -> str:
        """Name the run that an event belongs to."""
        if self._run_id is not None:
            return self._run_id
        own = run_of_session(self._program, event.session_id)
        return own if event.agent_id is None else f"{own}-{as_name(event.agent_id)}"

    def _write(self, event: Event) -> None:
        match event:
            case Begun():
                self._begin(event)
            case Prompted():
                self._prompt(event)
            case Called():
                # Not all who tell of a call have the same name for its tool, so that is no part of what it is known by.
                self._entry(event, EntryKind.TOOL, "call", _told(event), f"call:{event.call_id}", _call_facts(event))
            case Returned():
                self._return(event)
            case Said():
                self._entry(event, EntryKind.INTERACTION, "said", event.text, event.message_id and f"said:{event.message_id}")
            case Thought():
                self._entry(event, EntryKind.REASONING, "thought", event.text, f"thought:{event.message_id}")
            case Answered():
                self._charge(event)
            case Spawned():
                self._spawn(event)
            case Joined():
                self._end(event, event.text)
            case Compacted():
                self._compact(event)
            case Rested():
                self._rest(event)
            case Ended():
                if (event.reason != IMPORTED or self._is_imported(event)) and not self._goes_on(event):
                    self._close_calls(self.run_of(event), event)
                    self._end(event, None, event.reason)
            case Noted():
                key = event.note_id or _key_of(event.name, event, event.text)
                self._entry(event, EntryKind.EVENT, event.name, event.text, key, event.facts)
            case _:
                raise AssertionError(f"no such event: {event!r}")

    # The run

    def _ensure(self, event: Event, goal: str | None = None, **facts: "Any") -> str:
        """Make sure that the run of an event is there, the run above it first."""
        run_id = self.run_of(event)
        if run_id in self._known:
            return run_id
        if self._run_id is None:
            parent = run_of_session(self._program, event.session_id) if event.agent_id else None
            if parent is not None and parent not in self._known:
                self._start(parent, event, None, None, {})
            self._start(run_id, event, parent, goal, facts)
        self._known.add(run_id)
        return run_id

    def _start(self, run_id: str, event: Event, parent: str | None, goal: str | None, facts: "dict[str, Any]") -> None:
        who = f"Sub-agent of {parent}" if parent else f"Session of {self._program}"
        places = {name: facts.pop(name) for name in ("worktree", "branch") if facts.get(name)}
        self._log.runs.start(
            goal or who,
            run_id=run_id,
            parent_run_id=parent,
            started_at=event.at,
            metadata={"program": self._program, "session": event.session_id, **{n: v for n, v in facts.items() if v}},
            **places,
        )
        self._known.add(run_id)

    def _begin(self, event: Begun) -> None:
        facts = {"worktree": event.cwd, "branch": event.branch, "model": event.model, "version": event.version}
        is_known = self.run_of(event) in self._known or self._is_there(event)
        if is_known and event.source == IMPORTED:
            # Whoever told of it first told how it began.
            return
        run_id = self._ensure(event, transcript=event.transcript, source=event.source, **facts)
        if self._run_id is None and event.source != "compact":
            self._take_up(run_id)
        # Each start tells itself once: of two at the same moment there is no telling apart, and no need to.
        key = f"begun:{event.source}:{event.at.isoformat()}" if event.at else None
        shown = {"cwd": event.cwd, "model": event.model, "version": event.version, "transcript": event.transcript}
        if not self._is_told_otherwise(run_id, event):
            self._entry(event, EntryKind.EVENT, "session", f"session {event.source}", key, shown)
        if event.source in ("startup", "resume"):
            self._close_calls(run_id, event)

    def _is_there(self, event: Event) -> bool:
        try:
            self._log.runs.get(self.run_of(event))
        except NotFound:
            return False
        return True

    def _take_up(self, run_id: str) -> None:
        if self._log.runs.get(run_id).status in ENDED:
            self._log.runs.update(run_id, status=RunStatus.ACTIVE)

    def _prompt(self, event: Prompted) -> None:
        goal = " ".join(storable(event.text).split())[:_GOAL_CHARACTERS]
        run_id = self._ensure(event, goal=goal)
        run = self._log.runs.get(run_id)
        if self._run_id is None and goal and event.by == "person" and _is_unnamed(run):
            self._log.runs.update(run_id, goal=goal)
        key = f"prompt:{event.prompt_id}" if event.prompt_id else _key_of("prompt", event, event.text)
        if event.by != "person" or not self._is_told_otherwise(run_id, event):
            self._entry(event, EntryKind.INTERACTION, "prompt", event.text, key, agent=event.by)

    def _spawn(self, event: Spawned) -> None:
        goal = event.task and " ".join(storable(event.task).split())[:_GOAL_CHARACTERS]
        self._ensure(event, goal=goal or event.role or None, role=event.role)

    def _end(self, event: Event, text: str | None, reason: str | None = None) -> None:
        run_id = self._ensure(event)
        if self._run_id is not None:
            self._entry(event, EntryKind.EVENT, "session", f"session ended: {reason or 'done'}", _key_of("ended", event, reason))
        elif self._log.runs.get(run_id).status not in ENDED:
            self._log.runs.finish(run_id, summary=_cut(storable(text))[0] if text else None)

    def _is_imported(self, event: Event) -> bool:
        return self._run_id is None and self._log.runs.get(self._ensure(event)).metadata.get("source") == IMPORTED

    # What was said, called and spent

    def _return(self, event: Returned) -> None:
        output, cut = _cut(event.output)
        facts = {"call": event.call_id, "tool": event.tool, "outcome": event.outcome.value, **event.facts, **cut}
        self._entry(event, EntryKind.TOOL, "result", output or event.outcome.value, f"result:{event.call_id}", facts)

    def _charge(self, event: Answered) -> None:
        run_id = self._ensure(event)
        charge = self._log.ledger.charge(
            event.model,
            input_tokens=event.input_tokens,
            cache_read_tokens=event.cache_read_tokens,
            cache_create_tokens=event.cache_create_tokens,
            output_tokens=event.output_tokens,
            cost_microdollars=self._cost(event, run_id),
            run_id=run_id,
            task_id=self._task_id,
            agent=self._program,
            agent_id=event.agent_id or event.session_id,
            occurred_at=event.at,
            # It is spent: a budget can stop what comes, not what was.
            enforce=False,
            answer_id=f"{self._program}:{event.answer_id}",
        )
        self.written += not charge.already

    def _cost(self, event: Answered, run_id: str) -> int | None:
        """Give what an answer cost by the sum that the session had come to; None leaves it to the prices of the day."""
        if event.session_microdollars is None:
            return None
        spent = self._log.ledger.summary(run_id, agent=self._program, agent_id=event.agent_id or event.session_id)
        total = spent["total"]
        assert isinstance(total, dict)
        return max(0, event.session_microdollars - int(total["cost_microdollars"]))

    def _compact(self, event: Compacted) -> None:
        name = "compacted" if event.is_over else "compacting"
        self._entry(event, EntryKind.EVENT, name, event.summary or event.trigger, _key_of(name, event, event.summary))

    def _rest(self, event: Rested) -> None:
        text = event.error or event.text
        facts = {**event.facts, "error": event.error}
        if not self._is_told_otherwise(self._ensure(event), event):
            self._entry(event, EntryKind.EVENT, "turn", text or "turn ended", _key_of("turn", event, text), facts)

    def _entry(
        self,
        event: Event,
        kind: EntryKind,
        subtype: str,
        body: str | None,
        key: str | None,
        facts: "dict[str, Any] | None" = None,
        agent: str | None = None,
    ) -> None:
        run_id = self._ensure(event)
        text, cut = _cut(storable(body)) if body else (body, {})
        entry = self._log.journal.append(
            run_id,
            text,
            kind=kind,
            subtype=subtype,
            agent=agent or self._program,
            agent_id=event.agent_id or event.session_id,
            task_id=self._task_id,
            payload=storable(_present({**(facts or {}), **cut, "way": event.way})) or None,
            key=key,
            at=event.at,
        )
        self.written += not entry.already

    def _is_told_otherwise(self, run_id: str, event: Event) -> bool:
        """Say whether one who tells in another way has told the same; of most runs only one tells, and nothing is looked for."""
        if event.way is None and run_id not in self._retold:
            self._retold[run_id] = newest_connection(self._log, run_id) is not None
        return (event.way is not None or self._retold[run_id]) and is_told_otherwise(self._log, run_id, event)

    def _goes_on(self, event: Ended) -> bool:
        """Say whether a session that ended with its editor's connection goes on in a later one."""
        newest = newest_connection(self._log, self.run_of(event)) if event.connection else None
        return newest not in (None, event.connection)

    # Calls whose end nobody told

    def _close_calls(self, run_id: str, event: Event) -> None:
        for call, tool in self._open_calls(run_id).items():
            self._return(
                Returned(
                    session_id=event.session_id,
                    agent_id=event.agent_id,
                    call_id=call,
                    tool=tool,
                    outcome=Outcome.LOST,
                    output="the session ended before the call did",
                )
            )

    def _open_calls(self, run_id: str) -> dict[str, str]:
        calls: dict[str, str] = {}
        ended: set[str] = set()
        for entry in self._log.journal.find(run_id, kind=EntryKind.TOOL, limit=_CALLS_LOOKED_AT):
            facts = entry.payload if isinstance(entry.payload, dict) else {}
            if "outcome" in facts:
                ended.add(str(facts.get("call")))
            elif "call" in facts:
                calls[str(facts["call"])] = str(facts.get("tool") or "tool")
        return {call: tool for call, tool in reversed(calls.items()) if call not in ended}


def run_of_session(program: str, session_id: str) -> str:
    """Name the run of a session."""
    return f"{as_name(program)}-{as_name(session_id)}"


def _present(facts: "dict[str, Any]") -> "dict[str, Any]":
    return {name: value for name, value in facts.items() if value is not None}


def _is_unnamed(run: "Run") -> bool:
    return run.goal.startswith("Session of ")


def _told(event: Called) -> str:
    """Say what a call does in one line: its command, or its tool with the file or whatever else tells it best."""
    value = _telling(event)
    return value if event.tool == "Bash" and value else f"{event.tool} {value}".strip()


def _telling(event: Called) -> str:
    found = (event.arguments.get(name) for name in _TELLING)
    return next((value for value in found if isinstance(value, str) and value.strip()), "")


def _call_facts(event: Called) -> "dict[str, Any]":
    told = _telling(event)
    arguments = {name: _short(value) for name, value in event.arguments.items() if value != told}
    return {"call": event.call_id, "tool": event.tool, "arguments": arguments or None}


def _short(value: "Any") -> "Any":
    return _cut(value)[0] if isinstance(value, str) else value


def _cut(text: str) -> "tuple[str, dict[str, Any]]":
    if len(text) <= MOST_CHARACTERS:
        return text, {}
    whole = text.encode(errors="replace")
    return text[:MOST_CHARACTERS], {"cut": {"bytes": len(whole), "sha256": hashlib.sha256(whole).hexdigest()}}


def _key_of(name: str, event: Event, text: str | None) -> str | None:
    """Name something that has no id by its moment and its words."""
    if event.at is None:
        return None
    words = hashlib.sha256((text or "").encode(errors="replace")).hexdigest()[:16]
    return f"{name}:{event.at.isoformat()}:{words}"
