"""A secret that was found."""

from typing import NamedTuple


class Found(NamedTuple):
    """Where a secret stands in a view, and of which kind it is."""

    start: int
    end: int
    kind: str
