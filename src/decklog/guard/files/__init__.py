"""Access to the files beneath one root only."""
