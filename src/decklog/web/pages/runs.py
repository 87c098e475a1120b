"""The pages Now and Runs: waiting items, current runs and costs, and the list or tree of all runs."""

import re
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import quote_plus

from decklog import AttentionGroup, AttentionKind, Page, RunSort, Status
from decklog.core.display import dollars
from decklog.core.errors import DecklogError, Invalid
from decklog.web.rendering import segment
from decklog.web.site import PageView, SiteRequest, command, public_error

_UNITS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


def parse_since(text: str | None, now: datetime, field: str) -> datetime | None:
    """Parse a time limit: `2d`, `3h`, `2026-11-15`; None if it is not given."""
    if text is None:
        return None
    match = re.fullmatch(r"(\d{1,4})([mhdw])", text)
    try:
        return now - timedelta(**{_UNITS[match[2]]: int(match[1])}) if match else datetime.fromisoformat(f"{text}T00:00:00+00:00")
    except (ValueError, OverflowError):
        raise Invalid(f"since is {text!r}: write 2d, 3h or a day as 2026-11-15", field=field) from None


PAGE = 50
# Query parameters that filter the list, in addition to the status.
_NARROWS = ("text", "repo", "branch", "since", "parent")
_OPTIONS = {"parent_run_id": "parent-run"}
# The parameter value for families.
FAMILY = "family"


# The status filters, in the order of the list.
_WORDS = (
    *(Status.NEEDS_ATTENTION, Status.RUNNING, Status.STALLED, Status.BLOCKED, Status.WAITING, Status.IDLE, Status.PAUSED),
    *(Status.DONE, Status.FAILED, Status.CANCELLED),
)


def read(request: SiteRequest) -> PageView:
    """Load one page of runs."""
    log, word = request.log, request.word("status")
    if word is not None and word not in _WORDS:
        raise Invalid(f"there is no status {word!r}; there are {', '.join(_WORDS)}", field="status")
    narrowed = {name: value for name in _NARROWS if (value := request.word(name))}
    given: dict[str, Any] = {"parent_run_id" if name == "parent" else name: value for name, value in narrowed.items()}
    now, by_family = log.clock.now(), request.word("as") == FAMILY
    given["since"] = parse_since(narrowed.get("since"), now, "since")
    place: dict[str, Any] = {"status": Status(word) if word else None, "limit": PAGE, "after": request.word("after")}
    sort, descending = _sort(request.word("sort"))
    page: Page[Any]
    counts, is_cut = dict[str, int](), False
    if by_family:
        kin = log.overview.families_table(**given, **place)
        page, decisions, strips = kin.families, kin.decisions, kin.activity
    else:
        table = log.overview.table(**given, **place, sort=sort, descending=descending)
        page, decisions, strips = table.runs, table.decisions, table.activity
        counts, is_cut = table.counts, table.is_cut
    sorting = None if sort is RunSort.ATTENTION else f"{'-' if descending else ''}{sort.value}"
    chosen = {"as": FAMILY if by_family else None, "status": word, "sort": sorting, **narrowed}
    shown: dict[str, Any] = {"found": page, "strips": strips, "by_family": by_family, "word": word, "words": _WORDS}
    shown |= {"is_first": request.word("after") is None, "narrowed": narrowed}
    parent = narrowed.get("parent")
    shown["names"] = log.overview.names(run_ids=[parent]) if parent else {}
    shown |= {"counts": counts, "is_cut": is_cut, "heads": None if by_family else _heads(sort, descending=descending)}
    shown["address"] = lambda **changed: _address({**chosen, **changed})
    shell_line = _command("families" if by_family else "runs", {"status": word, **given})
    return PageView("runs.html", "Runs", shell_line, page, shown, next=page.next, place="runs", decisions=decisions)


def _sort(text: str | None) -> tuple[RunSort, bool]:
    """Parse the sort column; a `-` prefix means descending."""
    if text is None:
        return RunSort.ATTENTION, True
    name = text.removeprefix("-")
    if name not in list(RunSort):
        raise Invalid(f"there is no sort {text!r}; there are {', '.join(RunSort)}", field="sort")
    return RunSort(name), text.startswith("-")


def _heads(sort: RunSort, *, descending: bool) -> dict[str, tuple[str, str]]:
    """Return for each sortable column its `aria-sort` value and the sort that its head links to."""
    heads = {}
    for one in RunSort:
        is_this = one is sort
        # Texts sort ascending first, numbers descending. The head of the sorted column reverses the order.
        is_down = not descending if is_this else one is not RunSort.RUN
        order = "none" if not is_this else "descending" if descending else "ascending"
        heads[one.value] = (order, f"{'-' if is_down else ''}{one.value}")
    heads["attention"] = ("other" if sort is RunSort.ATTENTION else "none", "")
    return heads


def _address(filters: Mapping[str, str | None]) -> str:
    """Build the address of the list with these filters."""
    given = [f"{name}={quote_plus(value)}" for name, value in filters.items() if value]
    return f"/runs?{'&'.join(given)}" if given else "/runs"


def _command(verb: str, filters: Mapping[str, Any]) -> str:
    """Build the terminal command that lists the same runs."""
    values = {name: f"{value:%Y-%m-%dT%H:%M:%SZ}" if isinstance(value, datetime) else value for name, value in filters.items()}
    options = [word for name, value in values.items() if value for word in (f"--{_OPTIONS.get(name, name)}", value)]
    return command("overview", verb, *options)


def recent_ids(runs: Iterable[Any], now: datetime) -> list[str]:
    """Return the ids of runs with entries in the last hour; the strips of all others are empty."""
    return [run.id for run in runs if run.last_at >= now - timedelta(hours=1)]


# Now


# The number of waiting items that are shown in full.
MOST_WHOLE = 4
MOST_RUNS = 12
# Hours of a day that a projection of its cost needs.
_LEAST_HOURS = 2


def read_now(request: SiteRequest) -> PageView:
    """Load the first page. A part that can't be loaded shows an error of just that part."""
    log = request.log
    summary = log.overview.now(limit=MOST_RUNS)
    waiting = summary.waiting[: MOST_WHOLE + 1]
    recent = _part(lambda: log.overview.recent(recent_ids(summary.runs, summary.at)))
    attention = _part(lambda: [(group, *_about(group)) for group in log.overview.attention()])
    abouts = _part(lambda: log.approvals.abouts([item.id for item in waiting if item.kind.value == "approval"]))
    shown = {
        "summary": summary,
        "rest": _rest_of(summary.sentence),
        "items": [(item, abouts.get(item.id) if isinstance(abouts, dict) else abouts) for item in waiting],
        "recent": recent,
        "attention": attention,
        "strips": getattr(recent, "activity", {}),
        "spent": _spent(summary),
        "last_at": max((run.last_at for run in summary.runs), default=None),
    }
    return PageView("now.html", "Now", "decklog now", summary, shown, place="now", decisions=summary.decisions)


_TROUBLE = {
    AttentionKind.FAILED_RUN: ("run failed", "runs failed"),
    AttentionKind.BLOCKED_TASK: ("task is blocked", "tasks are blocked"),
    AttentionKind.FAILED_ATTEMPT: ("task failed an attempt", "tasks failed an attempt"),
    AttentionKind.FAILED_CHECK: ("check fails", "checks fail"),
    AttentionKind.BLOCKED_REVIEW: ("review blocks a change", "reviews block changes"),
    AttentionKind.FEEDBACK: ("severe feedback is new", "severe feedback messages are new"),
}


def _about(group: AttentionGroup) -> tuple[str, str]:
    """Return the label of a kind of trouble, and the page of its newest case."""
    places = {
        AttentionKind.FAILED_RUN: f"/runs/{segment(group.id)}/overview",
        AttentionKind.FAILED_CHECK: f"/runs/{segment(group.run_id or '')}/checks",
        AttentionKind.BLOCKED_REVIEW: f"/reviews/{segment(group.id)}",
        AttentionKind.FEEDBACK: f"/search?q={quote_plus(group.id)}",
    }
    return _TROUBLE[group.kind][group.count > 1], places.get(group.kind) or f"/tasks/{segment(group.id)}"


def _part(read_it: Callable[[], Any]) -> Any:
    try:
        return read_it()
    except DecklogError as problem:
        return public_error(problem)


def _rest_of(sentence: str) -> tuple[str, str]:
    """Split the summary into the emphasized first sentence and the rest."""
    head, dot, rest = sentence.partition(". ")
    return (head + dot.strip(), rest) if dot else (sentence, "")


def _spent(summary: Any) -> dict[str, Any]:
    """Return today's money: the amount spent, its budget, and the projected amount at the end of the day."""
    budgets = [one for one in summary.budgets if one.scope == "all" and one.unit == "microdollars"]
    budget = next((one for one in budgets if one.period == "day"), budgets[0] if budgets else None)
    pressing = [one for one in summary.budgets if one is not budget and one.state != "ok"][:4]
    return {"budget": budget, "pressing": pressing, "pace": _pace(summary.spent_today, summary.at)}


def _pace(spent: int, now: datetime) -> str | None:
    moment = now.astimezone(UTC)
    hours = moment.hour + moment.minute / 60
    return dollars(round(spent * 24 / hours)) if spent and hours >= _LEAST_HOURS else None
