"""Hooks that coding agents call at every step of a session. They are fast and never stop an agent by accident."""
