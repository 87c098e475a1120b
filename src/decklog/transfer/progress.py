"""How long work says how far it is."""

from collections.abc import Callable

# Called with what is being done, how much of it is done, and how much there is (0 when that is not known).
Progress = Callable[[str, int, int], None]


def silent(_what: str, _done: int, _whole: int) -> None:
    """Say nothing."""
