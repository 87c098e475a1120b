"""Words and vectors: what is searched, spelled for both engines."""
