"""Interface of a supported program: conversion of its payloads, and reading of its transcripts."""

from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any, Protocol

from decklog.agents.events import SessionEvent

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


class Reading:
    """Transcript to read, with its stored state.

    `is_backstop` leaves out events that hooks report without an id. `below` yields the events of sub-agents' transcripts and
    their token sums.
    """

    def __init__(
        self,
        *,
        path: str | None = None,
        session_id: str | None = None,
        agent_id: str | None = None,
        kept: dict[str, Any] | None = None,
        is_backstop: bool = False,
        forked_at: float | None = None,
        below: Callable[[], Iterator[SessionEvent | Sums]] | None = None,
    ) -> None:
        self.path = path
        self.session_id = session_id
        self.agent_id = agent_id
        self.kept = kept or {}
        self.is_backstop = is_backstop
        self.forked_at = forked_at
        # Set by the reader when the first lines are copies of another session's lines.
        self.is_fork = False
        self.below = below


def add(sums: Sums, model: str, tokens: list[int]) -> None:
    """Add an answer's tokens to the sums of its model."""
    sums[model] = [known + new for known, new in zip(sums.get(model, (0, 0, 0, 0)), tokens, strict=True)]
