"""Files beneath one root, and no others."""
