"""Commands of the memory besides its verbs."""

from decklog.cli.commands.memory.kept_model import model

__all__ = ["model"]
