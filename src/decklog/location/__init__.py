"""Find the log of a folder, and check that the user accepted it."""
