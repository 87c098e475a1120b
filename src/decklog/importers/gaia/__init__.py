"""gaia-coder's homes."""
