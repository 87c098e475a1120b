"""Writes into the settings of agents' programs what makes them tell Decklog what they do, and takes it out again."""
