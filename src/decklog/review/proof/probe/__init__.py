"""What a check's own Python imports when it starts, to watch its tests; it stands alone and knows nothing of Decklog."""
