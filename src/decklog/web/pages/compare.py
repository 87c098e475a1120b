"""Compare: two runs, or two moments of one, side by side, and what differs between their records."""

from typing import Any

from decklog.app import Decklog
from decklog.web.pages import run_moment
from decklog.web.site import Asked, View

# A difference is made of whole runs: of longer ones the terminal tells it.
MOST_ENTRIES = 5000
MOST_SHOWN = 500
_FIGURES = {
    "entries": "entries",
    "done": "tasks done",
    "failed_attempts": "attempts failed",
    "calls": "calls",
    "cost": "spent",
    "minutes": "minutes",
}


def read(asked: Asked) -> View:
    """Read two moments, each given as RUN or RUN:ENTRY, and what differs."""
    a, b = asked.word("a"), asked.word("b")
    sides = [_side(asked.log, text) for text in (a, b) if text]
    both = sides if len(sides) == 2 else None
    is_long = both is not None and any(one["head"].seq > MOST_ENTRIES for one in both)
    found = asked.log.runs.diff(str(a), str(b)) if both and not is_long else []
    tables: dict[str, list[dict[str, Any]]] = {}
    for one in found[:MOST_SHOWN]:
        tables.setdefault(one["table"], []).append(one)
    shown: dict[str, Any] = {
        "a": a,
        "b": b,
        "both": both,
        "tables": tables,
        "left_out": max(0, len(found) - MOST_SHOWN),
        "is_long": is_long,
    }
    shown |= {"figures": _FIGURES, "parting": _parting(both), "most": MOST_ENTRIES}
    data = {"sides": [one["head"] for one in sides], "differences": found[:MOST_SHOWN]}
    decisions = sides[0]["decisions"] if sides else None
    return View("compare.html", "Compare", f"decklog runs diff {a or 'A'} {b or 'B'}", data, shown, None, "more", decisions)


def _side(log: Decklog, text: str) -> dict[str, Any]:
    run_id, colon, seq = text.rpartition(":")
    is_moment = bool(colon and run_id and seq.isdecimal())
    at = seq if is_moment else None
    picture = log.overview.picture(
        run_id if is_moment else text, at=at, entries=0, tasks=0, lanes=0 if at is None else 1, buckets=1
    )
    head, tallies = run_moment.of(picture), picture.tallies
    took = ((head.ended_at or head.moment) - head.started_at).total_seconds() / 60
    figures = {
        "entries": head.seq,
        "done": head.tasks["done"],
        "failed_attempts": tallies["failed_attempts"],
        "calls": head.calls,
        "cost": head.cost,
        "minutes": round(took),
    }
    return {"head": head, "figures": figures, "said": text, "decisions": picture.decisions}


def _parting(both: list[dict[str, Any]] | None) -> str | None:
    """Say of two runs how one comes from the other, where it does."""
    heads = [one["head"] for one in both or ()]
    for one, other in (heads, heads[::-1]) if len(heads) == 2 else ():
        if other.parent == one.id:
            return f"{other.id} is a fork of {one.id}: its records are copies under new ids"
    return None
