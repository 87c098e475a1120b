"""The short way on the command line: its words, its options and how it answers."""
