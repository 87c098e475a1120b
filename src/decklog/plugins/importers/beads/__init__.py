"""Beads: issues, their dependencies and comments, and memories."""
