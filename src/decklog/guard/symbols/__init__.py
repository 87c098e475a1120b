"""Find definitions in source files."""
