"""A log as JSON lines, in files that git can merge."""
