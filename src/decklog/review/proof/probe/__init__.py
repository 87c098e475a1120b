"""The probe: a check's own Python imports it at its start to watch its tests. It does not use Decklog."""
