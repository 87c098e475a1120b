"""Faces of other systems over a Decklog log: programs and prompts written for them go on working."""
