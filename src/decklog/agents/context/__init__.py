"""Identity of the calling worker, and its last claim."""
