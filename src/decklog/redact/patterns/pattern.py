"""Patterns on RE2: linear time whatever the input, one byte a character."""

import re2

_MEMORY_BYTES = 128 << 20
_NOWHERE = (-1, -1)
_ANYWHERE = re2._Anchor.UNANCHORED
_HERE = re2._Anchor.ANCHOR_START

Span = tuple[int, int]


class Pattern:
    """A pattern to look for in the bytes of a view.

    It calls the matcher beneath `re2`'s Python objects, which cost several times as much as a short match.
    """

    def __init__(self, source: str) -> None:
        options = re2.Options()
        options.encoding = re2.Options.Encoding.LATIN1
        options.max_mem = _MEMORY_BYTES
        options.log_errors = False
        self._match = re2.compile(source.encode("latin-1"), options)._regexp.Match

    def find(self, data: bytes, start: int) -> Span | None:
        """Find the first match at or after a place."""
        span: Span = self._match(_ANYWHERE, data, start, len(data))[0]
        return None if span == _NOWHERE else span

    def end_at(self, data: bytes, start: int, limit: int) -> int:
        """Give the end of the match that starts exactly here, or the start itself if there is none."""
        span: Span = self._match(_HERE, data, start, limit)[0]
        return start if span == _NOWHERE else span[1]

    def group_at(self, data: bytes, start: int) -> tuple[Span, Span] | None:
        """Give the match that starts exactly here, and its group."""
        spans: list[Span] = self._match(_HERE, data, start, len(data))
        return None if spans[0] == _NOWHERE else (spans[0], spans[1])
