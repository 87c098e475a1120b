"""Runs, their agents, and a run as it was at any moment."""
