"""Tells by one pass which of several patterns a text has."""

from collections.abc import Callable, Collection, Sequence
from functools import cached_property

import re2

from decklog.redact.patterns.pattern import options


class Presence:
    """Several patterns, asked for together: most texts have none of them, and one look says so.

    Unlike a single pattern it has one way of matching only, whose tables are begun anew when they outgrow their room.
    """

    def __init__(self, sources: Sequence[str]) -> None:
        self._sources = sources

    @cached_property
    def of(self) -> Callable[[bytes], Collection[int]]:
        """Give the numbers of the patterns that are in a text."""
        together = re2.Set.SearchSet(options())
        for source in self._sources:
            together.Add(source.encode("latin-1"))
        together.Compile()
        return together._set.Match  # type: ignore[no-any-return]
