"""Claude Code: its hooks' payloads and its transcripts."""

from decklog.agents.claude.payloads import events_of, transcripts_below, transcripts_of
from decklog.agents.claude.transcript import Transcript as reader
from decklog.agents.claude.transcript import has_events

__all__ = ["events_of", "has_events", "reader", "transcripts_below", "transcripts_of"]
