"""Patterns on RE2, and what can be told from a text's bytes before one is tried."""
