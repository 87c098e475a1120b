"""Feedback and its mending on the command line."""
