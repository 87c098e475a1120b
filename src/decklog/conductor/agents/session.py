"""One session of an agent: record its output, charge its cost, pass on questions and messages, and end it if it must stop."""

import hashlib
import json
import os
import signal
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from decklog.agents.entries import cut_text
from decklog.agents.sessions import charge_of_session
from decklog.conductor.agents.calls import CallPairs, SessionEntry
from decklog.conductor.agents.description import OUTAGES, Description
from decklog.conductor.agents.stream import (
    FIGURES,
    Follower,
    StreamEvent,
    StreamReader,
    model_in_transcript,
    parse_reset_time,
    tokens_in_transcript,
)
from decklog.conductor.commands import Running, killed_by
from decklog.log import Decklog
from decklog.records.values import to_json
from decklog.stores.approvals.approval import Approval
from decklog.stores.approvals.inbox import Message
from decklog.stores.results.approvals import cause_of

# The signals that end an agent: first SIGINT, so that it can save its work.
KINDLY = [(int(signal.SIGINT), 2.0), (int(signal.SIGTERM), 2.0), (int(signal.SIGKILL), 5.0)]
# How often its output is read. Its end wakes the thread earlier.
SHORTEST_WAIT, LONGEST_WAIT = 0.004, 2.0
LONGEST_TEXT = 4096
# The end reason of an agent that waits too long for a person; its task is suspended.
ASKED = "asked"
# How often new messages and answers are read.
_MESSAGE_SECONDS, _QUESTION_SECONDS = 1.0, 0.5
_ENTRY_KINDS = {"tool": "tool", "result": "tool", "thought": "reasoning"}
# Events that prove an answer of a model. A text may come from the program itself.
_ANSWERS = ("tool", "result", "usage", "thought")


@dataclass(frozen=True, kw_only=True)
class Terms:
    """The run, task and budget of a session."""

    run_id: str
    task_id: str
    worker: str | None = None
    # Its working folder.
    folder: str | None = None
    budget_microdollars: int | None = None
    reservation_id: str | None = None


@dataclass
class SessionOutcome:
    """How a session ended.

    `ended_for` is the conductor's reason to end it, `error_class` the error that the agent reported, `until` the stated end of
    an outage, and `approval` a question that nobody answered in time.
    """

    exit_code: int | None = None
    reason: str = ""
    ended_for: str | None = None
    error_class: str | None = None
    # For example "killed by SIGKILL", if someone else killed it.
    killed: str | None = None
    until: datetime | None = None
    approval: str | None = None
    session: str | None = None
    text: str = ""
    # The end of its standard error.
    stderr: str = ""
    microdollars: int = 0
    is_priced: bool = False
    counts: dict[str, int] = field(default_factory=dict)

    def as_dict(self) -> dict[str, object]:
        """Return it as it is recorded, for another process."""
        return {**vars(self), "until": None if self.until is None else self.until.isoformat()}

    @classmethod
    def from_dict(cls, facts: Mapping[str, Any]) -> "SessionOutcome":
        """Return the outcome that `as_dict` wrote."""
        until = facts.get("until")
        return cls(**{**facts, "until": None if until is None else datetime.fromisoformat(until)})

    @property
    def is_outage(self) -> bool:
        """Whether an outage ended it, which uses no attempt."""
        return (
            self.error_class in OUTAGES
            or self.killed is not None
            or self.reason in ("abandoned", "lost")
            or self.ended_for in ("stopped", "lease")
        )


@dataclass
class SessionMessages:
    """The messages of people to one session. `find_pending` lists the undelivered ones, `on_delivery` records a delivery."""

    folder: Path
    find_pending: Callable[[], Sequence[Message]]
    on_delivery: Callable[[str], object]
    # Whether the agent's client accepts messages while it works.
    has_live_client: bool
    _checked_at: float = -_MESSAGE_SECONDS

    def write_new(self) -> None:
        """Write new messages to the client's folder."""
        if not self.has_live_client or time.monotonic() - self._checked_at < _MESSAGE_SECONDS:
            return
        self._checked_at = time.monotonic()
        for message in self.find_pending():
            path = self.folder / f"message-{message.id}.json"
            if not path.exists():
                _write_json(path, {"id": message.id, "text": message.body})

    def mark_delivered(self, message_id: object) -> None:
        """Record that the client delivered a message to the agent, if the message exists."""
        if (self.folder / f"message-{os.path.basename(str(message_id))}.json").exists():
            self.on_delivery(str(message_id))


class Questions:
    """The open questions of one session. An approval is for exactly this act in this task, also in later attempts."""

    def __init__(self, log: Decklog, run_id: str, task_id: str, folder: Path) -> None:
        self._log = log
        self._run_id = run_id
        self._task_id = task_id
        self._folder = folder
        self._open: dict[int, str] = {}
        self._since = self._checked_at = 0.0

    @property
    def seconds(self) -> float:
        """The seconds since the first open question was asked."""
        return time.monotonic() - self._since if self._open else 0.0

    @property
    def newest(self) -> str | None:
        """The newest open approval."""
        return list(self._open.values())[-1] if self._open else None

    def ask(self, agent: str, question: Mapping[str, Any]) -> None:
        """Ask a person, unless the question is answered already, as when an adopted stream is read again."""
        number, about = int(question["number"]), question.get("about")
        if self._path(number).exists():
            return
        digest = hashlib.sha256(to_json(about).encode()).hexdigest()
        approval = self._log.approvals.ask(
            self._run_id,
            f"Let {agent} do this? {question.get('text')}",
            by="conductor",
            about=about,
            task_id=self._task_id,
            source="conductor.permission",
            payload={**cause_of(question.get("cause")), "tier": self._log.trust.status()["tier"]},
            key=f"permission:{self._task_id}:{digest}",
        )
        self._since = self._since if self._open else time.monotonic()
        self._open[number] = approval.id
        self._checked_at = 0.0

    def write_answers(self) -> None:
        """Write the answers of people to the client's folder."""
        if not self._open or time.monotonic() - self._checked_at < _QUESTION_SECONDS:
            return
        self._checked_at = time.monotonic()
        for number, approval_id in list(self._open.items()):
            approval = self._log.approvals.get(approval_id)
            if approval.state != "open":
                _write_json(self._path(number), self._answer(approval))
                del self._open[number]

    def _answer(self, approval: Approval) -> dict[str, object]:
        # With a registered owner, only signed approvals count.
        is_granted = self._log.approvals.granted_for(self._run_id, str(approval.subject_digest)) is not None
        is_allowed = approval.state == "granted" and is_granted
        return {"allow": is_allowed, "reason": approval.rationale or f"a person has not allowed it ({approval.state.value})"}

    def _path(self, number: int) -> Path:
        return self._folder / f"{number}.json"


def _write_json(path: Path, content: Mapping[str, object]) -> None:
    """Write a file atomically."""
    new = path.with_suffix(f".{os.getpid()}")
    new.write_text(json.dumps(content), encoding="utf-8")
    new.rename(path)


@dataclass
class AgentSession:
    """Watches one agent from the start of its output to its end."""

    log: Decklog
    description: Description
    terms: Terms
    running: Running
    on_answer: Callable[[], object] = lambda: None
    messages: SessionMessages | None = None
    outcome: SessionOutcome = field(default_factory=SessionOutcome)

    def __post_init__(self) -> None:
        self._follower = Follower(self.running.folder)
        self._reader = StreamReader(self.description)
        self._calls = CallPairs(self.description)
        self._questions = Questions(self.log, self.terms.run_id, self.terms.task_id, answers_folder(self.running.folder))
        self._number = 0
        self._started: str | None = None
        self._model = self.description.model
        self._is_over_budget = self._is_answered = False
        # Whether the program reported zero tokens, so that no model has answered.
        self._used_no_tokens = False

    def watch(self, end_reason: Callable[[], str | None]) -> SessionOutcome:
        """Follow the agent to its end; `end_reason` gives a reason as soon as it is to be ended."""
        with self.running.watched() as wait:
            ended = self._follow(end_reason, wait)
        self._read_events(self._follower.rest())
        self._apply_events(self._reader.rest())
        self._append(self._calls.unfinished())
        self.outcome.exit_code, self.outcome.reason = ended.get("exit_code"), ended.get("reason", "refused")
        self.outcome.killed = killed_by(ended) if self.outcome.ended_for is None and "reason" in ended else None
        self._read_errors()
        if "charged" not in self.outcome.counts:
            self._charge_unreported()
        return self.outcome

    def _charge_unreported(self) -> None:
        """Charge a session that reported no spending, as if ended early: by its transcript, or as a call of unknown price."""
        session, transcript = self.outcome.session, self.description.transcript
        found = tokens_in_transcript(self._home, transcript, session) if transcript and session is not None else {}
        for model, tokens in found.items():
            self._charge(dict(zip(FIGURES, tokens, strict=True)), model)
        if not found and self.outcome.error_class not in OUTAGES and self._may_have_called_model:
            self._charge({})

    @property
    def _home(self) -> Path:
        """The private home of its program, where it has its transcripts."""
        return self.running.folder / "home"

    def _read_errors(self) -> None:
        """Keep the end of standard error, which may explain a failure."""
        outcome = self.outcome
        outcome.stderr = "\n".join(Follower(self.running.folder, "stderr").rest())[-LONGEST_TEXT:].strip()
        if outcome.exit_code and outcome.error_class is None and outcome.ended_for is None:
            outcome.error_class = self._reader.class_of({"text": outcome.stderr})

    @property
    def _may_have_called_model(self) -> bool:
        """Whether a model may have been called: not if the program reports zero tokens or failed at its start."""
        outcome = self.outcome
        if outcome.reason != "exited":
            return True
        is_failed_start = outcome.exit_code != 0 and not any(outcome.counts.get(kind) for kind in (*_ANSWERS, "text"))
        return not (is_failed_start or self._used_no_tokens)

    def _follow(self, end_reason: Callable[[], str | None], wait: Callable[[float], bool]) -> dict[str, Any]:
        """Read the agent's output until its end; return how it ended."""
        last_event = last_progress = time.monotonic()
        seconds, is_ending, may_be_over = SHORTEST_WAIT, False, True
        longest = min(LONGEST_WAIT, 15 * (self.description.stall_minutes or 1))
        while not may_be_over or (ended := self.running.ending()) is None:
            events = self._read_events(self._follower.lines())
            now = time.monotonic()
            self._questions.write_answers()
            if self.messages is not None:
                self.messages.write_new()
            # An agent that waits for a person is not stalled.
            is_waiting = self._questions.newest is not None
            last_event = now if events or is_waiting else last_event
            last_progress = now if is_waiting or any(event.is_progress for event in events) else last_progress
            reason = None if is_ending else self._find_end_reason(now - last_event, now - last_progress) or end_reason()
            if reason is not None:
                self.outcome.ended_for, is_ending = reason, True
                self.outcome.approval = self._questions.newest if reason == ASKED else None
                self.running.stop(KINDLY)
            seconds = SHORTEST_WAIT if events or is_ending else min(seconds * 1.5, longest)
            may_be_over = wait(min(seconds, self._until_stall(now - last_event, now - last_progress)))
        return ended

    def end(self) -> None:
        """End the agent and wait until all of its processes have ended."""
        self.running.stop(KINDLY)
        while self.running.ending() is None:
            time.sleep(SHORTEST_WAIT)

    def _find_end_reason(self, silent: float, without_progress: float) -> str | None:
        """Return why to end the agent: its budget is used up, its question was not answered, or it is stalled."""
        if self._is_over_budget:
            return "budget"
        if self._questions.seconds > 60 * self.description.ask_minutes:
            return ASKED
        if self.description.stall_minutes is None:
            return None
        stall = self.description.stall_minutes * 60
        return "stalled" if silent > stall or without_progress > 2 * stall else None

    def _until_stall(self, silent: float, without_progress: float) -> float:
        """Return the seconds until an agent without output counts as stalled."""
        if self.description.stall_minutes is None:
            return LONGEST_WAIT
        stall = self.description.stall_minutes * 60
        return max(SHORTEST_WAIT, min(stall - silent, 2 * stall - without_progress))

    def _read_events(self, lines: Iterable[str]) -> list[StreamEvent]:
        events = [event for line in lines for event in self._reader.read(line, self._follower.arrived)]
        self._apply_events(events)
        return events

    def _apply_events(self, events: list[StreamEvent]) -> None:
        self._append(entry for event in events if event.is_recorded for entry in self._build_entries(event))
        for event in events:
            self._apply_event(event)

    def _append(self, found: Iterable[SessionEntry]) -> None:
        entries = [self._build_row(one) for one in found]
        if entries:
            self.log.journal.append_many(entries)

    def _build_entries(self, event: StreamEvent) -> Iterable[SessionEntry]:
        """Return the entries to record of an event."""
        if event.kind in ("tool", "result"):
            return [*self._calls.entries(event), *([SessionEntry("unread", event.problem)] if event.problem else ())]
        named = {name: event.taken[name] for name in ("session", "model") if name in event.taken}
        if event.kind == "start":
            if named and named.get("session") == self._started:
                # Some programs name the session with each answer.
                return []
            self._started = named.get("session")
            named |= {"folder": self.terms.folder} if self.terms.folder else {}
        text, cut = cut_text(str(event.taken.get("text") or event.kind))
        if event.problem is not None:
            text = event.problem if event.kind == "noise" else f"{text} ({event.problem})"
        return [
            SessionEntry("unread" if event.kind == "noise" else event.kind, text, {**named, **(event.usage or {}), **cut} or None)
        ]

    def _build_row(self, entry: SessionEntry) -> dict[str, Any]:
        self._number += 1
        return {
            "stream": self.terms.run_id,
            "body": entry.body,
            "kind": _ENTRY_KINDS.get(entry.kind, "event"),
            "subtype": f"agent.{entry.kind}",
            "agent": self.description.name,
            "task_id": self.terms.task_id,
            "payload": entry.payload,
            # After an adoption the stream is read from its start; recorded entries are not written again.
            "key": f"{self.running.mark}:{self._number}",
        }

    def _apply_event(self, event: StreamEvent) -> None:
        outcome, taken = self.outcome, event.taken
        outcome.counts[event.kind] = outcome.counts.get(event.kind, 0) + 1
        outcome.session = taken.get("session") or outcome.session
        if event.kind != "thought":
            outcome.text = str(taken.get("text") or outcome.text)[-LONGEST_TEXT:]
        self._model = self.description.model or taken.get("model") or self._model
        # A later event replaces an error that the agent recovered from.
        outcome.error_class = event.error_class if event.kind in ("error", "end") else outcome.error_class
        if outcome.error_class is not None:
            stated = taken.get("until") or taken.get("text")
            outcome.until = parse_reset_time(stated, self.log.clock.now()) or outcome.until
        elif event.kind in _ANSWERS and not self._is_answered:
            self._is_answered = True
            self.on_answer()
        if event.usage:
            self._charge(event.usage)
        elif event.usage is not None:
            self._used_no_tokens = True
        if event.kind == "delivered" and self.messages is not None:
            self.messages.mark_delivered(taken.get("message"))
        if event.kind == "ask":
            self._questions.ask(self.description.name, taken)

    def _charge(self, usage: Any, model: str | None = None) -> None:
        """Record spending. A session over its budget is ended."""
        number = self.outcome.counts.get("charged", 0) + 1
        self.outcome.counts["charged"] = number
        charge = self.log.ledger.charge(
            model or self._named_model() or self.description.name,
            **usage,
            run_id=self.terms.run_id,
            task_id=self.terms.task_id,
            # The reservation is for the worker that claimed the task.
            agent=self.terms.worker or self.description.name,
            agent_id=self.description.name,
            call_site="conductor.work",
            reservation_id=self.terms.reservation_id,
            enforce=False,
            key=f"{self.running.mark}:{number}",
            answer_id=charge_of_session(self.outcome.session, number),
        )
        self.outcome.is_priced = charge.cost_microdollars is not None
        self.outcome.microdollars += charge.cost_microdollars or 0
        limit = self.terms.budget_microdollars
        # An unknown price does not end the session; its time limit does.
        is_over = charge.overdrew and charge.cost_microdollars is not None
        self._is_over_budget = self._is_over_budget or is_over or (limit is not None and self.outcome.microdollars > limit)

    def _named_model(self) -> str | None:
        """Return the model of the session; where the output names none, that of the transcript in the private home."""
        if self._model is None and self.description.transcript and self.outcome.session is not None:
            self._model = model_in_transcript(self._home, self.description.transcript, self.outcome.session)
        return self._model


def answers_folder(folder: Path) -> Path:
    """Return the folder with people's answers to a session. The agent can't write to it."""
    return folder.parent / "answers"
