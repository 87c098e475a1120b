"""Line chart over the entries of a run: a growing value at each entry, and its ceiling."""

from collections.abc import Callable
from dataclasses import dataclass

WIDTH, HEIGHT = 900, 120


@dataclass(frozen=True)
class ChartLine:
    """A drawn line: `edge` is the line, `area` the area below it, `ceiling` the height of the ceiling if it is near enough."""

    edge: str
    area: str
    top: str
    ceiling: float | None
    last: int


def line_of(
    points: list[tuple[int, int]], last: int, value: int, said: Callable[[int], str], ceiling: int | None = None
) -> ChartLine | None:
    """Draw a growing value as steps that end at the last entry. Return None if there is nothing to draw."""
    if not value:
        return None
    is_near = ceiling is not None and value <= ceiling <= 4 * value
    top = ceiling if is_near and ceiling is not None else value
    steps = [(seq * WIDTH / max(1, last), HEIGHT - min(reached, top) * HEIGHT / top) for seq, reached in points]
    edge = f"M0 {HEIGHT}" + "".join(f"H{x:.1f}V{y:.1f}" for x, y in steps) + f"H{WIDTH}"
    line = round(HEIGHT - ceiling * HEIGHT / top, 1) if is_near and ceiling is not None else None
    return ChartLine(edge, f"{edge}V{HEIGHT}z", said(top), line, last)
