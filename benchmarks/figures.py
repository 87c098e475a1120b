"""A figure that was taken several times: the median, and how far the others lie around it."""

import statistics
from collections.abc import Callable, Iterable

# Of fewer, the least and the most say more than quarters do.
_MANY = 8


class Figure(float):
    """The median of what was seen in turns; what is worked out of it keeps what was seen."""

    seen: tuple[float, ...]

    def __new__(cls, seen: Iterable[float]) -> "Figure":
        values = tuple(seen)
        made = super().__new__(cls, statistics.median(values))
        made.seen = values
        return made

    def __truediv__(self, other: float) -> "Figure":
        return self._worked_out(lambda one: one / other)

    def __rtruediv__(self, other: float) -> "Figure":
        return self._worked_out(lambda one: other / one)

    def __mul__(self, other: float) -> "Figure":
        return self._worked_out(lambda one: one * other)

    __rmul__ = __mul__

    def at(self, middle: float) -> "Figure":
        """Give another middle of what was seen."""
        made = float.__new__(Figure, middle)
        made.seen = self.seen
        return made

    def _worked_out(self, step: Callable[[float], float]) -> "Figure":
        return Figure(map(step, self.seen)).at(step(float(self)))


def spread(value: float) -> tuple[float, float] | None:
    """Give between what the middle half of a figure lies, or all of it where it was taken a few times; None of a single one."""
    if not isinstance(value, Figure) or len(value.seen) < 2:
        return None
    if len(value.seen) < _MANY:
        return min(value.seen), max(value.seen)
    low, _, high = statistics.quantiles(value.seen, n=4)
    return low, high


def ratio_of(value: float, floor: float) -> float:
    """Give the ratio of two figures; turn by turn where both were taken in the same turns."""
    if isinstance(value, Figure) and isinstance(floor, Figure) and len(value.seen) == len(floor.seen):
        ratios = Figure(one / other for one, other in zip(value.seen, floor.seen, strict=True))
        # The ratio of the medians stays the figure: only what lies around it is turn by turn.
        return ratios.at(float(value) / float(floor))
    return value / float(floor)
