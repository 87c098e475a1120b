"""Commands of the conductor."""
