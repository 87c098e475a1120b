"""Patterns on RE2: linear time whatever the input, one byte a character."""

from collections.abc import Callable
from functools import cache, cached_property
from importlib.util import find_spec

import re2

_MEMORY_BYTES = 96 << 20
# Where Hyperscan looks for most signs, those that are left do their work in this room; in more of it their tables would grow with
# every new text. Where it does not, full tables that begin anew would cost a quarter of the time.
_FEW_SIGNS_BYTES = 24 << 20
_NOWHERE = (-1, -1)
_ANYWHERE = re2._Anchor.UNANCHORED
_HERE = re2._Anchor.ANCHOR_START

Span = tuple[int, int]


def options(memory_bytes: int = _MEMORY_BYTES) -> re2.Options:
    """Give the way of all patterns here: one byte a character, and room for the tables of large ones."""
    given = re2.Options()
    given.encoding = re2.Options.Encoding.LATIN1
    given.max_mem = memory_bytes
    given.log_errors = False
    return given


@cache
def _sign_bytes() -> int:
    """Say how much room the tables of a sign have."""
    return _MEMORY_BYTES if find_spec("hyperscan") is None else _FEW_SIGNS_BYTES


class Pattern:
    """A pattern to look for in the bytes of a view, made ready when it is first asked for.

    It calls the matcher beneath `re2`'s Python objects, which cost several times as much as a short match.
    """

    def __init__(self, source: str) -> None:
        self.source = source

    @cached_property
    def _match(self) -> Callable[[object, bytes, int, int], list[Span]]:
        return re2.compile(self.source.encode("latin-1"), options())._regexp.Match  # type: ignore[no-any-return]

    def find(self, data: bytes, start: int) -> Span | None:
        """Find the first match at or after a place."""
        span = self._match(_ANYWHERE, data, start, len(data))[0]
        return None if span == _NOWHERE else span

    def end_at(self, data: bytes, start: int, limit: int) -> int:
        """Give the end of the match that starts exactly here, or the start itself if there is none."""
        span = self._match(_HERE, data, start, limit)[0]
        return start if span == _NOWHERE else span[1]

    def group_at(self, data: bytes, start: int) -> tuple[Span, Span] | None:
        """Give the match that starts exactly here, and its group."""
        spans = self._match(_HERE, data, start, len(data))
        return None if spans[0] == _NOWHERE else (spans[0], spans[1])


class Sign:
    """A pattern that is only asked whether it is in a text, which takes half the time of asking where."""

    def __init__(self, source: str) -> None:
        self.source = source

    @cached_property
    def look(self) -> Callable[[bytes], list[int]]:
        """Give the function that gives an empty list for a text without the sign."""
        alone = re2.Set.SearchSet(options(_sign_bytes()))
        alone.Add(self.source.encode("latin-1"))
        alone.Compile()
        # Beneath the Python object, as for `Pattern`. It does not give up for want of room: full tables begin anew.
        return alone._set.Match  # type: ignore[no-any-return]
