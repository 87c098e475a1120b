"""Runs, their agents, and their state at any entry."""
