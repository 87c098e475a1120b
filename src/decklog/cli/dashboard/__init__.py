"""The dashboard as the command line starts it."""
