"""Write the rows of a source through the stores, each once. Keep a row unchanged if no record can hold it."""

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
from decklog.importing.row import Row, to_storable
from decklog.journal import chain
from decklog.journal.entry import IMPORT_KEY_PREFIX, IMPORT_SUBTYPES, IMPORTED, IMPORTED_COLUMNS, IMPORTED_ROW, Entry, EntryKind
from decklog.journal.rows import COLUMNS, find_stream_number, load_entry
from decklog.log import Decklog
from decklog.records.record import Record, find_all
from decklog.stores.intake import Intake
from decklog.stores.money.bulk import Bulk
from decklog.stores.runs.run import Run, RunStatus

MappingT = TypeVar("MappingT", bound=Callable[..., Any])
# The key columns of an entry: stream, subtype, group and key.
EntryIdentity = tuple[str, str, str, str]
Mapping = Callable[[Row], Any]
AfterBatch = Callable[[list[tuple[Row, Outcome]]], None]


@dataclass(slots=True)
class PendingEntry:
    """An entry to append for a row, as the arguments of `append`. The outcome is set once it is written."""

    row: Row
    entry: dict[str, Any]
    outcome: Outcome = Outcome.NEW
    # A note for the report, unless the journal already has the entry.
    note: str | None = None


@dataclass(slots=True)
class PendingCharge:
    """A charge to record for a row, as the arguments of the ledger's `charge`. The money is already spent."""

    row: Row
    charge: dict[str, Any]
    outcome: Outcome = Outcome.NEW


@dataclass(slots=True)
class PendingRecord:
    """A record to write for a row. An existing one is updated if the source's time in `clock` is newer."""

    row: Row
    record_class: type[Record]
    fields: dict[str, Any]
    clock: str | None = None
    # Fields of a new record only.
    initial_fields: dict[str, Any] = field(default_factory=dict)
    # Returns why an existing record must not be changed; None if it may.
    update_refusal: Callable[[Any], str | None] | None = None
    outcome: Outcome = Outcome.NEW

    @property
    def identity(self) -> tuple[Any, ...]:
        return tuple([self.fields[name] for name in self.record_class.identity])

    @property
    def all_fields(self) -> dict[str, Any]:
        """The fields of a new record."""
        return {**self.fields, **self.initial_fields}


Pending = PendingEntry | PendingCharge | PendingRecord


def pure_mapping(mapping: MappingT) -> MappingT:
    """Mark a mapping that writes nothing itself. A row that it refuses then doesn't undo the rest of the batch."""
    mapping.only_describes = True  # type: ignore[attr-defined]
    return mapping


# The note on every change by an import.
IMPORT_NOTE = "imported"
SUBTYPE_COLUMN = COLUMNS.index("subtype")
# The columns to compare of entries with the same key, without those that the log derives.
_DERIVED = ("pos", "stream", "seq", "hash", "key", "redacted")
_COMPARED_COLUMNS = [place for place, name in enumerate(COLUMNS) if name not in _DERIVED]
_AT_COLUMN = COLUMNS.index("at")
_DIGEST_COLUMNS = {chain.BODY: chain.BODY_DIGEST, chain.PAYLOAD: chain.PAYLOAD_DIGEST}


@dataclass(frozen=True)
class RecordComparison:
    """An existing record compared with a row of the source."""

    _log: Decklog
    _present: Record
    _fields: dict[str, Any]

    def is_same(self) -> bool:
        """Return whether the record equals the row."""
        here = {name: getattr(self._present, name) for name in self._fields}
        # Compare without redaction first, which is ten times slower.
        return here == self._fields or self._log.db.values.bind(here)[0] == self._source_values

    @cached_property
    def _source_values(self) -> dict[str, Any]:
        """The row as column values, redacted and with canonical JSON."""
        return self._log.db.values.bind(self._fields)[0]

    def was_imported_last(self) -> bool:
        """Return whether an import made the last change."""
        return self._history[-1].body == IMPORT_NOTE

    def changed_fields(self) -> tuple[list[str], list[str]]:
        """Return the fields that the source changed since the import, and those of them that also changed here."""
        set_by_import: dict[str, Any] = {}
        before: dict[str, Any] | None = None
        for entry in self._history:
            image = entry.payload if isinstance(entry.payload, dict) else {}
            if before is None or entry.body == IMPORT_NOTE:
                set_by_import |= {
                    name: image.get(name) for name in self._source_values if before is None or image.get(name) != before.get(name)
                }
            before = image
        here = before or {}
        values = self._source_values.items()
        changed = [name for name, value in values if value not in (set_by_import.get(name), here.get(name))]
        return changed, [name for name in changed if here.get(name) != set_by_import.get(name)]

    @cached_property
    def _history(self) -> list[Entry]:
        table, record_id = self._present.table, self._present.id_of(self._present.values())
        return list(find_all(self._log.journal.history, table, record_id))


def is_same_entry(pending: PendingEntry, columns: Sequence[Any], present: tuple[Any, ...]) -> bool:
    """Return whether the columns to write for a row equal those of the existing entry.

    Empty columns are not compared, and a text that is stored elsewhere or was pruned is compared by its digest.
    """
    for place in _COMPARED_COLUMNS:
        value, stored = columns[place], present[place]
        if value is None or value == stored or value == "" or (place == _AT_COLUMN and pending.entry.get("at") is None):
            continue
        digest = _DIGEST_COLUMNS.get(place)
        if digest is None or stored is not None or chain.digest(value) != present[digest]:
            return False
    return True


def entry_identity(entry: dict[str, Any]) -> EntryIdentity | None:
    """Return the key columns of an entry, given as arguments of `append`; None unless all are texts."""
    stream, key = entry.get("stream"), entry.get("key")
    subtype, group_id = entry.get("subtype") or "", entry.get("group_id") or ""
    identity = (stream, subtype, group_id, key)
    return identity if all(type(part) is str for part in identity) else None  # type: ignore[return-value]


_MOST_ROWS = 1000
_LONGEST_NAME = 60
_NOT_PLAIN = re.compile(r"[^A-Za-z0-9._-]")
_MOST_CHARACTERS = 8 * 1024**2


class _DryRun(Exception):
    """Rolls back a dry run."""


class RowWriter:
    """Writes the results of mappings through the stores, and counts them."""

    def __init__(self, log: Decklog, report: Report, progress: Callable[[str, int, int], None] | None = None) -> None:
        self.log = log
        self.intake = Intake(log.parts)
        self.bulk = Bulk(log.parts)
        self.report = report
        self._progress = progress
        # Notes and losses of the current batch; reported once it is committed.
        self._notes: list[str] = []
        self._losses: list[str] = []
        # Functions that add many records of a class, and return for each whether it is new.
        self.adders: dict[type[Record], Callable[[list[dict[str, Any]]], list[bool]]] = {}
        self._time_offsets: dict[tuple[str, str, datetime], dict[str, int]] = {}
        # The subtypes and groups of a stream's keyed entries when this import first wrote to it.
        self._known_kinds: dict[tuple[str, str], list[tuple[str, str]]] = {}

    @contextmanager
    def open(self) -> Iterator[None]:
        """Roll back everything in a dry run; otherwise each batch is committed."""
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

    def import_rows(self, rows: Iterable[Row], mapping: Mapping, whole: int = 0, after: AfterBatch | None = None) -> None:
        """Import rows in batches of limited size, each in a transaction."""
        batch: list[Row] = []
        done = room = 0
        try:
            for row in rows:
                batch.append(row)
                room -= row.characters()
                if len(batch) == _MOST_ROWS or room < -_MOST_CHARACTERS:
                    done += self._import_batch(batch, mapping, done, whole, after)
                    batch, room = [], 0
        except Damaged as problem:
            # Rows before the damage are imported, and the other tables may be intact.
            table = problem.details.get("table", "a table")
            lost = f"at most {whole - done - len(batch)}" if whole > done + len(batch) else "an unknown number"
            self.report.lose(f"{table}: {problem.message}; {done + len(batch)} rows were read, and {lost} of them were not")
        self._import_batch(batch, mapping, done, whole, after)

    def _import_batch(self, batch: list[Row], mapping: Mapping, done: int, whole: int, after: AfterBatch | None) -> int:
        if not batch:
            return 0
        self._notes, self._losses = [], []
        with self.log.transaction():
            outcomes = self._import_or_split(batch, mapping)
            if after is not None:
                after(list(zip(batch, outcomes, strict=True)))
        # Count only committed rows.
        self.report.count(batch[0].table, outcomes)
        for note in self._notes:
            self.report.note(note)
        for loss in self._losses:
            self.report.lose(loss)
        if self._progress:
            self._progress(batch[0].table, done + len(batch), whole)
        return len(batch)

    def _import_or_split(self, rows: list[Row], mapping: Mapping) -> list[Outcome]:
        """Import rows together. If that fails, import each half alone, down to the failing row."""
        noted = len(self._notes)
        try:
            with self.log.transaction():
                return self._import_together(rows, mapping)
        except DecklogError as problem:
            if problem.retryable or isinstance(problem, (Closed, ReadOnly)):
                raise
            del self._notes[noted:]
            if len(rows) == 1:
                return [self.keep_raw(rows[0], problem.message)]
        for row in rows:
            row.reset()
        middle = len(rows) // 2
        return self._import_or_split(rows[:middle], mapping) + self._import_or_split(rows[middle:], mapping)

    def _import_together(self, rows: list[Row], mapping: Mapping) -> list[Outcome]:
        if getattr(mapping, "only_describes", False):
            outcomes = self._write_pending([self._map_row(row, mapping) for row in rows])
        else:
            outcomes = [mapping(row) for row in rows]
        # Keep leftover columns with the resulting record or entry.
        kept = [row for row, outcome in zip(rows, outcomes, strict=True) if outcome not in (Outcome.KEPT, Outcome.REFUSED)]
        self._write_entries([self._leftover_entry(row) for row in kept if row.leftovers])
        return outcomes

    def _map_row(self, row: Row, mapping: Mapping) -> Pending:
        try:
            pending: Pending = mapping(row)
        except DecklogError as problem:
            return self._raw_row_entry(row, problem.message)
        return pending

    def _write_pending(self, batch: list[Pending]) -> list[Outcome]:
        """Write entries, records and charges, each kind together; return the outcomes in the order of the rows."""
        self._write_entries([pending for pending in batch if isinstance(pending, PendingEntry)], name_rows=True)
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
                is_corrected = self.bulk.correct(present, pending.charge, note=IMPORT_NOTE)
                pending.outcome = Outcome.CHANGED if is_corrected else Outcome.ALREADY
        for pending, is_new in zip(new, self.bulk.charge_all([pending.charge for pending in new]), strict=True):
            pending.outcome = Outcome.NEW if is_new else Outcome.ALREADY

    def _write_records(self, batch: list[PendingRecord]) -> None:
        """Add new records, many at once, and update the others one by one."""
        if not batch:
            return
        # The rows of one table become records of one class.
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
        self.intake.add_all(kind, [pending.all_fields for pending in new.values()], note=IMPORT_NOTE)
        for pending in batch:
            if new.get(pending.identity) is not pending:
                found = present.get(pending.identity) or self.intake.seek(kind, pending.identity)
                pending.outcome = self._update_record(pending, found)

    def _update_record(self, pending: PendingRecord, present: Record | None) -> Outcome:
        assert present is not None
        why = pending.update_refusal and pending.update_refusal(present)
        if why and not RecordComparison(self.log, present, pending.fields).is_same():
            self._notes.append(f"{present.noun()} {present.id_of(present.values())} {why}")
        return Outcome.ALREADY if why else self._update_if_newer(present, pending.clock, pending.fields)

    def _write_entries(self, batch: list[PendingEntry], *, name_rows: bool = False) -> None:
        """Append entries, each once; with `name_rows`, set the result name of each row."""
        if not batch:
            return
        changed = self._find_reclassified(batch) if name_rows else {}
        for place, present in changed.items():
            batch[place].outcome = self._keep_changed(batch[place].row, present)
        self._append_entries([pending for place, pending in enumerate(batch) if place not in changed], name_rows=name_rows)

    def _find_reclassified(self, batch: list[PendingEntry]) -> dict[int, tuple[Any, ...]]:
        """Find rows whose entry exists under another subtype or group; return the entries by the rows' positions."""
        asked: dict[EntryIdentity, tuple[int, bool]] = {}
        for place, pending in enumerate(batch):
            own = entry_identity(pending.entry)
            kinds = self._entry_kinds(own[0], pending.row.table) if own is not None else []
            if own is not None and kinds:
                asked[own] = (place, True)
                others = ((own[0], *kind, own[3]) for kind in kinds if kind != own[1:3])
                asked |= dict.fromkeys(others, (place, False))
        known = self.intake.known_rows(asked) if asked else {}
        as_before = {asked[identity][0] for identity in known if asked[identity][1]}
        return {asked[identity][0]: row for identity, row in known.items() if asked[identity][0] not in as_before}

    def _entry_kinds(self, stream: str, table: str) -> list[tuple[str, str]]:
        """List the subtypes and groups of entries that earlier imports wrote for a table."""
        if (stream, table) not in self._known_kinds:
            start = key_prefix(self.report.system, table)
            sql = f"""
                select distinct coalesce(subtype, ''), coalesce(group_id, '') from entries
                 where stream = :stream and key is not null and substr(key, 1, {len(start)}) = :start
                """
            _, rows = self.log.db.rows(sql, {"stream": stream, "start": start})
            self._known_kinds[stream, table] = [(subtype, group) for subtype, group in rows if subtype not in IMPORT_SUBTYPES]
        return self._known_kinds[stream, table]

    def _append_entries(self, batch: list[PendingEntry], *, name_rows: bool) -> None:
        columns = self.intake.prepared_all([pending.entry for pending in batch])
        entries = self.intake.append_all(columns)
        # Bookkeeping entries of imports need no comparison.
        present = entries.known_rows([place for place in entries.known if columns[place][SUBTYPE_COLUMN] not in IMPORT_SUBTYPES])
        for place, pending in enumerate(batch):
            row, stored = pending.row, present.get(place)
            if name_rows and row.leftovers:
                row.result_name = (load_entry(self.log.db, stored) if stored is not None else entries[place]).id
            if place not in entries.known:
                self._notes += [pending.note] if pending.note is not None else []
            elif stored is None or is_same_entry(pending, columns[place], stored):
                pending.outcome = Outcome.ALREADY
            else:
                pending.outcome = self._keep_changed(row, stored)

    def _keep_changed(self, row: Row, present: tuple[Any, ...]) -> Outcome:
        """Keep the changed columns of a row in a new entry; the entry of the first import stays."""
        row.leftovers, row.replacements, row.result_name = dict(row.columns), {}, load_entry(self.log.db, present).id
        pending = self._leftover_entry(row)
        self._write_entries([pending])
        row.leftovers = {}
        return Outcome.ALREADY if pending.outcome is Outcome.ALREADY else Outcome.CHANGED

    # Rows and columns kept unchanged

    def _leftover_entry(self, row: Row) -> PendingEntry:
        columns = {name: to_storable(value) for name, value in row.leftovers.items()}
        named = sorted(columns.keys() - {"id", *row.expected})
        payload = {"columns": columns, "instead": row.replacements, "made": row.result_name}
        pending = self._raw_entry(row, IMPORTED_COLUMNS, payload, f"{row}: columns as they were")
        pending.note = f"{row}: {', '.join(named)} kept with the record" if named else None
        return pending

    def _raw_row_entry(self, row: Row, why: str, at: datetime | None = None) -> PendingEntry:
        row.leftovers = {}
        pending = self._raw_entry(row, IMPORTED_ROW, {"row": to_storable(row.columns), "why": why}, f"{row}: {why}", at)
        pending.outcome, pending.note = Outcome.KEPT, f"{row} is kept as it was: {why}"
        return pending

    def _raw_entry(self, row: Row, subtype: str, payload: dict[str, Any], body: str, at: datetime | None = None) -> PendingEntry:
        named = {"system": self.report.system, "table": row.table, "id": row.id}
        key = f"{self.key(row)}:{row.digest()}"
        entry = {"stream": row.stream, "body": body, "kind": EntryKind.EVENT, "subtype": subtype, "payload": {**named, **payload}}
        return PendingEntry(row, {**entry, "key": key, "at": at})

    def keep_raw(self, row: Row, why: str, at: datetime | None = None) -> Outcome:
        """Keep a whole row in the journal, if no record can hold it."""
        try:
            with self.log.transaction():
                return self._write_raw_row(row, why, at)
        except NotFound:
            row.stream = "@desk"
            return self._write_raw_row(row, why, at)
        except Invalid as problem:
            self._losses.append(f"{row} was refused: {problem.message}")
            return Outcome.REFUSED

    def _write_raw_row(self, row: Row, why: str, at: datetime | None) -> Outcome:
        pending = self._raw_row_entry(row, why, at)
        self._write_entries([pending])
        return pending.outcome

    def key(self, row: Row) -> str:
        """Return the key of a row. Without a run it includes a digest of the content: two files may use the same ids."""
        name = f"{key_prefix(self.report.system, row.table)}{row.id}"
        if row.stream.startswith("@"):
            name = f"{name}:{row.digest()}"
        return name

    def has_run(self, run_id: str) -> bool:
        """Return whether a run exists."""
        return self.log.db.read(lambda: find_stream_number(self.log.db, run_id)) is not None

    # Methods for mappings

    def ensure_run(self, run_id: str, goal: str, started_at: datetime, metadata: dict[str, object] | None = None) -> None:
        """Add an active run, unless it exists."""
        if not self.has_run(run_id):
            times: dict[str, Any] = {"started_at": started_at, "updated_at": started_at}
            facts: dict[str, Any] = {"goal": goal, "status": RunStatus.ACTIVE, "metadata": metadata or {}}
            with self.log.transaction():
                self.record(Run, new_stream=True, id=run_id, **facts, **times)

    def entry(self, row: Row, entry: dict[str, Any]) -> PendingEntry:
        """Build an entry of the row's stream from the arguments of `append`; it is written once."""
        entry["stream"] = row.stream
        if "key" not in entry:
            entry["key"] = self.key(row)
        return PendingEntry(row, entry)

    def charge(self, row: Row, charge: dict[str, Any]) -> PendingCharge:
        """Build a charge of the row's run from the arguments of the ledger's `charge`; it is written once."""
        return PendingCharge(row, {**charge, "run_id": row.stream, "key": self.key(row)})

    def mark_imported(self, row: Row, *, by_content: bool = False) -> bool:
        """Record that a row was imported; return whether it is new. For store verbs that accept neither key nor id.

        With `by_content`, a row that changed since counts as new.
        """
        key = self.key(row)
        if by_content and not key.endswith(row.digest()):
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

    def spread_time(self, row: Row, at: datetime) -> datetime:
        """Add microseconds to the times of rows with the same time, so that they keep their order."""
        known = self._time_offsets.setdefault((row.table, row.stream, at), {})
        return at + timedelta(microseconds=known.setdefault(row.id, len(known)))

    def record(self, record_class: type[Record], *, clock: str | None = None, new_stream: bool = False, **fields: Any) -> Outcome:
        """Add a record, or update an existing one if the source's is newer by the time in `clock`,
        or if only the source changed it.
        """
        identity = [fields[name] for name in record_class.identity]
        present = self.intake.seek(record_class, identity)
        if present is None:
            self.intake.add(record_class, new_stream=new_stream, note=IMPORT_NOTE, **fields)
            return Outcome.NEW
        return self._update_if_newer(present, clock, fields)

    def _update_if_newer(self, present: Record, clock: str | None, fields: dict[str, Any]) -> Outcome:
        """Update a record to the source's version. Changes by the log's users stay, unless the source is newer."""
        its_run = getattr(present, "run_id", None)
        if its_run is not None and fields.get("run_id", its_run) != its_run:
            # A record can't change its stream.
            raise Invalid(f"{present.noun()} {present.id_of(present.values())} belongs to run {its_run} here")
        versions = RecordComparison(self.log, present, fields)
        if versions.is_same():
            return Outcome.ALREADY
        ahead = 0 if clock is None else (fields[clock] > getattr(present, clock)) - (fields[clock] < getattr(present, clock))
        if ahead > 0:
            return self.change(type(present), clock=clock, **fields)
        moved, _ = versions.changed_fields()
        is_ours = versions.was_imported_last()
        if not moved or (ahead < 0 and is_ours):
            return Outcome.ALREADY
        identity = {name: getattr(present, name) for name in present.identity}
        if not is_ours:
            name = present.id_of(present.values())
            self._notes.append(f"{present.noun()} {name} was changed here and in the source; what is here stays")
            return Outcome.ALREADY
        return self.change(type(present), **identity, **{name: fields[name] for name in moved if name not in identity})

    def merge(self, present: Record, fields: dict[str, Any]) -> Outcome:
        """Update the fields that the source changed since the last import, except those also changed here."""
        versions = RecordComparison(self.log, present, fields)
        if versions.is_same():
            return Outcome.ALREADY
        moved, both = versions.changed_fields()
        if both:
            name = present.id_of(present.values())
            self._notes.append(f"{present.noun()} {name}: {', '.join(both)} changed here and in the source; what is here stays")
        wanted = {name: fields[name] for name in moved if name not in both}
        identity = {name: getattr(present, name) for name in present.identity}
        return self.change(type(present), **identity, **wanted) if wanted else Outcome.ALREADY

    def change(self, record_class: type[Record], *, clock: str | None = None, **fields: Any) -> Outcome:
        """Write fields of an existing record; with a `clock`, only if the record is older."""
        older = f" and {clock} < :{clock}" if clock else ""
        changes = ", ".join(f"{name} = :{name}" for name in fields if name not in record_class.identity)
        which = " and ".join(f"{name} = :{name}" for name in record_class.identity)
        changed = self.intake.change_all(
            record_class,
            f"update {record_class.table} set {changes} where {which}{older} returning *",
            note=IMPORT_NOTE,
            **fields,
        )
        return Outcome.CHANGED if changed else Outcome.ALREADY


def key_prefix(system: str, table: str) -> str:
    """Return the start of the keys of a table's rows; the row's id follows."""
    return f"{IMPORT_KEY_PREFIX}{system}:{table}:"


@lru_cache(maxsize=4096)
def run_id_of(name: str) -> str:
    """Return a run id for a name in the source: the name, or a digest if it is not a valid id."""
    if 0 < len(name) <= 200 and name[0] != "@" and ":" not in name and not any(c.isspace() for c in name):
        return name
    return f"run-{sha256(name.encode()).hexdigest()[:24]}"


def child_run_id(run_id: str, name: str) -> str:
    """Return the id of a child run for a name; a digest keeps cleaned names distinct."""
    safe_name = _NOT_PLAIN.sub("-", name)
    if safe_name == name and len(name) <= _LONGEST_NAME:
        return f"{run_id}-{name}"
    return f"{run_id}-{safe_name[:_LONGEST_NAME]}-{sha256(name.encode()).hexdigest()[:8]}"


def saved_outcome(record: Record) -> Outcome:
    """Return the outcome of a store verb, by whether its record already existed."""
    return Outcome.ALREADY if record.already else Outcome.NEW
