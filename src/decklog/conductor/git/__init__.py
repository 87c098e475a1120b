"""Git as the conductor uses it: on objects without settings, and on refs under `refs/decklog/`."""
