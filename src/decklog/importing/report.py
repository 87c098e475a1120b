"""The report of an import: counts by outcome for each table, and notes on everything unusual."""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

MOST_NOTES = 200


class Outcome(StrEnum):
    """The outcome of importing one row."""

    NEW = "new"
    CHANGED = "changed"
    ALREADY = "already"
    KEPT = "kept"
    REFUSED = "refused"


@dataclass
class Report:
    """Counts per table of the source. `kept` rows are stored in the journal, because no record could hold them."""

    system: str
    path: str
    dry_run: bool = False
    version: int | None = None
    tables: dict[str, dict[str, int]] = field(default_factory=dict)
    unknown: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    notes_left_out: int = 0
    # Data of the source that was not imported at all.
    losses: list[str] = field(default_factory=list)

    def count(self, table: str, outcomes: list[Outcome]) -> None:
        """Count the outcomes of rows of a table."""
        counts = self.tables.setdefault(table, dict.fromkeys(["read", *Outcome], 0))
        counts["read"] += len(outcomes)
        for outcome in Outcome:
            counts[outcome] += outcomes.count(outcome)

    def note(self, text: str) -> None:
        """Add a note; beyond MOST_NOTES, only count it."""
        if text in self.notes:
            return
        if len(self.notes) < MOST_NOTES:
            self.notes.append(text)
        else:
            self.notes_left_out += 1

    def lose(self, text: str) -> None:
        """Report lost data as a loss and as a note."""
        if len(self.losses) < MOST_NOTES:
            self.losses.append(text)
        self.note(text)

    def total(self, outcome: Outcome) -> int:
        return sum(counts[outcome] for counts in self.tables.values())

    def as_dict(self) -> dict[str, Any]:
        totals = {str(outcome): self.total(outcome) for outcome in Outcome}
        return {**vars(self), "totals": totals}
