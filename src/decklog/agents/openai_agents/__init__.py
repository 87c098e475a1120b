"""OpenAI Agents SDK: conversion of its traces. It keeps no transcripts."""

from typing import Any

from decklog.agents.openai_agents.payloads import events_of
from decklog.agents.reading import Reading, TranscriptReader

__all__ = ["events_of", "reader", "transcripts_of"]


def transcripts_of(_told: dict[str, Any]) -> list[tuple[str, str | None]]:
    """Return no transcripts."""
    return []


def reader(_reading: Reading) -> TranscriptReader:
    """Raise AssertionError: there are no transcripts."""
    raise AssertionError("the OpenAI Agents SDK leaves no transcripts")
