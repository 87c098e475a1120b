"""LangGraph on a log: `DecklogSaver` stores the checkpoints of threads, `DecklogStore` the items that graphs share."""

from decklog.plugins.adapters.langgraph.saver import DecklogSaver
from decklog.plugins.adapters.langgraph.store import DecklogStore

__all__ = ["DecklogSaver", "DecklogStore"]
