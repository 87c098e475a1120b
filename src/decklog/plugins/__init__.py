"""What connects Decklog to other systems: importers, adapters and the older systems."""
