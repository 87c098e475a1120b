"""Decklog: the system of record for autonomous coding agents."""
