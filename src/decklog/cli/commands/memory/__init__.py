"""The memory for a person: what its verbs do not say of themselves."""

from decklog.cli.commands.memory.kept_model import model

__all__ = ["model"]
