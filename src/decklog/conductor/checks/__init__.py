"""Examine a change: its paths, the checks on its tree, and the findings that only a person may accept."""
