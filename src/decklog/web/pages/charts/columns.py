"""Stacked column chart: one column per day, with separate colours for the largest kinds."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import ceil, floor, log10

# Size of the plot, and of the ticks below it. Pages add the names of days and show it 220 px high.
WIDTH, HEIGHT, TICK = 900, 190, 5
# Kinds with a separate colour; all others share one.
SHADES = 4
_GRIDLINES = 4


@dataclass(frozen=True)
class ChartColumn:
    """One column: its name, its total, and the value of each kind from top to bottom."""

    place: str
    whole: str
    parts: list[str]

    @property
    def said(self) -> str:
        return f"{self.place}: {self.whole}" + (f" ({', '.join(self.parts)})" if len(self.parts) > 1 else "")


@dataclass(frozen=True)
class Chart:
    """A drawn chart: `bars` is a path for each colour, and `places` the columns that are not empty.

    `kinds` names the colours from the bottom up. `width` is the width of a column in percent. `grid` has the heights of gridlines
    with their labels. `ticks` is a path of a line below each column, and `ceiling` the height of the budget line.
    """

    bars: list[str]
    places: list[ChartColumn]
    width: str
    kinds: list[str]
    top: str
    grid: list[tuple[float, str]]
    ticks: str
    ceiling: float | None
    left_out: int


def chart_of(
    places: Sequence[str], values: Mapping[str, Mapping[str, int]], said: Callable[[int], str], *, ceiling: int | None = None
) -> Chart:
    """Build the chart of values by kind and place, with the largest kind at the bottom."""
    order = sorted(values, key=lambda kind: (-sum(values[kind].values()), kind))
    kinds, rest = order[:SHADES], order[SHADES:]
    columns = [_column(place, kinds, rest, values) for place in places]
    most = max((sum(column) for column in columns), default=0)
    # Leave out a ceiling far above all values, which would flatten the columns.
    is_near = ceiling is not None and 0 < ceiling <= 2 * most
    step = _step(max(most, ceiling if is_near and ceiling else 0) or 1)
    top = step * max(1, ceil(max(most, ceiling if is_near and ceiling else 0) / step))
    names = [*kinds, *([rest[0] if len(rest) == 1 else f"{len(rest)} others"] if rest else [])]
    width = WIDTH / max(1, len(places))
    line = round(HEIGHT - ceiling * HEIGHT / top, 2) if is_near and ceiling else None
    shown = [_shown(place, names, column, said) for place, column in zip(places, columns, strict=True) if any(column)]
    grid = [(round(HEIGHT - value * HEIGHT / top, 1), said(value)) for value in range(step, top + 1, step)]
    ticks = "".join(f"M{(number + 0.4) * width:.1f} {HEIGHT}v{TICK}" for number in range(len(places)))
    percent = f"{100 / max(1, len(places)):.3f}"
    return Chart(_bars(columns, len(names), width, top), shown, percent, names, said(top), grid, ticks, line, len(rest))


def _step(most: int) -> int:
    """Return the distance between gridlines: 1, 2 or 5 times a power of ten, for at most four lines."""
    least = most / _GRIDLINES
    power = 10 ** max(0, floor(log10(max(1.0, least))))
    return next(int(factor * power) for factor in (1, 2, 5, 10) if factor * power >= least)


def _bars(columns: Sequence[Sequence[int]], shades: int, width: float, top: int) -> list[str]:
    """Draw the rectangles of each colour as one path."""
    paths = [""] * shades
    for number, column in enumerate(columns):
        below = 0.0
        for shade, value in enumerate(column):
            if value:
                height = max(1.0, value * HEIGHT / top)
                below += height
                wide = f"{width * 0.8:.2f}"
                paths[shade] += f"M{number * width:.2f} {HEIGHT - below:.2f}h{wide}v{height:.2f}h-{wide}z"
    return paths


def _shown(place: str, names: Sequence[str], column: Sequence[int], said: Callable[[int], str]) -> ChartColumn:
    parts = [f"{name} {said(value)}" for name, value in zip(names, column, strict=True) if value]
    return ChartColumn(place, said(sum(column)), parts[::-1])


def _column(place: str, kinds: Sequence[str], rest: Sequence[str], values: Mapping[str, Mapping[str, int]]) -> list[int]:
    column = [values[kind].get(place, 0) for kind in kinds]
    return [*column, sum(values[kind].get(place, 0) for kind in rest)] if rest else column
