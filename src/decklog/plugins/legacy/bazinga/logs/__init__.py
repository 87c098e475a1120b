"""Interactions, events, reasoning, tokens and skill outputs."""
