"""Lanes: who worked on which task from when to when, with the hours in which nobody did folded."""

from bisect import bisect_left
from dataclasses import dataclass
from datetime import datetime, timedelta
from operator import itemgetter
from typing import Any

from decklog.core.characters import revealed
from decklog.core.clock import from_text
from decklog.core.figures import span
from decklog.web.rendering import segment

WIDTH = 1000
# A stretch in which nobody worked is drawn so wide, once it would take more than this share of the whole.
_FOLDED, _LEAST_SHARE = 28, 0.1
# An attempt is never drawn narrower than this: it could not be seen.
_NARROWEST = 3.0
_SHADES = {None: "run", "done": "done", "failed": "fail", "expired": "fail", "blocked": "hold"}


@dataclass(frozen=True)
class TimelineLane:
    """One task: its bars are paths, shades and what is said of them; `word` is how its latest attempt stands.

    `path` is the task's id as part of an address. Everything is written as a page shows it: there are hundreds of them.
    """

    path: str
    title: str
    bars: list[tuple[str, str, str]]
    word: str
    shade: str


@dataclass(frozen=True)
class Gantt:
    """The lanes in the order in which they began; `folds` are the places of folded stretches, and how long each was.

    `lines` is a path through all of them, which every lane has.
    """

    lanes: list[TimelineLane]
    folds: list[tuple[float, str]]
    lines: str
    first: datetime | None
    last: datetime | None
    left_out: int


def gantt_of(lanes: dict[str, Any], moment: datetime) -> Gantt:
    """Draw attempts over time; those under way go on to the moment that is shown."""
    attempts = [(one, from_text(one["started_at"]), _end(one, moment)) for one in lanes["attempts"]]
    if not attempts:
        return Gantt([], [], "", None, None, lanes["left_out"])
    pieces = _pieces([(began, ended) for _, began, ended in attempts])
    by_task: dict[str, list[tuple[Any, datetime, datetime]]] = {}
    for attempt in sorted(attempts, key=lambda one: one[1]):
        by_task.setdefault(attempt[0]["task_id"], []).append(attempt)
    drawn = [_lane(task_id, found, pieces) for task_id, found in by_task.items()]
    folds = [(round(x + width / 2, 1), span(ended - began)) for began, ended, x, width, is_folded in pieces if is_folded]
    lines = "".join(f"M{x - 1:.1f} 0h2v14h-2z" for x, _ in folds)
    return Gantt(drawn, folds, lines, pieces[0][0], pieces[-1][1], lanes["left_out"])


def _end(attempt: dict[str, Any], moment: datetime) -> datetime:
    began = from_text(attempt["started_at"])
    return max(began, moment if attempt["ended_at"] is None else from_text(attempt["ended_at"]))


Piece = tuple[datetime, datetime, float, float, bool]


def _pieces(spans: list[tuple[datetime, datetime]]) -> list[Piece]:
    """Part the time into stretches with and without work, each with its place and width, the long silent ones folded."""
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
    scale = (WIDTH - _FOLDED * sum(is_folded)) / max(1e-6, open_time.total_seconds())
    found: list[Piece] = []
    place = 0.0
    for (began, ended, _), fold in zip(parts, is_folded, strict=True):
        width = _FOLDED if fold else (ended - began).total_seconds() * scale
        found.append((began, ended, place, width, fold))
        place += width
    return found


def _x(at: datetime, pieces: list[Piece]) -> float:
    number = bisect_left(pieces, at, key=itemgetter(1))
    if number == len(pieces):
        return float(WIDTH)
    began, ended, place, width, _ = pieces[number]
    return place + width * ((at - began) / (ended - began) if ended > began else 0.0)


def _lane(task_id: str, attempts: list[tuple[Any, datetime, datetime]], pieces: list[Piece]) -> TimelineLane:
    bars = []
    for one, began, ended in attempts:
        start = min(_x(began, pieces), WIDTH - _NARROWEST)
        width = max(_NARROWEST, _x(ended, pieces) - start)
        said = f"{one['worker']}, attempt {one['number']}: {_word(one)}, {span(ended - began)}"
        bars.append((f"M{start:.1f} 2h{width:.1f}v10h-{width:.1f}z", _shade(one), revealed(said)))
    latest = attempts[-1][0]
    return TimelineLane(segment(task_id), revealed(latest["title"]), bars, _word(latest), _shade(latest))


def _word(attempt: dict[str, Any]) -> str:
    return str(attempt["outcome"] or "under way")


def _shade(attempt: dict[str, Any]) -> str:
    return _SHADES.get(attempt["outcome"], "idle")
