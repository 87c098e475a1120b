"""Comparison of two moments of runs: their figures, and the records that differ, from one read of their snapshots."""

from collections import Counter
from dataclasses import dataclass
from typing import Any

from decklog.records.record import Record
from decklog.stores.results.runs import RecordDifference
from decklog.stores.runs.history import RunHistory, StreamPosition
from decklog.stores.runs.snapshot import Past, RunSnapshot, moment_named

# Fields that name a record for people.
_CALLED = ("title", "name", "path", "question", "criterion", "goal")
# Fields about the actor, the time or ids, which do not describe the result.
_OWN = ("id", "key", "worker", "fence", "actor", "parent_seq", "leased_until", "not_before", "tags", "inputs")


def differing(before: RunSnapshot, after: RunSnapshot) -> list[RecordDifference]:
    """List the differences between two moments of one run, or of two runs with different ids, such as forks."""
    return difference(before, after) if before.run_id == after.run_id else _between(before, after)


def difference(before: RunSnapshot, after: RunSnapshot) -> list[RecordDifference]:
    """List what was added, removed or changed from one snapshot to another, field by field."""
    changes: list[RecordDifference] = []
    for table in dict.fromkeys([*before.records, *after.records]):
        sides = (side.records.get(table, []) for side in (before, after))
        old, new = ({record.id_of(record.values()): record.as_dict() for record in records} for records in sides)
        for record_id in dict.fromkeys([*old, *new]):
            changed = compared(table, record_id, old.get(record_id), new.get(record_id))
            if changed is not None:
                changes.append(changed)
    return changes


def compared(table: str, record_id: str, old: dict[str, Any] | None, new: dict[str, Any] | None) -> RecordDifference | None:
    """Compare two states of a record field by field; return None if they are equal."""
    if old is None or new is None:
        return {"table": table, "record_id": record_id, "change": "added" if old is None else "removed", "fields": {}}
    fields = {name: [old.get(name), new.get(name)] for name in {**old, **new} if old.get(name) != new.get(name)}
    return {"table": table, "record_id": record_id, "change": "changed", "fields": fields} if fields else None


def _between(before: RunSnapshot, after: RunSnapshot) -> list[RecordDifference]:
    """List the differences of two runs: the runs, their spending, then all other records by name."""
    changes = [compared("runs", f"{before.run_id} {after.run_id}", _plain(before.run), _plain(after.run))]
    changes.append(compared("charges", "spent", dict(before.spent), dict(after.spent)))
    for table in dict.fromkeys([*before.records, *after.records]):
        if table not in ("runs", "charges"):
            changes += _of_table(table, before.records.get(table, []), after.records.get(table, []))
    return [change for change in changes if change is not None]


def _of_table(table: str, old: list[Record], new: list[Record]) -> list[RecordDifference | None]:
    is_named = all(_name(record) for record in (*old, *new))
    if not is_named:
        return [compared(table, "all", {"count": len(old)}, {"count": len(new)})]
    some, others = _by_name(old), _by_name(new)
    return [compared(table, name, some.get(name), others.get(name)) for name in dict.fromkeys([*some, *others])]


def _by_name(records: list[Record]) -> dict[str, dict[str, Any]]:
    """Name records. Equal names are numbered."""
    found, seen = {}, Counter[str]()
    for record in records:
        name = _name(record)
        seen[name] += 1
        found[name if seen[name] == 1 else f"{name} #{seen[name]}"] = _plain(record)
    return found


def _name(record: Record) -> str:
    """Return the name of a record in its run; empty if only its id identifies it."""
    if record.identity == ("id",):
        return next((str(value).splitlines()[0] for name in _CALLED if (value := getattr(record, name, None))), "")
    parts = [part for part in record.identity if part != "run_id"]
    if record.fork is not None and any(record.fork.refers(part) for part in parts):
        return ""
    return " ".join(str(getattr(record, part)) for part in parts)


def _plain(record: Record) -> dict[str, Any]:
    """Return the fields that can be compared between runs; objects are flattened."""
    found: dict[str, Any] = {}
    for name, value in record.as_dict().items():
        if name in _OWN or name.endswith(("_at", "_id", "_ids")):
            continue
        if isinstance(value, dict) and name != "metadata":
            found |= {f"{name}.{part}": inner for part, inner in value.items()}
        elif name != "metadata":
            found[name] = value
    return found


# A comparison reads every snapshot, so longer runs are not compared.
MOST_ENTRIES = 2000


@dataclass(frozen=True)
class Side:
    """One of the moments: its run, the requested entry (None means now), the entry number, and its history."""

    place: StreamPosition
    at: str | None
    seq: int
    counts: dict[str, int]


@dataclass(frozen=True)
class MomentComparison:
    """Both moments, and the differences of their records; None if a run is too long."""

    sides: list[Side]
    differences: list[RecordDifference] | None


def look(history: RunHistory, past: Past, moments: tuple[str, str], *, can_mark: bool) -> MomentComparison:
    """Load two moments. Raise `TimelineOutdated` if marks of a long run are missing and can be written."""
    named = [moment_named(text) for text in moments]
    places = history.places([run_id for run_id, _ in named])
    stories = {run_id: history.story(place, can_mark=can_mark) for run_id, place in places.items()}
    sides = []
    for run_id, at in named:
        seq = history.entry_for(places[run_id], at)
        sides.append(Side(places[run_id], at, seq, history.tally(places[run_id], stories[run_id], seq)))
    if any(side.seq > MOST_ENTRIES for side in sides):
        return MomentComparison(sides, None)
    before, after = (past.take(side.place.run_id, str(side.seq), recent=False) for side in sides)
    return MomentComparison(sides, differing(before, after))
