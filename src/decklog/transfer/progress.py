"""Progress of long work, and what it did."""

from collections.abc import Callable
from dataclasses import asdict
from typing import Any

# Called with what is being done, how much of it is done, and how much there is (0 when that is not known).
Progress = Callable[[str, int, int], None]


def silent(_what: str, _done: int, _whole: int) -> None:
    """Report nothing."""


class WorkResult:
    """The base of the data classes with what some work did."""

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)  # type: ignore[call-overload, no-any-return]
