"""Comparison of two moments of runs: their figures, and the records that differ, from one read of their snapshots."""

from collections import Counter
from dataclasses import dataclass
from typing import Any

from decklog.db.base import Database, Row
from decklog.records.record import Record
from decklog.records.values import from_json
from decklog.stores.results.runs import RecordDifference
from decklog.stores.runs.history import RunHistory, StreamPosition
from decklog.stores.runs.snapshot import RunSnapshot, compared, difference
from decklog.stores.runs.timeline import RunStory

# Fields that name a record for people.
_CALLED = ("title", "name", "path", "question", "criterion", "goal")
# Fields about the actor, the time or ids, which do not describe the result.
_OWN = ("id", "key", "worker", "fence", "actor", "parent_seq", "leased_until", "not_before", "tags", "inputs")


def differing(before: RunSnapshot, after: RunSnapshot) -> list[RecordDifference]:
    """List the differences between two moments of one run, or of two runs with different ids, such as forks."""
    return difference(before, after) if before.run_id == after.run_id else _between(before, after)


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
_IMAGES = """
select {side}, e.seq, e.at, e.record_table, e.record_id, e.payload
  from entries e
 where e.pos > :start{side} and e.pos <= :until{side} and e.record_table is not null
"""


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


def moment_named(text: str) -> tuple[str, str | None]:
    """Parse RUN, RUN:ENTRY or RUN@TIME."""
    run_id, mark, when = text.partition("@") if "@" in text else text.rpartition(":")
    return (run_id, when) if mark and ("@" in text or when.isdecimal()) else (text, None)


def look(
    db: Database, history: RunHistory, classes: dict[str, type[Record]], moments: tuple[str, str], *, can_mark: bool
) -> MomentComparison:
    """Load two moments. Raise `TimelineOutdated` if marks of a long run are missing and can be written."""
    named = [moment_named(text) for text in moments]
    places = history.places([run_id for run_id, _ in named])
    ends = [(places[run_id], at, history.entry_for(places[run_id], at)) for run_id, at in named]
    if any(seq > MOST_ENTRIES for *_, seq in ends):
        stories = {run_id: history.story(place, can_mark=can_mark) for run_id, place in places.items()}
        return MomentComparison([Side(*end, history.tally(end[0], stories[end[0].run_id], end[2])) for end in ends], None)
    rows = _images(db, [(place.start, place.start + seq) for place, _, seq in ends])
    both = [_added_up(classes, *end, [row[1:] for row in rows if row[0] == side]) for side, end in enumerate(ends)]
    return MomentComparison([side for side, _ in both], differing(*(snapshot for _, snapshot in both)))


def _images(db: Database, spans: list[tuple[int, int]]) -> list[Row]:
    """Load every snapshot of some ranges of positions, with the number of the range, oldest first."""
    bound = {
        f"{name}{side}": value for side, span in enumerate(spans) for name, value in zip(("start", "until"), span, strict=True)
    }
    parts = " union all ".join(_IMAGES.format(side=side) for side in range(len(spans)))
    return sorted(db.rows(parts, bound)[1], key=lambda row: (row[0], row[1]))


def _added_up(
    classes: dict[str, type[Record]], place: StreamPosition, at: str | None, seq: int, rows: list[Row]
) -> tuple[Side, RunSnapshot]:
    """Evaluate a run's snapshots, and keep the newest of each record."""
    story, changes = RunStory(), []
    newest: dict[tuple[str, str], str] = {}
    for number, when, table, record_id, payload in rows:
        before = newest.get((table, record_id))
        changes.append((number, when, table, record_id, payload, before if before is None or table == "tasks" else ""))
        newest[table, record_id] = payload
    story.add(changes, seq)
    records: dict[str, list[Record]] = {}
    order = {table: place for place, table in enumerate(classes)}
    for (table, _), payload in sorted(newest.items(), key=lambda one: order[one[0][0]]):
        image = from_json(payload)
        if not image.get("removed"):
            records.setdefault(table, []).append(classes[table].from_image(image))
    return Side(place, at, seq, story.tally), RunSnapshot(run_id=place.run_id, seq=seq, records=records)
