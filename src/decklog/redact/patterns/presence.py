"""Tells which of several ways of finding secrets a text need be searched by."""

import re
from collections.abc import Callable, Sequence
from functools import cached_property

from decklog.redact.patterns.pattern import Sign

_COUNTED = re.compile(r"\{(\d+)(?:(,)(\d*))?\}")
_LEAST = 4
_DIGITS = b"0123456789"

Look = tuple[Callable[[bytes], list[int]], tuple[int, ...]]


def loosened(pattern: str) -> str:
    """Give a pattern that also matches where something stands more often, or less often, than a few times.

    What counts up to a hundred needs a hundred times the tables, and is new to them with nearly every text.
    """
    return _COUNTED.sub(_uncounted, pattern)


def _uncounted(count: re.Match[str]) -> str:
    least, most = int(count[1]), int(count[3] or 0) if count[2] else int(count[1])
    if least <= _LEAST and 0 < most <= _LEAST:
        return count[0]
    return ("*", "+")[least] if least < 2 else f"{{{min(least, _LEAST)},}}"


class Presence:
    """The signs of several ways of finding, in groups that are looked for together: most texts have none of them.

    All in one group would be one look, whose tables have to tell apart whatever comes together in a text, and grow without end.
    """

    def __init__(self, groups: Sequence[dict[int, str]], shapes: dict[int, str] | None = None) -> None:
        """Take the signs by their numbers, and for one alone in its group what a text must have besides, with a digit in it."""
        self._shapes = {number: Sign(loosened(shape)) for number, shape in (shapes or {}).items()}
        self._groups = [(Sign("|".join(f"(?:{loosened(sign)})" for sign in group.values())), tuple(group)) for group in groups]

    @cached_property
    def looks(self) -> list[Look]:
        """Give each group's look at a text, which gives something if its sign is there, and the numbers of the group."""
        return [(self._look(sign, numbers), numbers) for sign, numbers in self._groups]

    def _look(self, sign: Sign, numbers: tuple[int, ...]) -> Callable[[bytes], list[int]]:
        shape = self._shapes.get(numbers[0])
        if shape is None:
            return sign.look
        first, second = shape.look, sign.look
        # The tables of what it must have besides are small, and most texts have none of it.
        return lambda data: (len(data.translate(None, _DIGITS)) != len(data) and first(data) and second(data)) or []

    def of(self, data: bytes) -> list[int]:
        """Give the numbers of those whose sign, or that of another in its group, is in a text."""
        return [number for look, numbers in self.looks if look(data) for number in numbers]
