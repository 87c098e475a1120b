"""Line ranges as other tools write them: 1-based, inclusive, ascending."""

from collections.abc import Iterable
from itertools import pairwise

from decklog.core.errors import Invalid

# First and last line, both included.
Span = tuple[int, int]


def parse_ranges(text: str) -> tuple[Span, ...]:
    """Parse ranges such as `1-4,9,12-20`; raise Invalid unless they are positive and ascending."""
    spans = tuple(_parse_span(part, text) for part in text.split(","))
    for (_, end), (start, _) in pairwise(spans):
        if start <= end:
            raise Invalid(f"line ranges must ascend without overlap: {text}")
    return spans


def _parse_span(part: str, text: str) -> Span:
    first, dash, last = part.partition("-")
    if not _is_number(first) or (dash and not _is_number(last)):
        raise Invalid(f"not a line range: {part or '(empty)'} in {text}")
    start = int(first)
    end = int(last) if dash else start
    if start < 1 or end < start:
        raise Invalid(f"not a line range: {part} in {text}")
    return start, end


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit()


def format_ranges(spans: Iterable[Span]) -> str:
    """Write ranges as `1-4,9,12-20`."""
    return ",".join(str(start) if start == end else f"{start}-{end}" for start, end in spans)


def join_spans(spans: Iterable[Span]) -> tuple[Span, ...]:
    """Sort ranges, and join those that touch or overlap."""
    joined: list[Span] = []
    for start, end in sorted(spans):
        if joined and start <= joined[-1][1] + 1:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        else:
            joined.append((start, end))
    return tuple(joined)
