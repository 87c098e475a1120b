"""Semantic search: a small sentence model that runs on numpy. Only `decklog memory model install` fetches anything."""
