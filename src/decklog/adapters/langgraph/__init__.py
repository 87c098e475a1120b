"""LangGraph on a log: `DecklogSaver` keeps the checkpoints of its threads, `DecklogStore` the items that its graphs share."""

from decklog.adapters.langgraph.saver import DecklogSaver
from decklog.adapters.langgraph.store import DecklogStore

__all__ = ["DecklogSaver", "DecklogStore"]
