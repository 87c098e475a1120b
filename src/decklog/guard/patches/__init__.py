"""Patches and diffs."""
