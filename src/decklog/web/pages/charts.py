"""Charts as server-rendered SVG, without a script: stacked columns, a growing line, and the strip of a run's activity."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from itertools import pairwise
from math import ceil, floor, log, log10
from typing import Any

from decklog.core.clock import from_text
from decklog.core.display import span

# Size of the plot, and of the ticks below it. Pages add the names of days and show it 220 px high.
COLUMNS_WIDTH, COLUMNS_HEIGHT, TICK = 900, 190, 5
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


def build_chart(
    places: Sequence[str], values: Mapping[str, Mapping[str, int]], label: Callable[[int], str], *, ceiling: int | None = None
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
    width = COLUMNS_WIDTH / max(1, len(places))
    line = round(COLUMNS_HEIGHT - ceiling * COLUMNS_HEIGHT / top, 2) if is_near and ceiling else None
    shown = [_build_column(place, names, column, label) for place, column in zip(places, columns, strict=True) if any(column)]
    grid = [(round(COLUMNS_HEIGHT - value * COLUMNS_HEIGHT / top, 1), label(value)) for value in range(step, top + 1, step)]
    ticks = "".join(f"M{(number + 0.4) * width:.1f} {COLUMNS_HEIGHT}v{TICK}" for number in range(len(places)))
    percent = f"{100 / max(1, len(places)):.3f}"
    return Chart(_bars(columns, len(names), width, top), shown, percent, names, label(top), grid, ticks, line, len(rest))


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
                height = max(1.0, value * COLUMNS_HEIGHT / top)
                below += height
                wide = f"{width * 0.8:.2f}"
                paths[shade] += f"M{number * width:.2f} {COLUMNS_HEIGHT - below:.2f}h{wide}v{height:.2f}h-{wide}z"
    return paths


def _build_column(place: str, names: Sequence[str], column: Sequence[int], label: Callable[[int], str]) -> ChartColumn:
    parts = [f"{name} {label(value)}" for name, value in zip(names, column, strict=True) if value]
    return ChartColumn(place, label(sum(column)), parts[::-1])


def _column(place: str, kinds: Sequence[str], rest: Sequence[str], values: Mapping[str, Mapping[str, int]]) -> list[int]:
    column = [values[kind].get(place, 0) for kind in kinds]
    return [*column, sum(values[kind].get(place, 0) for kind in rest)] if rest else column


# Line


LINE_WIDTH, LINE_HEIGHT = 900, 120


@dataclass(frozen=True)
class ChartLine:
    """A drawn line: `edge` is the line, `area` the area below it, `ceiling` the height of the ceiling if it is near enough."""

    edge: str
    area: str
    top: str
    ceiling: float | None
    last: int


def draw_line(
    points: list[tuple[int, int]], last: int, value: int, label: Callable[[int], str], ceiling: int | None = None
) -> ChartLine | None:
    """Draw a growing value as steps that end at the last entry. Return None if there is nothing to draw."""
    if not value:
        return None
    is_near = ceiling is not None and value <= ceiling <= 4 * value
    top = ceiling if is_near and ceiling is not None else value
    steps = [(seq * LINE_WIDTH / max(1, last), LINE_HEIGHT - min(reached, top) * LINE_HEIGHT / top) for seq, reached in points]
    edge = f"M0 {LINE_HEIGHT}" + "".join(f"H{x:.1f}V{y:.1f}" for x, y in steps) + f"H{LINE_WIDTH}"
    line = round(LINE_HEIGHT - ceiling * LINE_HEIGHT / top, 1) if is_near and ceiling is not None else None
    return ChartLine(edge, f"{edge}V{LINE_HEIGHT}z", label(top), line, last)


STEPS = 120
WIDTH, HEIGHT = 600, 40
_LOWEST = 3
_WIDEST = 6
# A pause is labelled from this length on and this many times the median; at most this number of pauses.
_SILENCE_SECONDS, _UNUSUAL, _MOST_SILENCES = 10 * 60, 8, 12
_SHAPES = {"failure": "✕", "question": "▲", "checkpoint": "◆", "pivot": "↷"}
_LISTED = 6
# The strip is divided into this number of zones, each with a tooltip.
_ZONES = 24


@dataclass(frozen=True)
class Strip:
    """Bars are one path of vertical lines, and the marks of each kind one of rectangles. Only the newest marks have labels."""

    bars: str
    width: float
    marks: dict[str, str]
    listed: list[dict[str, Any]]
    silences: list[tuple[float, str]]
    left_out: int
    zones: list[tuple[float, float, str]]


def draw_strip(activity: dict[str, Any]) -> Strip:
    """Draw a run's activity over its entry numbers, at the same positions as the slider."""
    steps = tuple([(one["seq"], one["at"]) for one in activity["steps"]])
    marks = tuple([(one["what"], one["seq"]) for one in activity["marks"]])
    # The activity of a long run is sampled up to its last mark. Later entries would be narrower than a line.
    last = steps[-1][0] if steps else activity["last"]
    return _drawn(activity["first"], last, steps, marks, activity["left_out"])


def _drawn(
    first: int, last: int, given: tuple[tuple[int, str], ...], marks_given: tuple[tuple[str, int], ...], left_out: int
) -> Strip:
    steps = [(seq, from_text(at).timestamp()) for seq, at in given]
    pauses = [(seq, at - before, seq - earlier) for (earlier, before), (seq, at) in pairwise(steps)]
    rates = [count / (max(0.0, seconds) + 1) for _, seconds, count in pauses]
    width = WIDTH / max(1, len(steps))
    tops = (HEIGHT - height for height in (_LOWEST, *_heights(rates)))
    # Lines need a third of the bytes of rectangles.
    bars = "".join([f"M{int((place + 0.5) * width)} {HEIGHT}V{top}" for place, top in enumerate(tops)])
    scale = WIDTH / max(1, last - first + 1)
    silences = [(_x(seq - first, scale), span(timedelta(seconds=seconds))) for seconds, seq in _silences(pauses)]
    marks: dict[str, str] = {}
    for what, seq in marks_given:
        marks[what] = marks.get(what, "") + f"M{_x(seq - first, scale)} 0h2.5v{HEIGHT}h-2.5z"
    listed = [{"what": what, "seq": seq, "shape": _SHAPES[what]} for what, seq in marks_given[-_LISTED:]]
    return Strip(bars, round(min(width * 0.7, _WIDEST), 1), marks, listed, silences, left_out, _zones(given, width))


def _zones(steps: tuple[tuple[int, str], ...], width: float) -> list[tuple[float, float, str]]:
    """Divide the strip for tooltips: position, width, and the entries and times in it."""
    size = max(1, -(-len(steps) // _ZONES))
    found = []
    for start in range(0, len(steps), size):
        part = steps[start : start + size]
        (first, began), (last, ended) = part[0], part[-1]
        label = f"entries {first:,} to {last:,}, {began[:10]} {began[11:16]} to {ended[11:16]} UTC"
        found.append((round(start * width, 1), round(len(part) * width, 1), label))
    return found


def _silences(pauses: list[tuple[int, float, int]]) -> list[tuple[float, int]]:
    """Find the longest pauses. In long runs steps contain many entries, so a pause must exceed the median by a factor."""
    usual = sorted(seconds for _, seconds, _ in pauses)[len(pauses) // 2] if pauses else 0.0
    least = max(_SILENCE_SECONDS, _UNUSUAL * usual)
    return sorted(((seconds, seq) for seq, seconds, _ in pauses if seconds >= least), reverse=True)[:_MOST_SILENCES]


def _x(distance: int, scale: float) -> float:
    return round(min(distance * scale, WIDTH - 2.5), 2)


def _heights(rates: list[float]) -> list[int]:
    """Return the height of each bar, scaled by logarithm between the slowest and the fastest rate."""
    logs = [log(rate) for rate in rates]
    slowest, fastest = min(logs, default=0.0), max(logs, default=0.0)
    scale = (HEIGHT - _LOWEST) / (fastest - slowest) if fastest > slowest else 0.0
    least = _LOWEST if scale else (HEIGHT + _LOWEST) // 2
    return [least + round((one - slowest) * scale) for one in logs]
