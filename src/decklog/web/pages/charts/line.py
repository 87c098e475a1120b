"""A line over the entries of a run, drawn by the server: how far something had come at each of them, and its ceiling."""

from collections.abc import Callable
from dataclasses import dataclass

WIDTH, HEIGHT = 900, 120


@dataclass(frozen=True)
class ChartLine:
    """`edge` is the line, `area` what is beneath it; `ceiling` the height of the ceiling, where it is near enough to be seen."""

    edge: str
    area: str
    top: str
    ceiling: float | None
    last: int


def line_of(
    points: list[tuple[int, int]], last: int, value: int, said: Callable[[int], str], ceiling: int | None = None
) -> ChartLine | None:
    """Draw values that only grow, in steps; they end at the last entry with a value. None where there is nothing to draw."""
    if not value:
        return None
    is_near = ceiling is not None and value <= ceiling <= 4 * value
    top = ceiling if is_near and ceiling is not None else value
    steps = [(seq * WIDTH / max(1, last), HEIGHT - min(reached, top) * HEIGHT / top) for seq, reached in points]
    edge = f"M0 {HEIGHT}" + "".join(f"H{x:.1f}V{y:.1f}" for x, y in steps) + f"H{WIDTH}"
    line = round(HEIGHT - ceiling * HEIGHT / top, 1) if is_near and ceiling is not None else None
    return ChartLine(edge, f"{edge}V{HEIGHT}z", said(top), line, last)
