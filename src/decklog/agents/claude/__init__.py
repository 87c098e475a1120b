"""Claude Code: its hooks' payloads and its transcripts."""

from decklog.agents.claude.payloads import events_of, transcripts_below, transcripts_of
from decklog.agents.claude.transcript import Transcript as reader
from decklog.agents.claude.transcript import may_tell

__all__ = ["events_of", "may_tell", "reader", "transcripts_below", "transcripts_of"]
