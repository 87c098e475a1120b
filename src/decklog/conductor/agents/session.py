"""One session of an agent: its stream goes on record, its money is charged, and it is ended when it must not go on."""

import signal
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from decklog.agents.entries import cut_of
from decklog.agents.sessions import charge_of_session
from decklog.conductor.agents.calls import CallPairs, Told
from decklog.conductor.agents.description import WEATHER, Description
from decklog.conductor.agents.messages import SessionMessages
from decklog.conductor.agents.questions import Questions
from decklog.conductor.agents.reset_times import stated
from decklog.conductor.agents.stream import Follower, StreamEvent, StreamReader
from decklog.conductor.commands import Running, killed_by

if TYPE_CHECKING:
    from decklog.log import Decklog

# How an agent is ended: kindly first, since it may have something to save.
KINDLY = [(int(signal.SIGINT), 2.0), (int(signal.SIGTERM), 2.0), (int(signal.SIGKILL), 5.0)]
# Its end wakes whoever waits; what it says, and what is wished of it, is looked at this often.
SHORTEST_WAIT, LONGEST_WAIT = 0.004, 2.0
LONGEST_TEXT = 4096
# Why an agent is ended that waits for a person: what it left is kept, and its task waits in its place.
ASKED = "asked"
_ENTRY_KINDS = {"tool": "tool", "result": "tool", "thought": "reasoning"}
# Whoever tells one of these has had an answer of a model. A text may be the program's own.
_ANSWERS = ("tool", "result", "usage", "thought")


@dataclass(frozen=True, kw_only=True)
class Terms:
    """What a session is about, and what ends it."""

    run_id: str
    task_id: str
    worker: str | None = None
    # The folder that it works in.
    folder: str | None = None
    budget_microdollars: int | None = None
    reservation_id: str | None = None


@dataclass
class SessionOutcome:
    """How a session ended.

    `ended_for` is why the conductor ended it, if it did; `error_class` what the agent met, and `until` when that is over, if it
    was stated; `approval` what a person did not answer in time.
    """

    exit_code: int | None = None
    reason: str = ""
    ended_for: str | None = None
    error_class: str | None = None
    # Such as "killed by SIGKILL", by somebody else.
    killed: str | None = None
    until: datetime | None = None
    approval: str | None = None
    session: str | None = None
    text: str = ""
    # The end of what it wrote to standard error.
    stderr: str = ""
    microdollars: int = 0
    is_priced: bool = False
    counts: dict[str, int] = field(default_factory=dict)

    def as_dict(self) -> dict[str, object]:
        """Write it down so that another process can go on from it."""
        return {**vars(self), "until": None if self.until is None else self.until.isoformat()}

    @classmethod
    def from_dict(cls, facts: Mapping[str, Any]) -> "SessionOutcome":
        """Read what `as_dict` wrote."""
        until = facts.get("until")
        return cls(**{**facts, "until": None if until is None else datetime.fromisoformat(until)})

    @property
    def is_weather(self) -> bool:
        """Whether what ended it is nobody's fault."""
        return (
            self.error_class in WEATHER
            or self.killed is not None
            or self.reason in ("abandoned", "lost")
            or self.ended_for in ("stopped", "lease")
        )


class AgentSession:
    """Watches one agent from the beginning of its stream to its end."""

    def __init__(
        self,
        log: "Decklog",
        description: Description,
        terms: Terms,
        running: Running,
        on_answer: Callable[[], object] = lambda: None,
        messages: SessionMessages | None = None,
    ) -> None:
        self._log = log
        self._description = description
        self._terms = terms
        self._running = running
        self._follower = Follower(running.folder)
        self._reader = StreamReader(description)
        self._calls = CallPairs(description)
        self._number = 0
        self._started: str | None = None
        self._model = description.model
        self._overdrawn = False
        self._on_answer = on_answer
        self._is_answered = False
        # Reported by the program: no model has answered.
        self._is_unasked = False
        self._messages = messages
        self._questions = Questions(log, terms.run_id, terms.task_id, answers_of(running.folder))
        self.outcome = SessionOutcome()

    def watch(self, wanted_end: Callable[[], str | None]) -> SessionOutcome:
        """Follow the agent to its end; `wanted_end` gives a reason as soon as it is to be ended."""
        with self._running.watched() as wait:
            ended = self._followed(wanted_end, wait)
        self._take(self._follower.rest())
        self._note_all(self._reader.rest())
        self._append(self._calls.unfinished())
        self.outcome.exit_code, self.outcome.reason = ended.get("exit_code"), ended.get("reason", "refused")
        self.outcome.killed = killed_by(ended) if self.outcome.ended_for is None and "reason" in ended else None
        self._take_errors()
        if "charged" not in self.outcome.counts and self.outcome.error_class not in WEATHER and self._may_have_asked:
            # It told of no price: that something was spent is on record all the same, as a call of unknown price.
            self._charge({})
        return self.outcome

    def _take_errors(self) -> None:
        """Keep the end of what the agent wrote to standard error; it may name the error of an agent that failed."""
        outcome = self.outcome
        outcome.stderr = "\n".join(Follower(self._running.folder, "stderr").rest())[-LONGEST_TEXT:].strip()
        if outcome.exit_code and outcome.error_class is None and outcome.ended_for is None:
            outcome.error_class = self._reader.class_of({"text": outcome.stderr})

    @property
    def _may_have_asked(self) -> bool:
        """Whether a model may have been asked: not if the program reports zero tokens, or failed before it did anything."""
        outcome = self.outcome
        if outcome.reason != "exited":
            return True
        is_failed_start = outcome.exit_code != 0 and not any(outcome.counts.get(kind) for kind in (*_ANSWERS, "text"))
        return not (is_failed_start or self._is_unasked)

    def _followed(self, wanted_end: Callable[[], str | None], wait: Callable[[float], bool]) -> dict[str, Any]:
        """Take in what the agent tells until it has ended; give how that was. Nobody asks as long as its supervisor is there."""
        heard = progressed = time.monotonic()
        seconds, is_ending, may_be_over = SHORTEST_WAIT, False, True
        longest = min(LONGEST_WAIT, 15 * (self._description.stall_minutes or 1))
        while not may_be_over or (ended := self._running.ending()) is None:
            events = self._take(self._follower.lines())
            now = time.monotonic()
            self._questions.look()
            if self._messages is not None:
                self._messages.look()
            # Whoever waits for a person is not to blame for being silent.
            is_waiting = self._questions.newest is not None
            heard = now if events or is_waiting else heard
            progressed = now if is_waiting or any(event.is_progress for event in events) else progressed
            why = None if is_ending else self._why_end(now - heard, now - progressed) or wanted_end()
            if why is not None:
                self.outcome.ended_for, is_ending = why, True
                self.outcome.approval = self._questions.newest if why == ASKED else None
                self._running.stop(KINDLY)
            seconds = SHORTEST_WAIT if events or is_ending else min(seconds * 1.5, longest)
            may_be_over = wait(min(seconds, self._until_stall(now - heard, now - progressed)))
        return ended

    def end(self) -> None:
        """End the agent and wait until nothing of it is left."""
        self._running.stop(KINDLY)
        while self._running.ending() is None:
            time.sleep(SHORTEST_WAIT)

    def _why_end(self, silent: float, without_progress: float) -> str | None:
        """Return why an agent is ended: it is silent, or it only shows that it lives, or it has spent what it had."""
        if self._overdrawn:
            return "budget"
        if self._questions.seconds > 60 * self._description.ask_minutes:
            return ASKED
        if self._description.stall_minutes is None:
            return None
        stall = self._description.stall_minutes * 60
        return "stalled" if silent > stall or without_progress > 2 * stall else None

    def _until_stall(self, silent: float, without_progress: float) -> float:
        """Return how long an agent may still go on as it does, so that it is ended then, and not at the next look."""
        if self._description.stall_minutes is None:
            return LONGEST_WAIT
        stall = self._description.stall_minutes * 60
        return max(SHORTEST_WAIT, min(stall - silent, 2 * stall - without_progress))

    def _take(self, lines: Iterable[str]) -> list[StreamEvent]:
        events = [event for line in lines for event in self._reader.read(line, self._follower.arrived)]
        self._note_all(events)
        return events

    def _note_all(self, events: list[StreamEvent]) -> None:
        self._append(told for event in events if event.is_recorded for told in self._told(event))
        for event in events:
            self._note(event)

    def _append(self, told: Iterable[Told]) -> None:
        entries = [self._entry(one) for one in told]
        if entries:
            self._log.journal.append_many(entries)

    def _told(self, event: StreamEvent) -> Iterable[Told]:
        """Return what is recorded of an event."""
        if event.kind in ("tool", "result"):
            return [*self._calls.told(event), *([Told("unread", event.problem)] if event.problem else ())]
        named = {name: event.taken[name] for name in ("session", "model") if name in event.taken}
        if event.kind == "start":
            if named and named.get("session") == self._started:
                # Some programs name the session with each answer.
                return []
            self._started = named.get("session")
            named |= {"folder": self._terms.folder} if self._terms.folder else {}
        text, cut = cut_of(str(event.taken.get("text") or event.kind))
        if event.problem is not None:
            text = event.problem if event.kind == "noise" else f"{text} ({event.problem})"
        return [Told("unread" if event.kind == "noise" else event.kind, text, {**named, **(event.usage or {}), **cut} or None)]

    def _entry(self, told: Told) -> dict[str, Any]:
        self._number += 1
        return {
            "stream": self._terms.run_id,
            "body": told.body,
            "kind": _ENTRY_KINDS.get(told.kind, "event"),
            "subtype": f"agent.{told.kind}",
            "agent": self._description.name,
            "task_id": self._terms.task_id,
            "payload": told.payload,
            # The stream is read from its start after an adoption: what is on record already is not written again.
            "key": f"{self._running.mark}:{self._number}",
        }

    def _note(self, event: StreamEvent) -> None:
        outcome, taken = self.outcome, event.taken
        outcome.counts[event.kind] = outcome.counts.get(event.kind, 0) + 1
        outcome.session = taken.get("session") or outcome.session
        if event.kind != "thought":
            outcome.text = str(taken.get("text") or outcome.text)[-LONGEST_TEXT:]
        self._model = self._description.model or taken.get("model") or self._model
        # An error that was got over is no longer what the session ended in.
        outcome.error_class = event.error_class if event.kind in ("error", "end") else outcome.error_class
        if outcome.error_class is not None:
            told = taken.get("until") or taken.get("text")
            outcome.until = stated(told, self._log.clock.now()) or outcome.until
        elif event.kind in _ANSWERS and not self._is_answered:
            self._is_answered = True
            self._on_answer()
        if event.usage:
            self._charge(event.usage)
        elif event.usage is not None:
            self._is_unasked = True
        if event.kind == "delivered" and self._messages is not None:
            self._messages.delivered(taken.get("message"))
        if event.kind == "ask":
            self._questions.ask(self._description.name, taken)

    def _charge(self, usage: Any) -> None:
        """Put on record what is spent already; a budget that has no room for it ends the session."""
        number = self.outcome.counts.get("charged", 0) + 1
        self.outcome.counts["charged"] = number
        charge = self._log.ledger.charge(
            self._model or self._description.name,
            **usage,
            run_id=self._terms.run_id,
            task_id=self._terms.task_id,
            # Money is held for whoever claimed the task.
            agent=self._terms.worker or self._description.name,
            agent_id=self._description.name,
            call_site="conductor.work",
            reservation_id=self._terms.reservation_id,
            enforce=False,
            key=f"{self._running.mark}:{number}",
            answer_id=charge_of_session(self.outcome.session, number),
        )
        self.outcome.is_priced = charge.cost_microdollars is not None
        self.outcome.microdollars += charge.cost_microdollars or 0
        limit = self._terms.budget_microdollars
        # A price that is not known has no room in any budget; minutes end such an agent, and not its first charge.
        is_over = charge.overdrew and charge.cost_microdollars is not None
        self._overdrawn = self._overdrawn or is_over or (limit is not None and self.outcome.microdollars > limit)


def answers_of(folder: Path) -> Path:
    """Name the folder in which a session's client finds what a person answers: beside the agent's own, and not its to write."""
    return folder.parent / "answers"
