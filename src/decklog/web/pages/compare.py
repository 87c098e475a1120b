"""Compare: two runs, or two moments of one, side by side, and what differs between their records."""

from typing import Any

from decklog.core.errors import TimedOut
from decklog.web.pages import run_moment
from decklog.web.site import PATIENCE_SECONDS, PageView, SiteRequest, command

MOST_SHOWN, _MOST_NAMED = 500, 200
_FIGURES = {
    "entries": "entries",
    "done": "tasks done",
    "failed_attempts": "attempts failed",
    "calls": "calls",
    "cost": "spent",
    "minutes": "minutes",
}


def read(asked: SiteRequest) -> PageView:
    """Load two moments, each given as RUN or RUN:ENTRY, and their differences."""
    a, b = asked.word("a"), asked.word("b")
    compared, is_stopped = None, False
    try:
        with asked.log.db.within(PATIENCE_SECONDS):
            compared = asked.log.overview.compare(a, b) if a and b else None
    except TimedOut:
        is_stopped = True
    both = [_side(picture, text) for picture, text in zip(compared.sides, (a, b), strict=True)] if compared else None
    found = (compared.differences or []) if compared else []
    tables: dict[str, list[dict[str, Any]]] = {}
    for one in found[:MOST_SHOWN]:
        tables.setdefault(one["table"], []).append(one)
    shown: dict[str, Any] = {
        "a": a,
        "b": b,
        "both": both,
        "tables": tables,
        "left_out": max(0, len(found) - MOST_SHOWN),
        "is_long": is_stopped or (compared is not None and compared.differences is None),
    }
    shown |= {"figures": _FIGURES, "parting": _parting(both), "names": _names(asked, tables)}
    data = {"sides": [one["head"] for one in both or ()], "differences": found[:MOST_SHOWN]}
    decisions = compared.decisions if compared else None
    return PageView("compare.html", "Compare", command("runs", "diff", a or "A", b or "B"), data, shown, None, "more", decisions)


def _names(asked: SiteRequest, tables: dict[str, list[dict[str, Any]]]) -> dict[str, str]:
    """Return the titles of the first tasks and the goals of the runs that differ."""
    run_ids, task_ids = ([one["record_id"] for one in tables.get(table, [])][:_MOST_NAMED] for table in ("runs", "tasks"))
    return asked.log.overview.names(run_ids=run_ids, task_ids=task_ids)


def _side(picture: Any, text: str | None) -> dict[str, Any]:
    head, totals = run_moment.of(picture), picture.totals
    took = ((head.ended_at or head.moment) - head.started_at).total_seconds() / 60
    figures = {
        "entries": head.seq,
        "done": head.tasks["done"],
        "failed_attempts": totals["failed_attempts"],
        "calls": head.calls,
        "cost": head.cost,
        "minutes": round(took),
    }
    return {"head": head, "figures": figures, "said": text}


def _parting(both: list[dict[str, Any]] | None) -> str | None:
    """Describe how one of two runs was forked from the other; None if it was not."""
    heads = [one["head"] for one in both or ()]
    for one, other in (heads, heads[::-1]) if len(heads) == 2 else ():
        if other.parent == one.id:
            parted = f", from entry {other.parent_seq:,} on" if other.parent_seq else ""
            return (
                f"“{other.goal}” ({other.id}) is a fork of “{one.goal}” ({one.id}){parted}. Its records are copies with new ids."
            )
    return None
