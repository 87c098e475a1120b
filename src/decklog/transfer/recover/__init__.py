"""What can still be read of a damaged file, made into a new log."""
