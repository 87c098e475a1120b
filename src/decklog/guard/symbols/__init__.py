"""Definitions in source files, by whichever reader is there."""
