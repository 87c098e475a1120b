"""Codex: its hooks' payloads and its rollouts."""

from decklog.agents.codex.payloads import events_of, transcripts_of
from decklog.agents.codex.rollout import Rollout as reader

__all__ = ["events_of", "reader", "transcripts_of"]
