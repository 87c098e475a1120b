"""Recorded sessions as people and agents read them."""
