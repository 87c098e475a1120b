"""Build tools: what they are told on the command line, and the files that they run."""
