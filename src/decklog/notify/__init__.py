"""Notify people of events that match rules; send each notice once."""

from decklog.notify.round import Round

__all__ = ["Round"]
