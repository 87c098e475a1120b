"""Interface of a supported program: conversion of its payloads, and reading of its transcripts."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol

from decklog.agents.events import Answered, SessionEvent

# Event that Decklog reports when a program has exited: it may write its last lines after the last hook.
GONE = "ProgramGone"
# Sums of the four token kinds by model.
Sums = dict[str, list[int]]


class TranscriptReader(Protocol):
    """Reader of the lines of one transcript in order."""

    def events(self, line: dict[str, Any]) -> Iterator[SessionEvent]:
        """Yield the events of a line; unknown kinds of lines have none."""

    def rest(self) -> Iterator[SessionEvent]:
        """Yield events that were held back because they could still change."""

    @property
    def answers(self) -> Sums:
        """Token sums of all answers read so far."""

    def kept(self) -> dict[str, Any]:
        """Return the state that is needed to read on from here."""


class TranscriptProgram(Protocol):
    """Interface of a program's module."""

    def events_of(self, told: dict[str, Any], at: datetime | None) -> list[SessionEvent]:
        """Return the events of a payload."""

    def transcripts_of(self, told: dict[str, Any]) -> list[tuple[str, str | None]]:
        """Return the transcripts that have grown, each with the id of its sub-agent."""

    def reader(self, place: "Reading") -> TranscriptReader:
        """Return a reader for a transcript, from its start or from its stored state."""


@dataclass(kw_only=True)
class Reading:
    """Transcript to read, with its stored state.

    `is_backstop` leaves out events that hooks report without an id. `below` yields the events of sub-agents' transcripts and
    their token sums.
    """

    path: str | None = None
    session_id: str | None = None
    agent_id: str | None = None
    kept: dict[str, Any] = field(default_factory=dict)
    is_backstop: bool = False
    forked_at: float | None = None
    below: Callable[[], Iterator[SessionEvent | Sums]] | None = None
    # Set by the reader when the first lines are copies of another session's lines.
    is_fork: bool = False


def answered(
    place: dict[str, Any], answer_id: str, model: str, tokens: Sequence[int], microdollars: int | None = None
) -> Iterator[Answered]:
    """Yield a charge for the four token counts of an answer; nothing without tokens and cost."""
    if any(tokens) or microdollars:
        given, read, created, output = tokens
        yield Answered(
            **place,
            answer_id=answer_id,
            model=model,
            input_tokens=given,
            cache_read_tokens=read,
            cache_create_tokens=created,
            output_tokens=output,
            microdollars=microdollars,
        )


def add(sums: Sums, model: str, tokens: list[int]) -> None:
    """Add an answer's tokens to the sums of its model."""
    sums[model] = [known + new for known, new in zip(sums.get(model, (0, 0, 0, 0)), tokens, strict=True)]
