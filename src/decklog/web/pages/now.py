"""Now: what waits for a person, what runs, and what it costs, at a glance."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote_plus

from decklog import AttentionGroup, AttentionKind
from decklog.core.errors import DecklogError
from decklog.core.figures import dollars
from decklog.web.answers import told
from decklog.web.pages.runs import lately, lines_of
from decklog.web.rendering import segment
from decklog.web.site import PageView, SiteRequest

# The number of waiting items that are shown in full.
MOST_WHOLE = 4
MOST_RUNS = 12
# Hours of a day that a projection of its cost needs.
_LEAST_HOURS = 2


def read(asked: SiteRequest) -> PageView:
    """Load the first page. A part that can't be loaded shows an error of just that part."""
    log = asked.log
    summary = log.overview.now(limit=MOST_RUNS)
    waiting = summary.waiting[: MOST_WHOLE + 1]
    recent = _part(lambda: log.overview.recent(lately(summary.runs, summary.at)))
    attention = _part(lambda: [(group, *_about(group)) for group in log.overview.attention()])
    abouts = _part(lambda: log.approvals.abouts([item.id for item in waiting if item.kind.value == "approval"]))
    shown = {
        "summary": summary,
        "rest": _rest_of(summary.sentence),
        "items": [(item, abouts.get(item.id) if isinstance(abouts, dict) else abouts) for item in waiting],
        "recent": recent,
        "attention": attention,
        "lines": lines_of(summary.runs, summary.at, getattr(recent, "activity", {})),
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
        return told(problem)


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
