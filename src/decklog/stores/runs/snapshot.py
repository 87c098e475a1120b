"""Snapshots of runs at one moment, from the journal alone, and the comparison of two of them."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol

from decklog.core.ids import Ids
from decklog.db.base import Database, Row
from decklog.journal.entry import Entry
from decklog.journal.rows import entries_between
from decklog.records.fork_rules import Fork
from decklog.records.record import Record
from decklog.records.values import from_json
from decklog.stores.results.runs import RecordDifference
from decklog.stores.runs.history import RunHistory, StreamPosition
from decklog.stores.runs.run import Run

_RECENT = 50
# Part of the snapshot of an unclaimed task. Quotes inside a value are escaped, so it can't be in one.
_UNTRIED = '"attempts":0,'
_REMOVED = '"removed":'


class AttemptReader(Protocol):
    """Reads attempts from snapshots of tasks."""

    def attempts_in(self, images: Iterable[dict[str, Any]]) -> list[Any]: ...


@dataclass(kw_only=True)
class RunSnapshot:
    """All records of a run at an entry. `records` has every kind by table name."""

    run_id: str
    seq: int
    records: dict[str, list[Record]]
    recent: list[Entry] = field(default_factory=list)
    # All snapshots of claimed tasks as JSON, and the reader of attempts.
    _tried: list[str] = field(default_factory=list, repr=False, compare=False)
    _reader: AttemptReader | None = field(default=None, repr=False, compare=False)

    @cached_property
    def attempts(self) -> list[Any]:
        """The attempts at the run's tasks, the earliest first; loaded on first use."""
        return self._reader.attempts_in(map(from_json, self._tried)) if self._reader is not None else []

    @property
    def run(self) -> Record:
        return self.records["runs"][0]

    @property
    def spent(self) -> dict[str, int]:
        """The sums of the run's charges: money, tokens, and calls without a price."""
        charges = self.records.get("charges", [])
        names = ("input_tokens", "cache_read_tokens", "cache_create_tokens", "output_tokens")
        costs = [getattr(charge, "cost_microdollars", None) for charge in charges]
        return {
            "microdollars": sum(cost for cost in costs if cost is not None),
            "tokens": sum(getattr(charge, name, 0) or 0 for charge in charges for name in names),
            "calls": len(charges),
            "unpriced_calls": costs.count(None),
        }

    def as_dict(self) -> dict[str, Any]:
        shown = {table: [record.as_dict() for record in records] for table, records in self.records.items()}
        run = shown.pop("runs")[0]
        shown.pop("charges", None)
        return {
            "run": run,
            "seq": self.seq,
            **shown,
            "attempts": [attempt.as_dict() for attempt in self.attempts],
            "spent": self.spent,
            "recent_entries": [entry.as_dict() for entry in self.recent],
        }


class RunSnapshots:
    """Runs at any entry, from the journal, inside the caller's read."""

    def __init__(self, db: Database, classes: Mapping[str, type[Record]], tasks: Callable[[], AttemptReader]) -> None:
        self._db = db
        self._classes = classes
        self._tasks = tasks
        self._history = RunHistory(db)

    def span(self, run_id: str, at: str | None) -> tuple[int, int]:
        """Return the position before a run's first entry, and that of the requested entry."""
        place = self._history.place(run_id)
        return place.start, place.start + self._history.entry_for(place, at)

    def take(self, run_id: str, at: str | None, *, recent: bool = True) -> RunSnapshot:
        """Load the newest snapshot of every record of a run, now or as of an entry or a time."""
        start, until = self.span(run_id, at)
        changes = self._images_between(start, until)
        return RunSnapshot(
            run_id=run_id,
            seq=until - start,
            records={
                table: [self._classes[table].from_image(from_json(text)) for text in texts]
                for table, texts in self._newest(changes).items()
            },
            recent=entries_between(self._db, max(start, until - _RECENT), until) if recent else [],
            _tried=[text for table, _, text in changes if table == "tasks" and _UNTRIED not in text],
            _reader=self._tasks(),
        )

    def newest(self, start: int, until: int) -> list[tuple[type[Record], dict[str, Any]]]:
        """List the newest snapshot of every existing record. Records that others refer to come first."""
        newest = self._newest(self._images_between(start, until)).items()
        return [(self._classes[table], from_json(text)) for table, texts in newest for text in texts]

    def _newest(self, changes: list[Row]) -> dict[str, list[str]]:
        """Return by table the newest JSON of every existing record, by creation."""
        newest: dict[str, dict[str, str]] = {}
        for table, record_id, text in changes:
            newest.setdefault(table, {})[record_id] = text
        order = {table: place for place, table in enumerate(self._classes)}
        in_order = sorted(newest, key=order.__getitem__)
        there = ((table, [text for text in newest[table].values() if not _is_removal(text)]) for table in in_order)
        return {table: texts for table, texts in there if texts}

    def _images_between(self, start: int, until: int) -> list[Row]:
        """List every snapshot in a range of positions, oldest first: table, record id, and columns as JSON."""
        return self._db.rows(
            """
            select record_table, record_id, payload
              from entries
             where pos > :start
               and pos <= :until
               and record_table is not null
             order by pos
            """,
            {"start": start, "until": until},
        )[1]


def parse_moment_name(text: str) -> tuple[str, str | None]:
    """Parse RUN, RUN:ENTRY or RUN@TIME."""
    run_id, mark, when = text.partition("@") if "@" in text else text.rpartition(":")
    return (run_id, when) if mark and ("@" in text or when.isdecimal()) else (text, None)


def _is_removal(text: str) -> bool:
    # Parsing JSON takes most of the time, so only texts with this word are parsed. Quotes inside a value are escaped.
    return _REMOVED in text and bool(from_json(text).get("removed"))


Image = dict[str, Any]

_ID_LENGTH = 26


def copy_all(found: list[tuple[type[Record], Image]], fork: Fork, ids: Ids, db: Database) -> Iterator[tuple[type[Record], Image]]:
    """Yield the records of a fork; a record comes after those that it refers to."""
    whole = [(kind, kind.upcast(image)) for kind, image in found if kind.fork_rule().is_copied]
    copied = [(kind, image) for kind, image in _repair_fork(whole) if kind.fork_rule().copies(image, fork)]
    fork.entries = len(copied)
    for record_class, image in copied:
        if record_class is not Run and record_class.identity == ("id",):
            fork.ids[record_class.table, image["id"]] = ids.new(_prefix(record_class, image["id"]))
    for record_class, image in copied:
        # The copy's run, and its id if it has one.
        own = {"run_id": fork.run_id} if "run_id" in image else {}
        if record_class.identity == ("id",):
            own["id"] = fork.ids[record_class.table, image["id"]]
        copy = record_class.fork_rule().copy({**image, **own}, fork, record_class.holds_json)
        yield record_class, record_class.compute_forked_fields(copy, db)


def _repair_fork(found: list[tuple[type[Record], Image]]) -> Iterator[tuple[type[Record], Image]]:
    """Drop or correct records that refer to something after the last entry of the fork."""
    by_table: dict[str, list[Image]] = {}
    for record_class, image in found:
        by_table.setdefault(record_class.table, []).append(image)
    for record_class in dict.fromkeys(record_class for record_class, _ in found):
        for image in record_class.repair_fork(by_table[record_class.table], by_table):
            yield record_class, image


def _prefix(record_class: type[Record], record_id: str) -> str:
    """Return the prefix of a copy's id: that of the original, or the record's noun if a caller chose the id."""
    head, mark, rest = record_id.partition("_")
    return head if mark and len(rest) == _ID_LENGTH and head.isalpha() else record_class.noun().rpartition(" ")[2]


# Fields that name a record for people.
_NAME_FIELDS = ("title", "name", "path", "question", "criterion", "goal")
# Fields about the actor, the time or ids, which do not describe the result.
_IGNORED_FIELDS = ("id", "key", "worker", "fence", "actor", "parent_seq", "leased_until", "not_before", "tags", "inputs")


def compare_snapshots(before: RunSnapshot, after: RunSnapshot) -> list[RecordDifference]:
    """List the differences between two moments of one run, or of two runs with different ids, such as forks."""
    return _compare_records(before, after) if before.run_id == after.run_id else _compare_runs(before, after)


def _compare_records(before: RunSnapshot, after: RunSnapshot) -> list[RecordDifference]:
    """List what was added, removed or changed from one snapshot to another, field by field."""
    changes: list[RecordDifference] = []
    for table in dict.fromkeys([*before.records, *after.records]):
        sides = (side.records.get(table, []) for side in (before, after))
        old, new = ({record.id_of(record.values()): record.as_dict() for record in records} for records in sides)
        for record_id in dict.fromkeys([*old, *new]):
            changed = _compare(table, record_id, old.get(record_id), new.get(record_id))
            if changed is not None:
                changes.append(changed)
    return changes


def _compare(table: str, record_id: str, old: dict[str, Any] | None, new: dict[str, Any] | None) -> RecordDifference | None:
    """Compare two states of a record field by field; return None if they are equal."""
    if old is None or new is None:
        return {"table": table, "record_id": record_id, "change": "added" if old is None else "removed", "fields": {}}
    fields = {name: [old.get(name), new.get(name)] for name in {**old, **new} if old.get(name) != new.get(name)}
    return {"table": table, "record_id": record_id, "change": "changed", "fields": fields} if fields else None


def _compare_runs(before: RunSnapshot, after: RunSnapshot) -> list[RecordDifference]:
    """List the differences of two runs: the runs, their spending, then all other records by name."""
    changes = [_compare("runs", f"{before.run_id} {after.run_id}", _comparable(before.run), _comparable(after.run))]
    changes.append(_compare("charges", "spent", dict(before.spent), dict(after.spent)))
    for table in dict.fromkeys([*before.records, *after.records]):
        if table not in ("runs", "charges"):
            changes += _compare_table(table, before.records.get(table, []), after.records.get(table, []))
    return [change for change in changes if change is not None]


def _compare_table(table: str, old: list[Record], new: list[Record]) -> list[RecordDifference | None]:
    is_named = all(_name(record) for record in (*old, *new))
    if not is_named:
        return [_compare(table, "all", {"count": len(old)}, {"count": len(new)})]
    some, others = _index_by_name(old), _index_by_name(new)
    return [_compare(table, name, some.get(name), others.get(name)) for name in dict.fromkeys([*some, *others])]


def _index_by_name(records: list[Record]) -> dict[str, dict[str, Any]]:
    """Name records. Equal names are numbered."""
    found, seen = {}, Counter[str]()
    for record in records:
        name = _name(record)
        seen[name] += 1
        found[name if seen[name] == 1 else f"{name} #{seen[name]}"] = _comparable(record)
    return found


def _name(record: Record) -> str:
    """Return the name of a record in its run; empty if only its id identifies it."""
    if record.identity == ("id",):
        return next((str(value).splitlines()[0] for name in _NAME_FIELDS if (value := getattr(record, name, None))), "")
    parts = [part for part in record.identity if part != "run_id"]
    if record.fork is not None and any(record.fork.is_reference(part) for part in parts):
        return ""
    return " ".join(str(getattr(record, part)) for part in parts)


def _comparable(record: Record) -> dict[str, Any]:
    """Return the fields that can be compared between runs; objects are flattened."""
    found: dict[str, Any] = {}
    for name, value in record.as_dict().items():
        if name in _IGNORED_FIELDS or name.endswith(("_at", "_id", "_ids")):
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


def compare_moments(history: RunHistory, past: RunSnapshots, moments: tuple[str, str], *, can_mark: bool) -> MomentComparison:
    """Load two moments. Raise `TimelineOutdated` if marks of a long run are missing and can be written."""
    named = [parse_moment_name(text) for text in moments]
    places = history.places([run_id for run_id, _ in named])
    stories = {run_id: history.story(place, can_mark=can_mark) for run_id, place in places.items()}
    sides = []
    for run_id, at in named:
        seq = history.entry_for(places[run_id], at)
        sides.append(Side(places[run_id], at, seq, history.tally(places[run_id], stories[run_id], seq)))
    if any(side.seq > MOST_ENTRIES for side in sides):
        return MomentComparison(sides, None)
    before, after = (past.take(side.place.run_id, str(side.seq), recent=False) for side in sides)
    return MomentComparison(sides, compare_snapshots(before, after))
