"""Claude Code: its hooks' payloads and its transcripts."""

from decklog.agents.claude.payloads import events_of, transcripts_below, transcripts_of
from decklog.agents.claude.transcript import Transcript as reader

__all__ = ["events_of", "reader", "transcripts_below", "transcripts_of"]
