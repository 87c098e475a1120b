"""The list of runs in order of attention, or sorted by a column."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from decklog.core.clock import to_text
from decklog.core.errors import Invalid
from decklog.db.base import Database
from decklog.records.record import Page
from decklog.records.values import to_json
from decklog.stores.overview.run_facts import (
    MOST_GOING_ON,
    MOST_LOOKED_AT,
    NEWEST_GOING_ON,
    STATES,
    RunFilter,
    RunOverview,
    RunSort,
    place_in,
)
from decklog.stores.overview.status import Status
from decklog.stores.overview.summary import by_status

Look = Callable[[str, Mapping[str, Any]], list[RunOverview]]

# Attention first; finished runs follow, the latest first.
ORDER = (*(Status.NEEDS_ATTENTION, Status.RUNNING, Status.STALLED, Status.BLOCKED, Status.WAITING, Status.IDLE, Status.PAUSED),)
_WORDS = {state: word for word, state in STATES.items()}
# Sorting by a column includes this number of finished runs.
MOST_SORTED = 200


def attention_first(
    look: Look, word: Status | None, wanted: RunFilter, size: int, after: str | None
) -> tuple[Page[RunOverview], list[RunOverview]]:
    """Load a page in the order of attention. Return it with all unfinished runs."""
    phase, *place = place_in(after, 3) if after is not None else ("going", "0", "")
    offset = _offset(place[0]) if phase == "going" else 0
    going, ended, _ = _both(look, word, wanted, place if phase == "ended" else None, size + 1)
    live = sorted((run for run in going if word in (None, run.status)), key=_urgency)[offset:] if phase == "going" else []
    page = [*live, *ended][:size]
    if len(live) > size:
        following = ("going", str(offset + size), "")
    elif len(live) + len(ended) > size:
        # If no finished run fits on this page, the next page begins with the first of them.
        over = [run for run in page if run.ended_at is not None]
        following = ("ended", to_text(over[-1].ended_at), over[-1].id) if over else ("ended", "~", "")  # type: ignore[arg-type]
    else:
        following = None
    return Page(page, next=None if following is None else to_json(following)), going


def by_column(
    look: Look,
    word: Status | None,
    wanted: RunFilter,
    size: int,
    after: str | None,
    sort: RunSort,
    *,
    descending: bool,
) -> tuple[Page[RunOverview], list[RunOverview], bool]:
    """Load a page sorted by a column, from unfinished runs and the latest 200 finished ones. Also return if there are more."""
    offset = _offset(place_in(after, 1)[0]) if after is not None else 0
    going, ended, is_cut = _both(look, word, wanted, None, MOST_SORTED)
    found = [*(run for run in going if word in (None, run.status)), *ended]
    found.sort(key=lambda run: run.id)
    found.sort(key=lambda run: _value(run, sort), reverse=descending)
    rest = found[offset:]
    return Page(rest[:size], next=to_json([str(offset + size)]) if len(rest) > size else None), going, is_cut


def _both(
    look: Look, word: Status | None, wanted: RunFilter, place: list[str] | None, most: int
) -> tuple[list[RunOverview], list[RunOverview], bool]:
    """Load all unfinished runs, which are few, and a part of the finished ones, in one query."""
    sql, bound = NEWEST_GOING_ON, dict[str, str]()
    if word is None or word in STATES:
        over, bound = wanted.ended(STATES[word] if word else None, place, most)
        sql = f"select * from ({sql}) g union all select * from ({over}) e"
    runs = look(sql, bound)
    going = [run for run in runs if run.ended_at is None and run.status not in STATES]
    ended = sorted((run for run in runs if run.ended_at is not None), key=_end, reverse=True)
    return [run for run in going[:MOST_GOING_ON] if wanted.fits(run)], ended, len(going) > MOST_GOING_ON or len(ended) == most


def counts(db: Database, wanted: RunFilter, going: Sequence[RunOverview]) -> tuple[dict[str, int], bool]:
    """Count runs by status. Also return whether there are more finished runs than counted."""
    over = {_WORDS[state].value: count for state, count in db.rows(*_bound(db, wanted))[1]}
    return by_status(going) | over, sum(over.values()) >= MOST_LOOKED_AT


def _bound(db: Database, wanted: RunFilter) -> tuple[str, dict[str, Any]]:
    sql, given = wanted.counted()
    return sql, db.values.bind(given)[0]


def _offset(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) < 6):
        raise Invalid(f"{text!r} is not a place in the list; use the `next` of the page before", field="after")
    return int(text)


def _urgency(run: RunOverview) -> tuple[int, float, str]:
    return ORDER.index(run.status), -run.last_at.timestamp(), run.id


def _end(run: RunOverview) -> tuple[str, str]:
    return to_text(run.ended_at) if run.ended_at else "", run.id


def _value(run: RunOverview, sort: RunSort) -> Any:
    match sort:
        case RunSort.RUN:
            return run.goal.casefold()
        case RunSort.TASKS:
            return run.done / run.planned if run.planned else -1.0
        case RunSort.SPENT:
            return run.cost_microdollars
        case RunSort.TOOK:
            return (run.ended_at or run.last_at) - run.started_at
        case RunSort.LAST:
            return run.last_at
    return run.started_at
