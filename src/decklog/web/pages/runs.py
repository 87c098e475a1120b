"""Runs: every run in a line, the newest first, by the word for how it stands."""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any

from decklog import Status
from decklog.errors import Invalid
from decklog.web.site import Asked, View

PAGE = 50


def read(asked: Asked) -> View:
    """Read one page of runs."""
    log, word = asked.log, asked.word("status")
    if word is not None and word not in list(Status):
        raise Invalid(f"there is no status {word!r}; there are {', '.join(Status)}", field="status")
    page = log.overview.runs(status=Status(word) if word else None, limit=PAGE, after=asked.word("after"))
    command = "decklog overview runs" + (f" --status '{word}'" if word else "")
    strips = log.overview.pulse(lately(page, log.clock.now()))
    shown = {"runs": page, "word": word, "words": list(Status), "strips": strips, "is_first": asked.word("after") is None}
    return View("runs.html", "Runs", command, page, shown, next=page.next, place="runs")


def lately(runs: Iterable[Any], now: datetime) -> list[str]:
    """Name the runs that have entries of the last hour: the strips of all others are empty."""
    return [run.id for run in runs if run.last_at >= now - timedelta(hours=1)]
