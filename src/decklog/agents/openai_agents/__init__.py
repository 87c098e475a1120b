"""The OpenAI Agents SDK: what its traces tell. Its traces have no files beside them."""

from typing import TYPE_CHECKING

from decklog.agents.openai_agents.payloads import events_of

if TYPE_CHECKING:
    from typing import Any

    from decklog.agents.reading import Reading, TranscriptReader

__all__ = ["events_of", "reader", "transcripts_of"]


def transcripts_of(_told: "dict[str, Any]") -> list[tuple[str, str | None]]:
    """Name no transcripts."""
    return []


def reader(_reading: "Reading") -> "TranscriptReader":
    """Read nothing: there are no transcripts."""
    raise AssertionError("the OpenAI Agents SDK leaves no transcripts")
