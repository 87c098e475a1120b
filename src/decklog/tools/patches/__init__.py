"""Patches and differences."""
