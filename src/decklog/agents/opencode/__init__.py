"""opencode: the payloads of Decklog's plugin."""

from decklog.agents.claude import reader, transcripts_of
from decklog.agents.opencode.payloads import events_of

__all__ = ["events_of", "reader", "transcripts_of"]
