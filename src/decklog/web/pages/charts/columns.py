"""A chart of columns, drawn by the server: each day's values on top of each other, the largest kinds told apart."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

WIDTH, HEIGHT = 900, 140
# So many kinds have a shade of their own; the rest is one.
SHADES = 4


@dataclass(frozen=True)
class Chart:
    """`bars` is a path for each shade, and `places` names each column that has anything and says what it is.

    `kinds` names the shades from below, and `width` is that of a column, in percent of all.
    """

    bars: list[str]
    places: list[tuple[str, str]]
    width: str
    kinds: list[str]
    top: str
    ceiling: float | None
    left_out: int


def chart_of(
    places: Sequence[str], values: Mapping[str, Mapping[str, int]], said: Callable[[int], str], *, ceiling: int | None = None
) -> Chart:
    """Draw the values of some kinds over places, the largest kind at the bottom."""
    order = sorted(values, key=lambda kind: (-sum(values[kind].values()), kind))
    kinds, rest = order[:SHADES], order[SHADES:]
    columns = [_column(place, kinds, rest, values) for place in places]
    most = max((sum(column) for column in columns), default=0)
    # A ceiling far above everything would leave nothing to see.
    is_near = ceiling is not None and 0 < ceiling <= 2 * most
    top = max(most, ceiling if is_near and ceiling else 0) or 1
    names = [*kinds, *([f"{len(rest)} others"] if rest else [])]
    width = WIDTH / max(1, len(places))
    line = round(HEIGHT - ceiling * HEIGHT / top, 2) if is_near and ceiling else None
    told = [(place, _told(place, names, column, said)) for place, column in zip(places, columns, strict=True) if any(column)]
    percent = f"{100 / max(1, len(places)):.3f}"
    return Chart(_bars(columns, len(names), width, top), told, percent, names, said(top), line, len(rest))


def _bars(columns: Sequence[Sequence[int]], shades: int, width: float, top: int) -> list[str]:
    """Write the rectangles of each shade as one path."""
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


def _told(place: str, names: Sequence[str], column: Sequence[int], said: Callable[[int], str]) -> str:
    """Return what a column is made of, from above."""
    parts = [f"{name} {said(value)}" for name, value in zip(names, column, strict=True) if value]
    whole = f"{said(sum(column))}: " if len(parts) > 1 else ""
    return f"{place}: {whole}{', '.join(reversed(parts))}"


def _column(place: str, kinds: Sequence[str], rest: Sequence[str], values: Mapping[str, Mapping[str, int]]) -> list[int]:
    column = [values[kind].get(place, 0) for kind in kinds]
    return [*column, sum(values[kind].get(place, 0) for kind in rest)] if rest else column
