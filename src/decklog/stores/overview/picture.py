"""One run on one page, now or as of an entry: its head, its counts, its strip, its lanes and its latest entries."""

from dataclasses import dataclass

from decklog.stores.journal.entry import Entry
from decklog.stores.journal.rows import COLUMNS, SELECT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from decklog.db.base import Database, Row
    from decklog.stores.overview.run_facts import RunOverview

_LATEST = f"select * from ({SELECT} where pos > :start and pos <= :until order by pos desc limit :most) latest"
# The entry that last told of the run itself; it may be among the latest too.
_TOLD = f"""
select * from (
  {SELECT}
   where record_table = 'runs' and record_id = :run_id and stream = :run_id and pos <= :until
   order by seq desc
   limit 1
) told
"""


@dataclass(frozen=True, kw_only=True)
class RunPicture:
    """A run as of entry `seq`, of `last` that there are: `overview` tells how it stands now, or `run` what it was then.

    The strip is that of the whole run. Of entries whose text is long, only its digest is here.
    """

    run_id: str
    seq: int
    last: int
    tallies: dict[str, int]
    pulse: "dict[str, Any]"
    lanes: "dict[str, Any]"
    entries: list[Entry]
    overview: "RunOverview | None" = None
    run: "dict[str, Any] | None" = None

    @property
    def is_now(self) -> bool:
        return self.overview is not None

    def as_dict(self) -> "dict[str, Any]":
        shown = {"entries": [entry.as_dict() for entry in self.entries], "is_now": self.is_now}
        return {**vars(self), **shown, "overview": None if self.overview is None else self.overview.as_dict()}


def latest(
    db: "Database", run_id: str, start: int, seq: int, most: int, *, with_run: bool
) -> "tuple[list[Entry], dict[str, Any] | None]":
    """List the entries of a run up to a number, the latest first; and, if asked, give what the run was then, as columns.

    Entries are as their rows are: what they name by a digest is not read.
    """
    bound = {"start": start, "until": start + seq, "most": most}
    if not with_run:
        return [_entry(row) for row in db.rows(_LATEST, bound)[1]], None
    rows = db.rows(f"{_LATEST} union all {_TOLD}", {**bound, "run_id": run_id})[1]
    found = {row[0]: _entry(row) for row in sorted(rows, reverse=True, key=lambda row: row[0])}
    told = next(entry for entry in found.values() if entry.record_table == "runs")
    return list(found.values())[:most], dict(told.payload)  # type: ignore[call-overload]


def _entry(row: "Row") -> Entry:
    return Entry.from_row(COLUMNS[1:], row[1:])
