"""Gemini CLI: its hooks' payloads and its chat files."""

from decklog.agents.gemini.chat import Chat as reader
from decklog.agents.gemini.payloads import events_of, transcripts_of

__all__ = ["events_of", "reader", "transcripts_of"]
