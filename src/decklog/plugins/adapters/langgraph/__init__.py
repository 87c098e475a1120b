"""LangGraph on a log: `DecklogSaver` keeps the checkpoints of its threads, `DecklogStore` the items that its graphs share."""

from decklog.plugins.adapters.langgraph.saver import DecklogSaver
from decklog.plugins.adapters.langgraph.store import DecklogStore

__all__ = ["DecklogSaver", "DecklogStore"]
