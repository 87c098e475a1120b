"""Lines of the repository by origin: commits, a file, and why a line is as it is."""
