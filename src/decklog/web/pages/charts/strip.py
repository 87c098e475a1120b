"""The strip above a run's slider: how fast its entries came, where it was silent, and the entries that a person looks for."""

from datetime import timedelta
from itertools import pairwise
from math import log
from typing import Any

from decklog.clock import from_text
from decklog.dataclass import dataclass
from decklog.figures import span

STEPS = 150
WIDTH, HEIGHT = 600, 28
_LOWEST = 3
# A pause as long as this is drawn as one, and named.
_SILENCE = timedelta(minutes=10)
_SHAPES = {"failure": "✕", "question": "▲", "checkpoint": "◆", "pivot": "↷"}
_LISTED = 6


@dataclass(frozen=True)
class Strip:
    """Bars, and the marks of each kind, are one path of rectangles; the newest marks and the silences say what they are."""

    bars: str
    marks: dict[str, str]
    listed: list[dict[str, Any]]
    silences: list[tuple[float, str]]
    left_out: int


def strip_of(pulse: dict[str, Any]) -> Strip:
    """Draw a run's pulse over the numbers of its entries: the same places that the slider has."""
    steps = [(one["seq"], from_text(one["at"])) for one in pulse["steps"]]
    size = max(1, pulse["last"] - pulse["first"] + 1)
    pauses = [(later[0], later[1] - earlier[1], later[0] - earlier[0]) for earlier, later in pairwise(steps)]
    rates = [count / (pause.total_seconds() + 1) for _, pause, count in pauses]
    heights = [_LOWEST, *_heights(rates)]
    width = WIDTH / max(1, len(steps))
    bars = "".join(
        f"M{place * width:.1f} {HEIGHT}v-{height:.1f}h{width * 0.7:.1f}v{height:.1f}z" for place, height in enumerate(heights)
    )
    silences = [(_x(seq, pulse, size), span(pause)) for seq, pause, _ in pauses if pause >= _SILENCE]
    marks: dict[str, str] = {}
    for one in pulse["marks"]:
        marks[one["what"]] = marks.get(one["what"], "") + f"M{_x(one['seq'], pulse, size)} 0h2.5v{HEIGHT}h-2.5z"
    listed = [{**one, "shape": _SHAPES[one["what"]]} for one in pulse["marks"][-_LISTED:]]
    return Strip(bars, marks, listed, silences, pulse["left_out"])


def _x(seq: int, pulse: dict[str, Any], size: int) -> float:
    first: int = pulse["first"]
    return round((seq - first) * WIDTH / size, 2)


def _heights(rates: list[float]) -> list[float]:
    """Give the height of each bar, between the slowest and the fastest, as a share of their logarithms."""
    logs = [log(rate) for rate in rates]
    slowest, fastest = min(logs, default=0.0), max(logs, default=0.0)
    span = fastest - slowest
    return [_LOWEST + ((one - slowest) / span if span else 0.5) * (HEIGHT - _LOWEST) for one in logs]
