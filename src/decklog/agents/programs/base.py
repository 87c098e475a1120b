"""Interface of a supported program, and what the programs share."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol

from decklog.agents.events import CallOutcome, SessionEvent, TokensUsed
from decklog.agents.texts import text_or_none

# Event that Decklog reports when a program has exited: it may write its last lines after the last hook.
PROGRAM_EXITED = "ProgramGone"
# Sums of the four token kinds by model.
TokenSums = dict[str, list[int]]
Payload = dict[str, Any]
# Fields that all events of a payload or line have in common.
Common = dict[str, Any]


@dataclass(kw_only=True)
class TranscriptInput:
    """Transcript to read, with its stored state.

    `is_backstop` leaves out events that hooks report without an id. `below` yields the events of sub-agents' transcripts and
    their token sums.
    """

    path: str | None = None
    session_id: str | None = None
    agent_id: str | None = None
    stored_state: dict[str, Any] = field(default_factory=dict)
    is_backstop: bool = False
    forked_at: float | None = None
    read_subagents: Callable[[], Iterator[SessionEvent | TokenSums]] | None = None
    # Set by the reader when the first lines are copies of another session's lines.
    is_fork: bool = False


class TranscriptReader(ABC):
    """Reader of the lines of one transcript in order. `state` has what is needed to read on later, as JSON values."""

    # Search function for lines that may have events; None reads all lines.
    has_events: Callable[[bytes], object] | None = None

    def __init__(self, reading: TranscriptInput) -> None:
        self.reading = reading
        self.state: dict[str, Any] = {"answers": {}, **deepcopy(reading.stored_state)}

    @property
    def answers(self) -> TokenSums:
        """Token sums of all answers read so far."""
        found: TokenSums = self.state["answers"]
        return found

    @abstractmethod
    def events(self, line: dict[str, Any]) -> Iterator[SessionEvent]:
        """Yield the events of a line; unknown kinds of lines have none."""

    def pending_events(self) -> Iterator[SessionEvent]:
        """Yield events that were held back because they could still change."""
        yield from ()


class TranscriptProgram(Protocol):
    """Interface of a program's module."""

    def events_of(self, payload: Payload, at: datetime | None) -> list[SessionEvent]:
        """Return the events of a payload."""

    def transcripts_of(self, payload: Payload) -> list[tuple[str, str | None]]:
        """Return the transcripts that have grown, each with the id of its sub-agent."""

    def reader(self, reading: TranscriptInput) -> TranscriptReader:
        """Return a reader for a transcript, from its start or from its stored state."""


def common_fields(payload: Payload, at: datetime | None) -> Common | None:
    """Return the fields that all events of a payload have; None for a payload without a session."""
    session = text_or_none(payload.get("session_id"))
    return None if session is None else {"session_id": session, "at": at, "agent_id": text_or_none(payload.get("agent_id"))}


def arguments_of(value: Any) -> dict[str, Any]:
    """Return the arguments of a call; a value that is no object becomes the only argument."""
    return value if isinstance(value, dict) else {"input": value}


def outcome_of(payload: Payload) -> CallOutcome:
    """Return the outcome that a payload names; an unknown one counts as success."""
    found = payload.get("outcome")
    return CallOutcome(found) if found in tuple(CallOutcome) else CallOutcome.OK


def number_id(name: str, count: int) -> str:
    """Return the id of a text in an answer: the answer's id, with a number from the second text on."""
    return name if count == 1 else f"{name}:{count}"


def usage_events(
    common: Common, answer_id: str, model: str, tokens: Sequence[int], microdollars: int | None = None
) -> Iterator[TokensUsed]:
    """Yield a charge for the four token counts of an answer; nothing without tokens and cost."""
    if any(tokens) or microdollars:
        given, read, created, output = tokens
        yield TokensUsed(
            **common,
            answer_id=answer_id,
            model=model,
            input_tokens=given,
            cache_read_tokens=read,
            cache_create_tokens=created,
            output_tokens=output,
            microdollars=microdollars,
        )


def add_tokens(sums: TokenSums, model: str, tokens: list[int]) -> None:
    """Add an answer's tokens to the sums of its model."""
    sums[model] = [known + new for known, new in zip(sums.get(model, (0, 0, 0, 0)), tokens, strict=True)]
