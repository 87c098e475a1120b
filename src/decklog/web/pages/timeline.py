"""Timeline: who worked on which task and when. Hours without work are folded on the time axis."""

import json
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from math import ceil
from operator import itemgetter
from typing import Any

from decklog.core.clock import from_text
from decklog.core.display import revealed, span
from decklog.web.rendering import agent_name, segment

# Positions are percentages of the axis.
WIDTH = 100.0
# Width of an idle interval that is folded, and the share of the axis from which on it is folded.
_FOLDED, _LEAST_SHARE = 2.8, 0.1
# Smallest visible width of an attempt.
_NARROWEST = 0.4
_SHADES = {"running": "run", "stalled": "fail", "done": "done", "failed": "fail", "expired": "fail", "blocked": "fail"}
MOST_TICKS, _LEAST_TICKS, _TICK_DISTANCE = 6, 4, 9.0
_STEPS = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 172800, 604800)


@dataclass(frozen=True)
class TimelineBar:
    """One attempt: its position and width in percent, the agent, and the tooltip."""

    x: float
    width: float
    shade: str
    agent: str
    said: str


@dataclass(frozen=True)
class TimelineLane:
    """One task. `word` is the status of its latest attempt, and `item` its work item.

    `path` is the task's id, quoted for a URL. All values are formatted already, because there are hundreds of lanes.
    """

    path: str
    title: str
    bars: list[TimelineBar]
    word: str
    shade: str
    item: str | None = None


@dataclass(frozen=True)
class TimeTick:
    """A tick of the axis; `at` is its time for an address."""

    x: float
    label: str
    at: str


@dataclass(frozen=True)
class Gantt:
    """The lanes by start time, with those of one item together.

    `folds` has the positions and durations of folded intervals. `scale` maps positions to times, for dragging.
    """

    lanes: list[TimelineLane]
    folds: list[tuple[float, str]]
    ticks: list[TimeTick]
    first: datetime | None
    last: datetime | None
    left_out: int
    scale: str = "[]"


Window = tuple[datetime | None, datetime | None]


@dataclass(frozen=True)
class TaskLabel:
    """Labels of a task: its work item, the agent that the conductor assigned, and whether its lease has ended."""

    item: str | None = None
    agent: str | None = None
    is_stalled: bool = False


def build_gantt(
    lanes: dict[str, Any], moment: datetime, labels: Mapping[str, TaskLabel] | None = None, window: Window = (None, None)
) -> Gantt:
    """Build the timeline of attempts. Unfinished attempts extend to `moment`.

    `labels` has the work items and agents of tasks. With a window, only attempts inside it are drawn, clipped to it.
    """
    found = [(one, began := from_text(one["started_at"]), _end(one, began, moment)) for one in lanes["attempts"]]
    attempts = [clipped for one in found if (clipped := _clip(one, window)) is not None]
    if not attempts:
        return Gantt([], [], [], None, None, lanes["left_out"])
    pieces = _pieces([(began, ended) for _, began, ended in attempts])
    by_task: dict[str, list[Attempt]] = {}
    for attempt in sorted(attempts, key=lambda one: one[1]):
        by_task.setdefault(attempt[0]["task_id"], []).append(attempt)
    known = labels or {}
    drawn = [_lane(task_id, of_task, pieces, known.get(task_id, TaskLabel())) for task_id, of_task in by_task.items()]
    folds = [(round(x + width / 2, 2), span(ended - began)) for began, ended, x, width, is_folded in pieces if is_folded]
    first, last = pieces[0][0], pieces[-1][1]
    return Gantt(_group_lanes(drawn), folds, _ticks(pieces), first, last, lanes["left_out"], _scale(pieces))


Attempt = tuple[Any, datetime, datetime]


def _clip(attempt: Attempt, window: Window) -> Attempt | None:
    one, began, ended = attempt
    since, until = window
    began, ended = max(began, since or began), min(ended, until or ended)
    return (one, began, ended) if began <= ended else None


def _group_lanes(lanes: Sequence[TimelineLane]) -> list[TimelineLane]:
    """Group the lanes of an item at the position of its first lane."""
    order: dict[str, int] = {}
    for number, lane in enumerate(lanes):
        order.setdefault(lane.item or f"task {number}", number)
    return [lane for _, lane in sorted(enumerate(lanes), key=lambda one: order[one[1].item or f"task {one[0]}"])]


def _end(attempt: dict[str, Any], began: datetime, moment: datetime) -> datetime:
    return max(began, moment if attempt["ended_at"] is None else from_text(attempt["ended_at"]))


Piece = tuple[datetime, datetime, float, float, bool]


def _pieces(spans: list[tuple[datetime, datetime]]) -> list[Piece]:
    """Split the time into intervals with and without work, each with position and width. Long idle intervals are folded."""
    parts: list[tuple[datetime, datetime, bool]] = []
    for began, ended in sorted(spans):
        if parts and began <= parts[-1][1]:
            parts[-1] = (parts[-1][0], max(parts[-1][1], ended), True)
            continue
        if parts:
            parts.append((parts[-1][1], began, False))
        parts.append((began, ended, True))
    worked = sum((ended - began for began, ended, is_work in parts if is_work), timedelta()) or timedelta(seconds=1)
    is_folded = [not is_work and (ended - began) > _LEAST_SHARE * worked for began, ended, is_work in parts]
    open_time = sum((part[1] - part[0] for part, fold in zip(parts, is_folded, strict=True) if not fold), timedelta())
    # All folds together take at most half of the axis.
    folded = min(_FOLDED, WIDTH / 2 / max(1, sum(is_folded)))
    scale = (WIDTH - folded * sum(is_folded)) / max(1e-6, open_time.total_seconds())
    found: list[Piece] = []
    place = 0.0
    for (began, ended, _), fold in zip(parts, is_folded, strict=True):
        width = folded if fold else (ended - began).total_seconds() * scale
        found.append((began, ended, place, width, fold))
        place += width
    return found


def _x(at: datetime, pieces: list[Piece]) -> float:
    number = bisect_left(pieces, at, key=itemgetter(1))
    if number == len(pieces):
        return float(WIDTH)
    began, ended, place, width, _ = pieces[number]
    return place + width * ((at - began) / (ended - began) if ended > began else 0.0)


def _ticks(pieces: list[Piece]) -> list[TimeTick]:
    """Choose four to six times for the axis: round ones, or else the starts of work."""
    worked = [piece for piece in pieces if not piece[4]]
    step = next((step for step in _STEPS if sum(len(_multiples(piece, step)) for piece in worked) <= MOST_TICKS), _STEPS[-1])
    times = [datetime.fromtimestamp(at, UTC) for piece in worked for at in _multiples(piece, step)][:MOST_TICKS]
    if len(times) < _LEAST_TICKS:
        starts = [piece[0] for piece in worked]
        times = sorted({*times, *starts[: MOST_TICKS - len(times)]})
    times = _drop_overlapping(times, pieces)
    lasted, days = pieces[-1][1] - pieces[0][0], {at.date() for at in times}
    ticks, day = list[TimeTick](), None if len(days) > 1 else times[0].date()
    for at in times:
        label = _clock(at, lasted) if at.date() == day else f"{at:%d %b} {_clock(at, lasted)}"
        ticks.append(TimeTick(round(_x(at, pieces), 2), label, f"{at:%Y-%m-%dT%H:%M:%SZ}"))
        day = at.date()
    return ticks


def _clock(at: datetime, lasted: timedelta) -> str:
    """Format a time with the precision that the axis needs."""
    if lasted < timedelta(seconds=5):
        return f"{at:%H:%M:%S.%f}"[:-4]
    return f"{at:%H:%M:%S}" if lasted < timedelta(minutes=5) else f"{at:%H:%M}"


def _multiples(piece: Piece, step: int) -> range:
    """Return the multiples of `step` seconds inside an interval."""
    return range(ceil(piece[0].timestamp() / step) * step, int(piece[1].timestamp()) + 1, step)


def _drop_overlapping(times: list[datetime], pieces: list[Piece]) -> list[datetime]:
    """Drop times whose labels would overlap."""
    kept: list[datetime] = []
    for at in times:
        if not kept or _x(at, pieces) - _x(kept[-1], pieces) >= _TICK_DISTANCE:
            kept.append(at)
    return kept


def _scale(pieces: list[Piece]) -> str:
    """Encode the intervals as JSON numbers: position, width, start and end in seconds."""
    return json.dumps([[round(x, 3), round(width, 3), began.timestamp(), end.timestamp()] for began, end, x, width, _ in pieces])


def _lane(task_id: str, attempts: list[Attempt], pieces: list[Piece], label: TaskLabel) -> TimelineLane:
    bars = []
    for one, began, ended in attempts:
        start = min(_x(began, pieces), WIDTH - _NARROWEST)
        width = max(_NARROWEST, _x(ended, pieces) - start)
        agent, word = _agent(str(one["worker"]), label), _word(one, label)
        said = f"{agent}, attempt {one['number']}: {word}, {span(ended - began)}, from {began:%H:%M:%S} UTC"
        bars.append(TimelineBar(round(start, 2), round(width, 2), _shade(word), revealed(agent), revealed(said)))
    latest = attempts[-1][0]
    word = _word(latest, label)
    return TimelineLane(segment(task_id), revealed(latest["title"]), bars, word, _shade(word), label.item)


def _agent(worker: str, label: TaskLabel) -> str:
    """Return who worked. A conductor claims tasks and assigns them to an agent."""
    name = agent_name(worker)
    return label.agent or name if name != worker else worker


def _word(attempt: dict[str, Any], label: TaskLabel) -> str:
    return str(attempt["outcome"] or ("stalled" if label.is_stalled else "running"))


def _shade(word: str) -> str:
    return _SHADES.get(word, "idle")
