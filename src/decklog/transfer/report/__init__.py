"""A run as a page that a person can read."""
