"""bazinga-db's command line: its words, its answers and where it looks for a project."""
