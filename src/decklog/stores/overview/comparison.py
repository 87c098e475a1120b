"""Two moments of runs side by side, each as the head of its page shows it, and what differs between their records."""

from dataclasses import dataclass
from typing import Any

from decklog.db.base import Database
from decklog.stores.overview.picture import RunPicture, head_of


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """Both moments, without strips, lanes, tasks and entries; `differences` is None where one is too long to be compared so."""

    sides: list[RunPicture]
    differences: "list[dict[str, Any]] | None"
    decisions: int

    def as_dict(self) -> dict[str, Any]:
        sides = [side.as_dict() for side in self.sides]
        return {"sides": sides, "differences": self.differences, "decisions": self.decisions}


def compared(db: Database, base: Any, history: Any, beside: Any) -> Comparison:
    """Show both sides as they stood."""
    sides = [head_of(db, base, history, side) for side in beside.sides]
    return Comparison(sides=sides, differences=beside.differences, decisions=len(base.items))
