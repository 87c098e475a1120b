"""What differs between two moments: of one run record by record, of two runs by what their records are called."""

from collections import Counter
from typing import Any

from decklog.records.record import Record
from decklog.stores.results.runs import RecordDifference
from decklog.stores.runs.snapshot import RunSnapshot, compared, difference

# What people know a record by that has an id of its own.
_CALLED = ("title", "name", "path", "question", "criterion", "goal")
# Who did it, when and under which number says nothing of what came of it.
_OWN = ("id", "key", "worker", "fence", "actor", "parent_seq", "leased_until", "not_before", "tags", "inputs")


def differing(before: RunSnapshot, after: RunSnapshot) -> list[RecordDifference]:
    """List what differs between two moments of one run, or of two such as two forks of one, each of which has its own ids."""
    return difference(before, after) if before.run_id == after.run_id else _between(before, after)


def _between(before: RunSnapshot, after: RunSnapshot) -> list[RecordDifference]:
    """List how two runs differ: the runs themselves, what they spent, then all else by what it is called."""
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
    """Name records; those that are called the same are told apart by their order."""
    found, seen = {}, Counter[str]()
    for record in records:
        name = _name(record)
        seen[name] += 1
        found[name if seen[name] == 1 else f"{name} #{seen[name]}"] = _plain(record)
    return found


def _name(record: Record) -> str:
    """Return what a record is called in its run; nothing when only ids tell it from others."""
    if record.identity == ("id",):
        return next((str(value).splitlines()[0] for name in _CALLED if (value := getattr(record, name, None))), "")
    parts = [part for part in record.identity if part != "run_id"]
    if record.fork is not None and any(record.fork.refers(part) for part in parts):
        return ""
    return " ".join(str(getattr(record, part)) for part in parts)


def _plain(record: Record) -> dict[str, Any]:
    """Return what can be compared between runs; what is an object is told by its parts."""
    found: dict[str, Any] = {}
    for name, value in record.as_dict().items():
        if name in _OWN or name.endswith(("_at", "_id", "_ids")):
            continue
        if isinstance(value, dict) and name != "metadata":
            found |= {f"{name}.{part}": inner for part, inner in value.items()}
        elif name != "metadata":
            found[name] = value
    return found
