"""Entries of a run: rows of lists, one entry on its page, and tool calls with their results."""
