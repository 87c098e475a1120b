"""Processes of the operating system, and JSON for programs that must start fast."""
