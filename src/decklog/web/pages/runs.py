"""Runs: every run in a line, the newest first, by the word for how it stands."""

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from markupsafe import Markup

from decklog import Status
from decklog.characters import revealed
from decklog.errors import Invalid
from decklog.figures import dollars
from decklog.web.rendering import age, bars, segment, sign
from decklog.web.site import Asked, View, command

PAGE = 50


class Line(NamedTuple):
    """A run as a table shows it, in words alone and in the order that the template takes them: it asks for none by its name."""

    id: str
    path: str
    sign: Markup
    goal: str
    doing: str
    bars: str
    tasks: str
    spent: str
    age: Markup


def lines_of(runs: Iterable[Any], now: datetime, strips: Mapping[str, list[int]]) -> list[Line]:
    """Make the lines of a table; `strips` has the last hours of those runs that had anything to say in it."""
    return [
        Line(
            id=run.id,
            path=segment(run.id),
            sign=sign(run.status.value),
            goal=revealed(run.goal),
            doing=revealed(_doing(run)),
            bars=bars(strips.get(run.id, ())),
            tasks=f"{run.done} / {planned}" if (planned := run.planned) else "",
            spent=dollars(run.cost_microdollars) if run.calls else "",
            age=age(run.last_at, now),
        )
        for run in runs
    ]


def _doing(run: Any) -> str:
    """Say who works on what, or what was said last."""
    if not run.working_on:
        return f"{run.last_by}: {run.last_said}" if run.last_by else str(run.last_said)
    first = run.working_on[0]
    others = f" +{run.workers - 1}" if run.workers > 1 else ""
    return f"{first['worker']}{others}: {'lease ended' if first['lease_ended'] else first['stage'] or first['title']}"


def read(asked: Asked) -> View:
    """Read one page of runs."""
    log, word = asked.log, asked.word("status")
    if word is not None and word not in list(Status):
        raise Invalid(f"there is no status {word!r}; there are {', '.join(Status)}", field="status")
    table = log.overview.table(status=Status(word) if word else None, limit=PAGE, after=asked.word("after"))
    said = command("overview", "runs", *(("--status", word) if word else ()))
    page, lines = table.runs, lines_of(table.runs, log.clock.now(), table.pulse)
    shown = {"lines": lines, "word": word, "words": list(Status), "is_first": asked.word("after") is None}
    return View("runs.html", "Runs", said, page, shown, next=page.next, place="runs", decisions=table.decisions)


def lately(runs: Iterable[Any], now: datetime) -> list[str]:
    """Name the runs that have entries of the last hour: the strips of all others are empty."""
    return [run.id for run in runs if run.last_at >= now - timedelta(hours=1)]
