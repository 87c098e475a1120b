"""Tells people what happened: finds what rules tell of, and sends each notice once."""

from decklog.notify.round import Round

__all__ = ["Round"]
