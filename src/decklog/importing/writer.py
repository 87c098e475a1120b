"""Write the rows of a source through the stores: each once, or kept as it was when no record can hold it."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cached_property, lru_cache
from hashlib import sha256
from typing import Any, TypeVar

from decklog.core.errors import Closed, Damaged, DecklogError, Invalid, NotFound, ReadOnly
from decklog.importing.report import Outcome, Report
from decklog.importing.row import Row, plain
from decklog.journal import chain
from decklog.journal.entry import IMPORT_KEY_PREFIX, IMPORT_SUBTYPES, IMPORTED, IMPORTED_COLUMNS, IMPORTED_ROW, Entry, EntryKind
from decklog.journal.rows import COLUMNS, find_stream_number, load_entry
from decklog.log import Decklog
from decklog.records.record import Record, find_all
from decklog.stores.intake import Intake
from decklog.stores.money.bulk import Bulk
from decklog.stores.runs.run import Run, RunStatus

M = TypeVar("M", bound=Callable[..., Any])
# What the journal knows a keyed entry by: stream, subtype, group and key.
Identity = tuple[str, str, str, str]
Mapping = Callable[[Row], Any]
After = Callable[[list[tuple[Row, Outcome]]], None]


@dataclass(slots=True)
class PendingEntry:
    """An entry to append for a row, as the arguments of `append`. The outcome is set once it is written."""

    row: Row
    entry: dict[str, Any]
    outcome: Outcome = Outcome.NEW
    # Goes into the report, unless the journal had the entry.
    note: str | None = None


@dataclass(slots=True)
class PendingCharge:
    """A charge of a row, as the arguments of the ledger's; the money is spent."""

    row: Row
    charge: dict[str, Any]
    outcome: Outcome = Outcome.NEW


@dataclass(slots=True)
class PendingRecord:
    """A record of a row; an existing one is updated when the source's is newer, by the time in `clock`."""

    row: Row
    record_class: type[Record]
    fields: dict[str, Any]
    clock: str | None = None
    # Fields of a new record only.
    at_first: dict[str, Any] = field(default_factory=dict)
    # Returns why an existing record must not be changed; None if it may.
    stays: Callable[[Any], str | None] | None = None
    outcome: Outcome = Outcome.NEW

    @property
    def identity(self) -> tuple[Any, ...]:
        return tuple([self.fields[name] for name in self.record_class.identity])

    @property
    def added(self) -> dict[str, Any]:
        """The fields of a new record."""
        return {**self.fields, **self.at_first}


Pending = PendingEntry | PendingCharge | PendingRecord


def describes(mapping: M) -> M:
    """Mark a mapping that writes nothing itself: a row it refuses is kept without undoing what was made of the others."""
    mapping.only_describes = True  # type: ignore[attr-defined]
    return mapping


# The note of every change that an import makes.
NOTE = "imported"
SUBTYPE = COLUMNS.index("subtype")
# The columns to compare of entries with the same key, without those that the log itself derives.
_COMPARED = [place for place, name in enumerate(COLUMNS) if name not in ("pos", "stream", "seq", "hash", "key", "redacted")]
_AT = COLUMNS.index("at")
_DIGESTS = {chain.BODY: chain.BODY_DIGEST, chain.PAYLOAD: chain.PAYLOAD_DIGEST}


@dataclass(frozen=True)
class Versions:
    """An existing record compared with a row of the source."""

    _log: Decklog
    _present: Record
    _fields: dict[str, Any]

    def is_same(self) -> bool:
        """Return whether the record equals the row."""
        here = {name: getattr(self._present, name) for name in self._fields}
        # Usually they are equal without redaction, which takes ten times as long.
        return here == self._fields or self._log.db.values.bind(here)[0] == self._given

    @cached_property
    def _given(self) -> dict[str, Any]:
        """The row as column values: redacted, with canonical JSON."""
        return self._log.db.values.bind(self._fields)[0]

    def is_ours(self) -> bool:
        """Return whether an import made the last change."""
        return self._history[-1].body == NOTE

    def moved(self) -> tuple[list[str], list[str]]:
        """Return the fields that the source changed since the import, and those that changed here, too."""
        set_by_import: dict[str, Any] = {}
        before: dict[str, Any] | None = None
        for entry in self._history:
            image = entry.payload if isinstance(entry.payload, dict) else {}
            if before is None or entry.body == NOTE:
                set_by_import |= {
                    name: image.get(name) for name in self._given if before is None or image.get(name) != before.get(name)
                }
            before = image
        here = before or {}
        moved = [name for name, value in self._given.items() if value != set_by_import.get(name) and value != here.get(name)]
        return moved, [name for name in moved if here.get(name) != set_by_import.get(name)]

    @cached_property
    def _history(self) -> list[Entry]:
        table, record_id = self._present.table, self._present.id_of(self._present.values())
        return list(find_all(self._log.journal.history, table, record_id))


def is_same_entry(pending: PendingEntry, said: Sequence[Any], present: tuple[Any, ...]) -> bool:
    """Return whether a row's columns, as they would be written, are those of the existing entry.

    Empty columns are not compared, and a text that is stored elsewhere or was pruned is compared by its digest.
    """
    for place in _COMPARED:
        value, held = said[place], present[place]
        if value is None or value == held or value == "" or (place == _AT and pending.entry.get("at") is None):
            continue
        digest = _DIGESTS.get(place)
        if digest is None or held is not None or chain.digest(value) != present[digest]:
            return False
    return True


def identity_of(entry: dict[str, Any]) -> Identity | None:
    """Return the key columns of an entry that is given as arguments of `append`; None unless they are texts."""
    stream, key = entry.get("stream"), entry.get("key")
    subtype, group_id = entry.get("subtype") or "", entry.get("group_id") or ""
    identity = (stream, subtype, group_id, key)
    return identity if all(type(part) is str for part in identity) else None  # type: ignore[return-value]


_ROWS = 1000
_LONGEST_PART = 60
_NOT_PLAIN = re.compile(r"[^A-Za-z0-9._-]")
_CHARACTERS = 8 * 1024**2


class _DryRun(Exception):
    """Ends a dry run, so that nothing of it stays."""


class RowWriter:
    """Writes what mappings make of rows, through the stores, and counts it."""

    def __init__(self, log: Decklog, report: Report, progress: Callable[[str, int, int], None] | None = None) -> None:
        self.log = log
        self.intake = Intake(log.parts)
        self.bulk = Bulk(log.parts)
        self.report = report
        self._progress = progress
        # Of the batch that is being taken: they reach the report once it is committed.
        self._notes: list[str] = []
        self._losses: list[str] = []
        # Functions that add records of some kinds, and return for each record whether it is new.
        self.adders: dict[type[Record], Callable[[list[dict[str, Any]]], list[bool]]] = {}
        self._turns: dict[tuple[str, str, datetime], dict[str, int]] = {}
        # The subtypes and groups that keyed entries of a stream had when this import first wrote to it.
        self._kinds: dict[tuple[str, str], list[tuple[str, str]]] = {}

    @contextmanager
    def open(self) -> Iterator[None]:
        """Run a dry run in one transaction and undo it; otherwise each batch is committed."""
        if not self.report.dry_run:
            yield
            return
        try:
            with self.log.transaction():
                yield
                raise _DryRun
        except _DryRun:
            return

    # Batches

    def import_rows(self, rows: Iterable[Row], mapping: Mapping, whole: int = 0, after: After | None = None) -> None:
        """Import rows in batches of limited size, each in a transaction."""
        batch: list[Row] = []
        done = room = 0
        try:
            for row in rows:
                batch.append(row)
                room -= row.characters()
                if len(batch) == _ROWS or room < -_CHARACTERS:
                    done += self._take_batch(batch, mapping, done, whole, after)
                    batch, room = [], 0
        except Damaged as problem:
            # Rows before the damage are imported, and the other tables may be intact.
            table = problem.details.get("table", "a table")
            lost = f"at most {whole - done - len(batch)}" if whole > done + len(batch) else "an unknown number"
            self.report.lose(f"{table}: {problem.message}; {done + len(batch)} rows were read, and {lost} of them were not")
        self._take_batch(batch, mapping, done, whole, after)

    def _take_batch(self, batch: list[Row], mapping: Mapping, done: int, whole: int, after: After | None) -> int:
        if not batch:
            return 0
        self._notes, self._losses = [], []
        with self.log.transaction():
            outcomes = self._take(batch, mapping)
            if after is not None:
                after(list(zip(batch, outcomes, strict=True)))
        # Counted only now: what is not committed did not arrive.
        self.report.count(batch[0].table, outcomes)
        for note in self._notes:
            self.report.note(note)
        for loss in self._losses:
            self.report.lose(loss)
        if self._progress:
            self._progress(batch[0].table, done + len(batch), whole)
        return len(batch)

    def _take(self, rows: list[Row], mapping: Mapping) -> list[Outcome]:
        """Take rows together. When one of them can't be taken, take the halves apart, down to the row that it is."""
        noted = len(self._notes)
        try:
            with self.log.transaction():
                return self._take_together(rows, mapping)
        except DecklogError as problem:
            if problem.retryable or isinstance(problem, (Closed, ReadOnly)):
                raise
            del self._notes[noted:]
            if len(rows) == 1:
                return [self.keep(rows[0], problem.message)]
        for row in rows:
            row.reset()
        middle = len(rows) // 2
        return self._take(rows[:middle], mapping) + self._take(rows[middle:], mapping)

    def _take_together(self, rows: list[Row], mapping: Mapping) -> list[Outcome]:
        if getattr(mapping, "only_describes", False):
            outcomes = self._write_described([self._described(row, mapping) for row in rows])
        else:
            outcomes = [mapping(row) for row in rows]
        # Columns that a mapping left over are kept with the record or entry that it made.
        taken = zip(rows, outcomes, strict=True)
        self._write([self._left(row) for row, outcome in taken if row.left and outcome not in (Outcome.KEPT, Outcome.REFUSED)])
        return outcomes

    def _described(self, row: Row, mapping: Mapping) -> Pending:
        try:
            pending: Pending = mapping(row)
        except DecklogError as problem:
            return self._whole(row, problem.message)
        return pending

    def _write_described(self, batch: list[Pending]) -> list[Outcome]:
        """Write entries, records and charges, each kind together; return the outcomes in the order of the rows."""
        self._write([pending for pending in batch if isinstance(pending, PendingEntry)], name_rows=True)
        self._write_records([pending for pending in batch if isinstance(pending, PendingRecord)])
        self._write_charges([pending for pending in batch if isinstance(pending, PendingCharge)])
        return [pending.outcome for pending in batch]

    def _write_charges(self, batch: list[PendingCharge]) -> None:
        if not batch:
            return
        known, new = self.bulk.known([pending.charge for pending in batch]), []
        for pending in batch:
            present = known.get((pending.charge["run_id"], pending.charge["key"]))
            if present is None:
                new.append(pending)
            else:
                is_corrected = self.bulk.correct(present, pending.charge, note=NOTE)
                pending.outcome = Outcome.CHANGED if is_corrected else Outcome.ALREADY
        for pending, is_new in zip(new, self.bulk.charge_all([pending.charge for pending in new]), strict=True):
            pending.outcome = Outcome.NEW if is_new else Outcome.ALREADY

    def _write_records(self, batch: list[PendingRecord]) -> None:
        """Add new records, many at once, and update the others one by one."""
        if not batch:
            return
        # The rows of one table become records of one kind.
        kind = batch[0].record_class
        if (adder := self.adders.get(kind)) is not None:
            for pending, is_new in zip(batch, adder([pending.fields for pending in batch]), strict=True):
                pending.outcome = Outcome.NEW if is_new else Outcome.ALREADY
            return
        present: dict[tuple[Any, ...], Any] = self.intake.seek_all(kind, [pending.identity for pending in batch])
        new: dict[tuple[Any, ...], PendingRecord] = {}
        for pending in batch:
            if pending.identity not in present:
                new.setdefault(pending.identity, pending)
        self.intake.add_all(kind, [pending.added for pending in new.values()], note=NOTE)
        for pending in batch:
            if new.get(pending.identity) is not pending:
                found = present.get(pending.identity) or self.intake.seek(kind, pending.identity)
                pending.outcome = self._recorded(pending, found)

    def _recorded(self, pending: PendingRecord, present: Record | None) -> Outcome:
        assert present is not None
        why = pending.stays and pending.stays(present)
        if why and not Versions(self.log, present, pending.fields).is_same():
            self._notes.append(f"{present.noun()} {present.id_of(present.values())} {why}")
        return Outcome.ALREADY if why else self._renew(present, pending.clock, pending.fields)

    def _write(self, batch: list[PendingEntry], *, name_rows: bool = False) -> None:
        """Append entries, each once; with `name_rows`, name the rows by their entries."""
        if not batch:
            return
        changed = self._of_another_kind(batch) if name_rows else {}
        for place, present in changed.items():
            batch[place].outcome = self._keep_changed(batch[place].row, present)
        self._append([pending for place, pending in enumerate(batch) if place not in changed], name_rows=name_rows)

    def _of_another_kind(self, batch: list[PendingEntry]) -> dict[int, tuple[Any, ...]]:
        """Find the rows whose entry is here under another subtype or group, which are parts of what it is known by."""
        asked: dict[Identity, tuple[int, bool]] = {}
        for place, pending in enumerate(batch):
            own = identity_of(pending.entry)
            kinds = self._kinds_of(own[0], pending.row.table) if own is not None else []
            if own is not None and kinds:
                asked[own] = (place, True)
                others = ((own[0], *kind, own[3]) for kind in kinds if kind != own[1:3])
                asked |= dict.fromkeys(others, (place, False))
        known = self.intake.known_rows(asked) if asked else {}
        as_before = {asked[identity][0] for identity in known if asked[identity][1]}
        return {asked[identity][0]: row for identity, row in known.items() if asked[identity][0] not in as_before}

    def _kinds_of(self, stream: str, table: str) -> list[tuple[str, str]]:
        """List the subtypes and groups of the entries that earlier imports made of a table's rows."""
        if (stream, table) not in self._kinds:
            start = key_start(self.report.system, table)
            sql = f"""
                select distinct coalesce(subtype, ''), coalesce(group_id, '') from entries
                 where stream = :stream and key is not null and substr(key, 1, {len(start)}) = :start
                """
            _, rows = self.log.db.rows(sql, {"stream": stream, "start": start})
            self._kinds[stream, table] = [(subtype, group) for subtype, group in rows if subtype not in IMPORT_SUBTYPES]
        return self._kinds[stream, table]

    def _append(self, batch: list[PendingEntry], *, name_rows: bool) -> None:
        prepared = self.intake.prepared_all([pending.entry for pending in batch])
        entries = self.intake.append_all(prepared)
        # Bookkeeping entries of imports need no comparison.
        present = entries.known_rows([place for place in entries.known if prepared[place][SUBTYPE] not in IMPORT_SUBTYPES])
        for place, pending in enumerate(batch):
            row, held = pending.row, present.get(place)
            if name_rows and row.left:
                row.made = (load_entry(self.log.db, held) if held is not None else entries[place]).id
            if place not in entries.known:
                self._notes += [pending.note] if pending.note is not None else []
            elif held is None or is_same_entry(pending, prepared[place], held):
                pending.outcome = Outcome.ALREADY
            else:
                pending.outcome = self._keep_changed(row, held)

    def _keep_changed(self, row: Row, present: tuple[Any, ...]) -> Outcome:
        """Keep a changed row with the entry that was made of it; the entry stays."""
        row.left, row.instead, row.made = dict(row.columns), {}, load_entry(self.log.db, present).id
        pending = self._left(row)
        self._write([pending])
        row.left = {}
        return Outcome.ALREADY if pending.outcome is Outcome.ALREADY else Outcome.CHANGED

    # What is kept as it was

    def _left(self, row: Row) -> PendingEntry:
        columns = {name: plain(value) for name, value in row.left.items()}
        named = sorted(columns.keys() - {"id", *row.expected})
        payload = {"columns": columns, "instead": row.instead, "made": row.made}
        pending = self._as_it_was(row, IMPORTED_COLUMNS, payload, f"{row}: columns as they were")
        pending.note = f"{row}: {', '.join(named)} kept with the record" if named else None
        return pending

    def _whole(self, row: Row, why: str, at: datetime | None = None) -> PendingEntry:
        row.left = {}
        pending = self._as_it_was(row, IMPORTED_ROW, {"row": plain(row.columns), "why": why}, f"{row}: {why}", at)
        pending.outcome, pending.note = Outcome.KEPT, f"{row} is kept as it was: {why}"
        return pending

    def _as_it_was(self, row: Row, subtype: str, payload: dict[str, Any], body: str, at: datetime | None = None) -> PendingEntry:
        named = {"system": self.report.system, "table": row.table, "id": row.id}
        key = f"{self.key(row)}:{row.digest()}"
        entry = {"stream": row.stream, "body": body, "kind": EntryKind.EVENT, "subtype": subtype, "payload": {**named, **payload}}
        return PendingEntry(row, {**entry, "key": key, "at": at})

    def keep(self, row: Row, why: str, at: datetime | None = None) -> Outcome:
        """Keep a whole row in the journal because no record can hold it."""
        try:
            with self.log.transaction():
                return self._write_whole(row, why, at)
        except NotFound:
            row.stream = "@desk"
            return self._write_whole(row, why, at)
        except Invalid as problem:
            self._losses.append(f"{row} was refused: {problem.message}")
            return Outcome.REFUSED

    def _write_whole(self, row: Row, why: str, at: datetime | None) -> Outcome:
        pending = self._whole(row, why, at)
        self._write([pending])
        return pending.outcome

    def key(self, row: Row) -> str:
        """Return the key of a row. Without a run, ids of two files may be equal: the key then has a digest of the content."""
        name = f"{key_start(self.report.system, row.table)}{row.id}"
        if row.stream.startswith("@"):
            name = f"{name}:{row.digest()}"
        return name

    def has_run(self, run_id: str) -> bool:
        """Return whether a run exists."""
        return self.log.db.read(lambda: find_stream_number(self.log.db, run_id)) is not None

    # What mappings write with

    def ensure_run(self, run_id: str, goal: str, started_at: datetime, metadata: dict[str, object] | None = None) -> None:
        """Add an active run, unless it exists."""
        if not self.has_run(run_id):
            times: dict[str, Any] = {"started_at": started_at, "updated_at": started_at}
            facts: dict[str, Any] = {"goal": goal, "status": RunStatus.ACTIVE, "metadata": metadata or {}}
            with self.log.transaction():
                self.record(Run, new_stream=True, id=run_id, **facts, **times)

    def entry(self, row: Row, entry: dict[str, Any]) -> PendingEntry:
        """Describe an entry of the row's stream, given as the arguments of `append`; it is written once."""
        entry["stream"] = row.stream
        if "key" not in entry:
            entry["key"] = self.key(row)
        return PendingEntry(row, entry)

    def charge(self, row: Row, charge: dict[str, Any]) -> PendingCharge:
        """Describe a charge of the row's run, given as the arguments of the ledger's; it has been spent, and is written once."""
        return PendingCharge(row, {**charge, "run_id": row.stream, "key": self.key(row)})

    def first_time(self, row: Row, *, as_it_is: bool = False) -> bool:
        """Return whether a row was never taken before, and remember that it was: for verbs that know neither key nor id.

        With `as_it_is`, a row that was changed since counts as another.
        """
        key = self.key(row)
        if as_it_is and not key.endswith(row.digest()):
            key = f"{key}:{row.digest()}"
        marked = self.log.journal.append(
            row.stream,
            f"{row} was imported",
            kind=EntryKind.EVENT,
            subtype=IMPORTED,
            payload={"system": self.report.system, "table": row.table, "id": row.id},
            key=key,
        )
        return not marked.already

    def in_turn(self, row: Row, at: datetime) -> datetime:
        """Return rows of the same time separated by microseconds, so that they keep their order."""
        known = self._turns.setdefault((row.table, row.stream, at), {})
        return at + timedelta(microseconds=known.setdefault(row.id, len(known)))

    def record(self, record_class: type[Record], *, clock: str | None = None, new_stream: bool = False, **fields: Any) -> Outcome:
        """Add a record as it is. One that is here already becomes the source's when that is newer, by the time in `clock`,
        or when the source changed it and nobody here did.
        """
        identity = [fields[name] for name in record_class.identity]
        present = self.intake.seek(record_class, identity)
        if present is None:
            self.intake.add(record_class, new_stream=new_stream, note=NOTE, **fields)
            return Outcome.NEW
        return self._renew(present, clock, fields)

    def _renew(self, present: Record, clock: str | None, fields: dict[str, Any]) -> Outcome:
        """Bring what moved on in the source. What the log's own users changed stays, unless the source's is newer."""
        its_run = getattr(present, "run_id", None)
        if its_run is not None and fields.get("run_id", its_run) != its_run:
            # Its entries are in that run's stream, and so is its place.
            raise Invalid(f"{present.noun()} {present.id_of(present.values())} belongs to run {its_run} here")
        versions = Versions(self.log, present, fields)
        if versions.is_same():
            return Outcome.ALREADY
        ahead = 0 if clock is None else (fields[clock] > getattr(present, clock)) - (fields[clock] < getattr(present, clock))
        if ahead > 0:
            return self.change(type(present), clock=clock, **fields)
        moved, _ = versions.moved()
        is_ours = versions.is_ours()
        if not moved or (ahead < 0 and is_ours):
            return Outcome.ALREADY
        identity = {name: getattr(present, name) for name in present.identity}
        if not is_ours:
            name = present.id_of(present.values())
            self._notes.append(f"{present.noun()} {name} was changed here and in the source; what is here stays")
            return Outcome.ALREADY
        return self.change(type(present), **identity, **{name: fields[name] for name in moved if name not in identity})

    def merge(self, present: Record, fields: dict[str, Any]) -> Outcome:
        """Bring the fields that the source changed since the last import; one that was changed here too stays."""
        versions = Versions(self.log, present, fields)
        if versions.is_same():
            return Outcome.ALREADY
        moved, both = versions.moved()
        if both:
            name = present.id_of(present.values())
            self._notes.append(f"{present.noun()} {name}: {', '.join(both)} changed here and in the source; what is here stays")
        wanted = {name: fields[name] for name in moved if name not in both}
        identity = {name: getattr(present, name) for name in present.identity}
        return self.change(type(present), **identity, **wanted) if wanted else Outcome.ALREADY

    def change(self, record_class: type[Record], *, clock: str | None = None, **fields: Any) -> Outcome:
        """Write fields of a record that is here as they are; with a `clock`, only over what is older."""
        older = f" and {clock} < :{clock}" if clock else ""
        changes = ", ".join(f"{name} = :{name}" for name in fields if name not in record_class.identity)
        which = " and ".join(f"{name} = :{name}" for name in record_class.identity)
        changed = self.intake.change_all(
            record_class,
            f"update {record_class.table} set {changes} where {which}{older} returning *",
            note=NOTE,
            **fields,
        )
        return Outcome.CHANGED if changed else Outcome.ALREADY


def key_start(system: str, table: str) -> str:
    """Begin the key of what a table's rows become; the row's id follows."""
    return f"{IMPORT_KEY_PREFIX}{system}:{table}:"


@lru_cache(maxsize=4096)
def run_id_of(name: str) -> str:
    """Return the id of a run for a name in the source: the same, or a digest if runs can't have that name."""
    if 0 < len(name) <= 200 and name[0] != "@" and ":" not in name and not any(c.isspace() for c in name):
        return name
    return f"run-{sha256(name.encode()).hexdigest()[:24]}"


def run_below(run_id: str, name: str) -> str:
    """Return the id of a run below another one; a digest keeps changed names distinct."""
    plain = _NOT_PLAIN.sub("-", name)
    if plain == name and len(name) <= _LONGEST_PART:
        return f"{run_id}-{name}"
    return f"{run_id}-{plain[:_LONGEST_PART]}-{sha256(name.encode()).hexdigest()[:8]}"


def saved_outcome(record: Record) -> Outcome:
    """Read from what a verb gave back whether there was anything left to do."""
    return Outcome.ALREADY if record.already else Outcome.NEW
