"""Coding agents: described by data, started under a supervisor, watched, and adopted after a crash."""
