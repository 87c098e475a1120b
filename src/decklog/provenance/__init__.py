"""Provenance of lines: who wrote a line, and why."""
