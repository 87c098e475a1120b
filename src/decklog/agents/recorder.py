"""Recorder of session events: each session is a run, and each sub-agent a child run.

An event that is reported twice has the same key and is written once. A late event keeps its own time.
"""

import re
from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any

from decklog.agents.entries import build_event_entry, cut_text, session_run_id
from decklog.agents.events import (
    IMPORTED,
    STOPPED,
    CallOutcome,
    ConversationCompacted,
    PromptSubmitted,
    SessionEnded,
    SessionEvent,
    SessionStarted,
    SubagentEnded,
    SubagentStarted,
    TokensUsed,
    ToolReturned,
    TurnEnded,
)
from decklog.agents.texts import dict_of, storable, storable_value, text_or_none
from decklog.core.display import one_line
from decklog.core.errors import NotFound
from decklog.journal.entry import Entry, EntryKind
from decklog.journal.new_entry import prepare_entry
from decklog.journal.rows import COLUMNS
from decklog.log import Decklog
from decklog.records.record import find_all
from decklog.records.values import Values
from decklog.redaction import redact
from decklog.stores.money.bulk import Bulk, BulkItem
from decklog.stores.runs.run import ENDED, Run, RunStatus

# An editor connection sees a prompt before the program accepts it, and the program may be busy.
_PROMPT_LATE = timedelta(minutes=10)
_PROMPT_EARLY = timedelta(seconds=5)
# A hook process starts late on a busy machine. Session starts and compactions are rare.
_TURN_DELAY = timedelta(seconds=15)
_START_DELAY = timedelta(minutes=1)
_ENTRY_LIMIT = 200
# Call site of a charge for a whole turn, reported by an editor connection.
TURN = "editor turn"


def _find_newest_connection(log: Decklog, run_id: str) -> str | None:
    """Return the id of the latest editor connection of a run, if any. Each connection first records its editor."""
    for entry in log.journal.find(run_id, kind=EntryKind.EVENT, subtype="editor", limit=1):
        return str(dict_of(entry.payload).get("connection"))
    return None


def _find_charged_turns(log: Decklog, run_id: str) -> list[tuple[datetime, datetime]]:
    """Return the time ranges of turns that were charged as a whole, each from prompt to charge."""
    found = []
    for charge in find_all(log.ledger.find, run_id, call_site=TURN):
        end = charge.occurred_at
        prompts = log.journal.find(run_id, kind=EntryKind.INTERACTION, subtype="prompt", until=end, limit=_ENTRY_LIMIT)
        starts = (entry.at for entry in prompts if "way" in dict_of(entry.payload))
        found.append((max(starts, default=log.runs.get(run_id).started_at), end))
    return found


def _find_same_event(log: Decklog, run_id: str, event: SessionEvent) -> list[Entry]:
    """Return the entries of the same event, reported around that time by any source."""
    if event.at is None:
        return []
    kind = EntryKind.INTERACTION if isinstance(event, PromptSubmitted) else EntryKind.EVENT
    before, after = _match_window(event)
    found = log.journal.find(run_id, kind=kind, since=event.at - before, until=event.at + after, limit=_ENTRY_LIMIT)
    return [entry for entry in found if _is_same(entry, event)]


def _match_window(event: SessionEvent) -> tuple[timedelta, timedelta]:
    """Return how long before and after an event another source may report it."""
    if isinstance(event, PromptSubmitted):
        return (_PROMPT_EARLY, _PROMPT_LATE) if event.way else (_PROMPT_LATE, _PROMPT_EARLY)
    return (
        (_START_DELAY, _START_DELAY) if isinstance(event, SessionStarted | ConversationCompacted) else (_TURN_DELAY, _TURN_DELAY)
    )


def _is_same(entry: Entry, event: SessionEvent) -> bool:
    match event:
        case PromptSubmitted():
            # One source appends attachments to the prompt; the other omits them.
            own, known = one_line(redact(event.text)), one_line(entry.body or "")
            return entry.subtype == "prompt" and bool(known) and (own.startswith(known) or (bool(own) and known.startswith(own)))
        case SessionStarted():
            return entry.subtype == "session" and entry.body == f"session {event.source}"
        case TurnEnded():
            return entry.subtype == "turn"
        case ConversationCompacted():
            return entry.subtype == "compacted"
        case _:
            return False


_BODY, _PAYLOAD, _REDACTED = map(COLUMNS.index, ("body", "payload", "redacted"))
_SECRET = re.compile(r"\[redacted:([\w-]+)\]")
_GOAL_CHARACTERS = 200
_STATUS = {CallOutcome.OK: RunStatus.COMPLETED, CallOutcome.FAILED: RunStatus.FAILED}
_CALL_LIMIT = 1000
# Flush at this size: a transcript that was never read may be larger than memory.
_FLUSH_SIZE = 1000


class Recorder:
    """Writer of the events of one program's sessions. With `run_id`, all events go to that run.

    With `values`, a checker and redactor, it counts the secrets that are redacted.
    """

    def __init__(
        self,
        log: Decklog,
        program: str,
        *,
        run_id: str | None = None,
        task_id: str | None = None,
        values: Values | None = None,
    ) -> None:
        self._log = log
        self._program = program
        self._run_id = run_id
        self._task_id = task_id
        self._known_runs: set[str] = set()
        self._bulk = Bulk(log.parts)
        self._queued: list[dict[str, Any]] = []
        self._values = values
        # Runs whose goal is already set.
        self._runs_with_goal: set[str] = set()
        # Whether an editor connection also reports a run, by run id.
        self._has_editor: dict[str, bool] = {}
        # Time ranges of the turns that were charged as a whole, by run id.
        self._charged_turns: dict[str, list[tuple[datetime, datetime]]] = {}
        # Runs that were started here.
        self._started_runs: set[str] = set()
        # Number of new entries and charges.
        self.written = 0
        # Number of redacted secrets by kind.
        self.redacted: Counter[str] = Counter()
        # The run of the last event.
        self.last_run: str | None = None

    def record(self, events: Iterable[SessionEvent]) -> int:
        """Write events in order; return their number."""
        count = 0
        for event in events:
            self._write(event)
            count += 1
            if len(self._queued) >= _FLUSH_SIZE:
                self._flush()
        self._flush()
        return count

    def _find_run_id(self, event: SessionEvent) -> str:
        return self._run_id or session_run_id(self._program, event.session_id, event.agent_id)

    def _flush(self) -> None:
        """Write the queued items. Call this before every lookup in the log and every other write."""
        queued, self._queued = self._queued, []
        if queued:
            items = queued if self._values is None else self._redact(queued, self._values)
            self.written += self._log.db.write(lambda: self._bulk.take(items))

    def _redact(self, queued: list[dict[str, Any]], values: Values) -> list[BulkItem]:
        """Redact entries and count their secrets; a charge has no text."""
        with values.scan_batch(queued):
            items: list[BulkItem] = [one if "model" in one else prepare_entry(values, one) for one in queued]
        for columns in items:
            if isinstance(columns, tuple) and columns[_REDACTED]:
                texts = (columns[place] for place in (_BODY, _PAYLOAD))
                self.redacted.update(kind for text in texts if isinstance(text, str) for kind in _SECRET.findall(text))
        return items

    def _write(self, event: SessionEvent) -> None:
        match event:
            case ConversationCompacted() | TurnEnded() if event.is_read and self._is_reported_by_hooks(event):
                return
            case SessionStarted():
                if not self._begin_session(event):
                    return
            case PromptSubmitted():
                if self._find_run_id(event) not in self._runs_with_goal:
                    self._set_goal(event, _shorten_goal(event.text))
            case TokensUsed():
                self._charge(event)
                return
            case SubagentStarted():
                self._ensure_run(event, goal=_shorten_goal(event.task) or event.role or None, role=event.role)
                return
            case SubagentEnded():
                self._end_run(event)
                return
            case SessionEnded():
                if (event.reason != IMPORTED or self._is_imported(event)) and not self._is_continued(event):
                    if event.reason != IMPORTED:
                        # An imported file may grow and report the result later.
                        self._close_calls(event)
                    self._end_run(event)
                return
        self._write_entry(event)

    def _write_entry(self, event: SessionEvent) -> None:
        """Queue the entry of an event, unless another source has recorded a session start, a turn or a person's prompt."""
        run_id = self._ensure_run(event)
        is_repeatable = isinstance(event, SessionStarted | TurnEnded) or (
            isinstance(event, PromptSubmitted) and event.by == "person"
        )
        if is_repeatable and self._is_recorded_elsewhere(run_id, event):
            return
        entry = build_event_entry(self._program, run_id, event)
        if entry is None:
            raise AssertionError(f"no such event: {event!r}")
        if self._task_id is not None:
            entry["task_id"] = self._task_id
        self._queued.append(entry)

    # The run

    def _ensure_run(self, event: SessionEvent, goal: str | None = None, **facts: Any) -> str:
        """Create the run of an event, and its parent run first, unless they exist."""
        self.last_run = run_id = self._find_run_id(event)
        if run_id in self._known_runs:
            return run_id
        if self._run_id is None:
            parent = session_run_id(self._program, event.session_id) if event.agent_id else None
            if parent is not None and parent not in self._known_runs:
                self._start_run(parent, event, None, None, {})
            self._start_run(run_id, event, parent, goal, facts)
        self._known_runs.add(run_id)
        return run_id

    def _start_run(self, run_id: str, event: SessionEvent, parent: str | None, goal: str | None, facts: dict[str, Any]) -> None:
        self._flush()
        who = f"Sub-agent of {parent}" if parent else f"Session of {self._program}"
        places = {name: storable(place) for name in ("worktree", "branch") if (place := text_or_none(facts.pop(name, None)))}
        metadata = {"program": self._program, "session": event.session_id, **{n: v for n, v in facts.items() if v}}
        run = self._log.runs.start(
            goal or who,
            run_id=run_id,
            parent_run_id=parent,
            started_at=event.at,
            metadata=storable_value(metadata),
            **places,
        )
        self._known_runs.add(run_id)
        if not run.already:
            self._started_runs.add(run_id)

    def _begin_session(self, event: SessionStarted) -> bool:
        """Create or reopen the run of a session; return whether the start is to be recorded."""
        facts = {"worktree": event.cwd, "branch": event.branch, "model": event.model, "version": event.version}
        if event.source == IMPORTED:
            # If the run exists, its first recorder already wrote how the session began.
            if self._find_run_id(event) in self._known_runs:
                return False
            with suppress(NotFound):
                self._log.runs.get(self._find_run_id(event))
                return False
        named = {"transcript": event.transcript, "source": event.source, "process": event.process}
        run_id = self._ensure_run(event, goal=_shorten_goal(event.goal), **named, **facts)
        if self._run_id is None and event.source != "compact":
            self._reopen_run(run_id, event)
        return True

    def _reopen_run(self, run_id: str, event: SessionStarted) -> None:
        run = self._log.runs.get(run_id)
        status = RunStatus.ACTIVE if run.status in ENDED else None
        # A new process runs the session, so the end of the earlier one no longer matters.
        metadata = {name: value for name, value in run.metadata.items() if name != "process"}
        metadata |= {"process": event.process} if event.process else {}
        if metadata.get("source") == IMPORTED:
            # A live recorder now reports the end, so a later import must not.
            metadata["source"] = event.source
        if status is not None or metadata != run.metadata:
            self._flush()
            self._log.runs.update(run_id, status=status, metadata=metadata)

    def _set_goal(self, event: PromptSubmitted, goal: str | None) -> None:
        """Set the goal of a run without one to its first prompt."""
        run_id = self._ensure_run(event, goal=goal)
        is_named = not _is_unnamed(self._log.runs.get(run_id))
        if not is_named and self._run_id is None and goal and (event.by == "person" or event.agent_id):
            self._flush()
            is_named = not _is_unnamed(self._log.runs.update(run_id, goal=goal))
        if is_named:
            self._runs_with_goal.add(run_id)

    def _end_run(self, event: SubagentEnded | SessionEnded) -> None:
        if self._run_id is not None:
            self._write_entry(event)
            return
        run_id = self._ensure_run(event)
        run = self._log.runs.get(run_id)
        # Use the time of the event: an imported session ended then. A later end replaces an earlier one.
        at = event.at and max(event.at, run.started_at)
        is_later = at is not None and run.ended_at is not None and at > run.ended_at
        if run.status not in ENDED or is_later:
            self._flush()
            summary = cut_text(storable(event.text))[0] if event.text else None
            status = run.status if is_later else _STATUS.get(self._find_outcome(run_id, event), RunStatus.CANCELLED)
            self._log.runs.finish(run_id, status=status, summary=summary, ended_at=at)

    def _find_outcome(self, run_id: str, event: SubagentEnded | SessionEnded) -> CallOutcome:
        """Return how a session ended: failed if its last turn ended in an error, which the program's end event omits."""
        if event.outcome is not CallOutcome.OK or not isinstance(event, SessionEnded) or event.reason == IMPORTED:
            return event.outcome
        for entry in self._log.journal.find(run_id, kind=EntryKind.EVENT, subtype="turn", limit=1):
            error = dict_of(entry.payload).get("error")
            return CallOutcome.FAILED if error and error not in STOPPED else CallOutcome.OK
        return event.outcome

    def _is_imported(self, event: SessionEvent) -> bool:
        return self._run_id is None and self._log.runs.get(self._ensure_run(event)).metadata.get("source") == IMPORTED

    # Prompts, calls and charges

    def _charge(self, event: TokensUsed) -> None:
        run_id = self._ensure_run(event)
        if event.way is None and self._is_in_charged_turn(event):
            return
        # Compute the cost first: this flushes the queue.
        cost = self._compute_cost(event, run_id)
        self._queued.append(
            {
                "model": storable(event.model),
                "input_tokens": event.input_tokens,
                "cache_read_tokens": event.cache_read_tokens,
                "cache_create_tokens": event.cache_create_tokens,
                "output_tokens": event.output_tokens,
                "cost_microdollars": cost,
                "run_id": run_id,
                "task_id": self._task_id,
                "agent": self._program,
                "agent_id": storable(event.agent_id or event.session_id),
                "occurred_at": event.at,
                "answer_id": storable(f"{self._program}:{event.answer_id}"),
                "call_site": TURN if event.way else None,
            }
        )
        if event.way is not None:
            self._charged_turns.pop(run_id, None)

    def _is_in_charged_turn(self, event: TokensUsed) -> bool:
        """Return whether an answer falls in a turn that was charged as a whole, before its files were readable."""
        run_id = self._run_id or session_run_id(self._program, event.session_id)
        if run_id not in self._charged_turns:
            self._flush()
            # A run that was started here has no earlier charges.
            self._charged_turns[run_id] = [] if run_id in self._started_runs else _find_charged_turns(self._log, run_id)
        turns = self._charged_turns[run_id]
        return bool(turns) and event.at is not None and any(start <= event.at <= end for start, end in turns)

    def _compute_cost(self, event: TokensUsed, run_id: str) -> int | None:
        """Return the cost of an answer from the session's running total; None means: use the current price list."""
        if event.session_microdollars is None:
            return event.microdollars
        self._flush()
        spent = self._log.ledger.summary(run_id, agent=self._program, agent_id=event.agent_id or event.session_id)
        total = spent["total"]
        assert isinstance(total, dict)
        return max(0, event.session_microdollars - int(total["cost_microdollars"]))

    def _is_recorded_elsewhere(self, run_id: str, event: SessionEvent) -> bool:
        """Return whether another recorder has recorded the same event. Runs with one recorder need no lookup."""
        if event.way is None and run_id not in self._has_editor:
            self._flush()
            self._has_editor[run_id] = _find_newest_connection(self._log, run_id) is not None
        if event.way is None and not self._has_editor[run_id]:
            return False
        self._flush()
        found = _find_same_event(self._log, run_id, event)
        return any(dict_of(entry.payload).get("way") != event.way for entry in found)

    def _is_reported_by_hooks(self, event: ConversationCompacted | TurnEnded) -> bool:
        """Return whether hooks have reported the event of a file. Runs that only files report need no lookup."""
        run_id = self._ensure_run(event)
        if run_id in self._started_runs or self._is_imported(event):
            return False
        self._flush()
        return bool(_find_same_event(self._log, run_id, event))

    def _is_continued(self, event: SessionEnded) -> bool:
        """Return whether a session that ended with its editor connection continues in a later one."""
        if not event.connection:
            return False
        self._flush()
        return _find_newest_connection(self._log, self._find_run_id(event)) not in (None, event.connection)

    # Calls without a reported end

    def _close_calls(self, event: SessionEvent) -> None:
        self._flush()
        for call, tool in self._open_calls(self._find_run_id(event)).items():
            self._write(
                ToolReturned(
                    session_id=event.session_id,
                    agent_id=event.agent_id,
                    call_id=call,
                    tool=tool,
                    outcome=CallOutcome.LOST,
                    output="the session ended before the call did",
                )
            )

    def _open_calls(self, run_id: str) -> dict[str, str]:
        calls: dict[str, str] = {}
        ended: set[str] = set()
        for entry in self._log.journal.find(run_id, kind=EntryKind.TOOL, limit=_CALL_LIMIT):
            facts = dict_of(entry.payload)
            if "outcome" in facts:
                ended.add(str(facts.get("call")))
            elif "call" in facts:
                calls[str(facts["call"])] = str(facts.get("tool") or "tool")
        return {call: tool for call, tool in reversed(calls.items()) if call not in ended}


def _shorten_goal(text: str | None) -> str | None:
    """Return a text shortened to one line, as the goal of a run."""
    return (one_line(storable(text))[:_GOAL_CHARACTERS] or None) if text else None


def _is_unnamed(run: Run) -> bool:
    return run.goal.startswith(("Session of ", "Sub-agent of "))
