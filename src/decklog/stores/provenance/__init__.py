"""Which session changed which file."""
