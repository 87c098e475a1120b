"""Examines a change: what it touches, what the checks say of its tree, and what only a person may let pass."""
