"""Write the streams of a new log from the findings of recovery."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from decklog.core.clock import to_text
from decklog.core.errors import DecklogError, NotFound
from decklog.db.base import Database
from decklog.journal import chain
from decklog.journal.entry import EntryKind
from decklog.journal.replication import Replication
from decklog.journal.rows import COLUMNS
from decklog.journal.texts import RECOVERED
from decklog.journal.verify import Verifier
from decklog.log import Decklog
from decklog.records.record import Record
from decklog.records.values import from_json, to_json
from decklog.transfer.reading import WorkResult
from decklog.transfer.recover.findings import RecoveredRows
from decklog.transfer.recover.proof import EntryCertainty, RecoveredEntry

Values = dict[str, Any]
# The referenced table, and pairs of a column and the referenced column.
Reference = tuple[str, list[tuple[str, str]]]


@dataclass(frozen=True)
class Lost:
    """A missing record that another one refers to."""

    table: str
    record_id: str
    values: tuple[object, ...]


class Parents:
    """Finds the records that images of changes refer to, by the foreign keys of a SQLite log."""

    def __init__(self, db: Database, record_classes: Mapping[str, type[Record]]) -> None:
        self._db = db
        self._classes = record_classes
        self._known: dict[str, list[Reference]] = {}

    def image_of(self, values: Values) -> Values | None:
        """Parse the image of a record from an entry; None if it has none, or if the record was removed."""
        record_class = self._classes.get(values["record_table"] or "")
        try:
            image = from_json(values["payload"] or "")
        except ValueError:
            return None
        if record_class is None or not isinstance(image, dict) or image.get("removed"):
            return None
        return record_class.upcast(image)

    def belongs(self, values: Values, stream: str) -> bool:
        """Return whether the record of an entry belongs to its stream."""
        image = self.image_of(values)
        return image is None or self._classes[values["record_table"]].stream_of(image) == stream

    def lost(self, values: Values) -> Iterator[Lost]:
        """Yield the missing records that an entry's record refers to."""
        image = self.image_of(values)
        for table, pairs in self._references(values["record_table"]) if image is not None else []:
            named = {there: image.get(here) for here, there in pairs}  # type: ignore[union-attr]
            if None in named.values() or table not in self._classes or self._is_there(table, named):
                continue
            record_class = self._classes[table]
            if set(named) == set(record_class.identity):
                yield Lost(table, record_class.id_of(named), tuple(named[name] for name in record_class.identity))

    def _references(self, table: str) -> list[Reference]:
        if table not in self._known:
            names, rows = self._db.read(lambda: self._db.rows(f"pragma foreign_key_list({table})", {}))
            found: dict[int, Reference] = {}
            for row in rows:
                key = dict(zip(names, row, strict=True))
                found.setdefault(key["id"], (key["table"], []))[1].append((key["from"], key["to"]))
            self._known[table] = list(found.values())
        return self._known[table]

    def _is_there(self, table: str, named: Values) -> bool:
        condition = " and ".join(f"{name} = :{name}" for name in named)
        return self._db.read(lambda: self._db.one(f"select 1 from {table} where {condition}", named)) is not None


_BATCH_SIZE = 500


def record_lost_texts(log: Decklog) -> None:
    """Append an event to each stream that names its missing texts."""
    verifier = Verifier(log.db, log.record_classes())
    verifier.run_checks(Verifier.check_chains, Verifier.check_tables)
    for stream, digests in verifier.texts.gone.items():
        lost = sorted(digests)
        for start in range(0, len(lost), _BATCH_SIZE):
            some = lost[start : start + _BATCH_SIZE]
            said = f"Recovered from a damaged file: {len(some)} texts are missing; their digests stay."
            log.journal.append(stream, said, kind=EntryKind.EVENT, subtype=RECOVERED, payload={"lost": some})


_EMPTY_ENTRY: dict[str, Any] = dict.fromkeys(COLUMNS[1:])
FROM_TABLE = "Recovered from the table; the entry that said so is lost."
FROM_LATER = "Recovered from a later entry; the ones before it are lost."
STAND_IN = "A stand-in: the run itself is lost."


@dataclass(kw_only=True)
class StreamReport(WorkResult):
    """The outcome of a stream. `kept` entries are unchanged; `renumbered` ones follow a gap or a damaged one.

    `missing` numbers are lost; `altered` entries are readable but changed. An open end is None.
    """

    stream: str
    kept: int = 0
    renumbered: int = 0
    unproven: int = 0
    missing: list[list[int | None]] = field(default_factory=list)
    altered: list[int] = field(default_factory=list)
    from_tables: int = 0
    unplaced: int = 0


class Rebuild:
    """Rewrites a stream: unchanged up to the first gap, and as a new chain after it.

    Old hashes can't continue after a gap. Each range after a gap begins with an event `recovered`: it has
    the missing numbers, the old number of the first entry, and all old hashes.
    """

    def __init__(self, log: Decklog, stream: str, findings: RecoveredRows, stand_in: Callable[[str], None]) -> None:
        self._log = log
        self._stream = stream
        self._findings = findings
        # Creates a stand-in for another lost run.
        self._stand_in_elsewhere = stand_in
        self._classes = log.record_classes()
        tables = list(self._classes.values())
        self._rows = {(tables[place].table, record_id): image for place, record_id, image in findings.records(stream)}
        self._parents = Parents(log.db, self._classes)
        self._supplying: set[Lost] = set()
        self._unplaced: set[tuple[str | None, str | None]] = set()
        self._seq, self._hash = 0, chain.START
        self._old_seq = 0
        self._broken = False
        self._missing: list[int | None] | None = None
        self.report = StreamReport(stream=stream)

    def run(self, found: Iterable[RecoveredEntry]) -> StreamReport:
        batch: list[RecoveredEntry] = []
        for item in found:
            gap = item.seq != self._old_seq + 1
            if gap or item.is_altered or len(batch) >= _BATCH_SIZE:
                self._write(batch)
                batch = []
            if gap:
                self._missing = [self._old_seq + 1, item.seq - 1]
                self.report.missing.append(self._missing)
            self._old_seq = item.seq
            if item.is_altered:
                self._add_altered(item)
            else:
                batch.append(item)
        self._write(batch)
        self._add_newer_records()
        self._ensure_run()
        return self.report

    def stand_in(self) -> StreamReport:
        """Create a stand-in for a lost run."""
        self._ensure_run()
        self.report.missing.append([1, None])
        return self.report

    # Entries

    def _write(self, batch: list[RecoveredEntry]) -> None:
        if not batch:
            return
        is_next = not self._broken and batch[0].standing is EntryCertainty.PROVEN and batch[0].seq == self._seq + 1
        if is_next and (self._keep(batch) or (self._make_runs(batch) and self._keep(batch))):
            return
        self._begin_range(batch)
        self._append([found.values for found in batch], batch[0].standing)
        self.report.renumbered += len(batch)
        self.report.unproven += sum(found.standing is EntryCertainty.UNPROVEN for found in batch)

    def _keep(self, batch: list[RecoveredEntry]) -> bool:
        """Copy entries unchanged; return False if their records are invalid, as after a gap elsewhere."""
        try:
            Replication.of(self._log).receive([found.values for found in batch])
        except DecklogError:
            return False
        self._seq, self._hash = batch[-1].seq, batch[-1].values["hash"]
        self.report.kept += len(batch)
        return True

    def _make_runs(self, batch: list[RecoveredEntry]) -> bool:
        """Create stand-ins for lost runs that entries refer to; return whether there were any."""
        lost = {parent for found in batch for parent in self._parents.lost(found.values)}
        runs = {str(parent.values[0]) for parent in lost if parent.table == "runs"} - {self._stream}
        for run in sorted(runs):
            self._stand_in_elsewhere(run)
        return bool(runs)

    def _begin_range(self, batch: list[RecoveredEntry]) -> None:
        first, missing = batch[0].seq, self._missing
        said = f"entries {missing[0]} to {missing[1]} are missing" if missing else "the stretch goes on"
        self._broken, self._missing = True, None
        self._add_event(
            f"Recovered from a damaged file: {said}; what follows had the numbers from {first} on.",
            {
                "missing": missing,
                "first": first,
                "hashes": [found.values["hash"] for found in batch],
                "unproven": [found.seq for found in batch if found.standing is EntryCertainty.UNPROVEN],
            },
        )
        self._ensure_run()

    def _add_altered(self, found: RecoveredEntry) -> None:
        """Store the readable values of a damaged entry as an event."""
        self._broken = True
        self.report.altered.append(found.seq)
        read = {name: value for name, value in found.values.items() if value is not None}
        body = (
            f"Entry {found.seq} is damaged: its hash does not fit. What can be read of it is kept here; nothing was made of it."
        )
        missing, self._missing = self._missing, None
        self._add_event(body, {"missing": missing, "altered": {name: _to_json_value(value) for name, value in read.items()}})

    def _add_event(self, body: str, payload: Values, at: str | None = None) -> None:
        event = {"kind": "event", "subtype": "recovered", "body": body, "payload": to_json(payload), "at": at}
        self._receive([{**_EMPTY_ENTRY, **event}])

    def _append(self, entries: list[Values], standing: EntryCertainty = EntryCertainty.PROVEN) -> None:
        """Chain entries to the stream's end; store those with an invalid record as events."""
        if standing is EntryCertainty.UNPROVEN and not self._parents.belongs(entries[0], self._stream):
            self._report_unplaced(entries[0], "its record is of another stream")
            entries = entries[1:]
        try:
            self._receive(entries)
        except DecklogError:
            for values in entries:
                self._append_one(values)

    def _append_one(self, values: Values) -> bool:
        try:
            try:
                self._receive([values])
            except NotFound:
                self._restore_parents(values)
                self._receive([values])
        except DecklogError as problem:
            self._report_unplaced(values, problem.message)
            return False
        return True

    def _report_unplaced(self, values: Values, because: str) -> None:
        self.report.unplaced += 1
        self._unplaced.add((values["record_table"], values["record_id"]))
        read = {name: value for name, value in values.items() if value is not None}
        self._add_event("An entry that can't be used alone.", {"unplaced": read, "because": because}, values["at"])

    def _receive(self, entries: list[Values]) -> None:
        seq, hash, linked_ones = self._seq, self._hash, []
        for values in entries:
            seq += 1
            at = values["at"] or to_text(self._log.clock.now())
            entry = {**values, "stream": self._stream, "seq": seq, "at": at, "redacted": values["redacted"] or 0}
            hash = entry["hash"] = chain.hash_entry(hash, entry)
            linked_ones.append(entry)
        Replication.of(self._log).receive(linked_ones)
        self._seq, self._hash = seq, hash

    # Records

    def _restore_parents(self, values: Values) -> None:
        """Create the records that an entry refers to and whose entries are lost."""
        for parent in self._parents.lost(values):
            if parent in self._supplying:
                continue
            self._supplying.add(parent)
            if parent.table == "runs" and parent.values[0] != self._stream:
                self._stand_in_elsewhere(str(parent.values[0]))
            else:
                self._put_lost(self._classes[parent.table], parent.record_id)
            self._supplying.discard(parent)

    def _put_lost(self, record_class: type[Record], record_id: str) -> bool:
        """Restore a record from its first remaining entry, or else from its row; return whether that worked."""
        for version in self._findings.of_record(self._stream, record_class.table, record_id):
            values = version.values()
            if values is not None and version.seq > self._old_seq and self._parents.image_of(values) is not None:
                return self._add_record(record_class, record_id, values["payload"], FROM_LATER)
        row = self._rows.get((record_class.table, record_id))
        return row is not None and self._add_record(record_class, record_id, row, FROM_TABLE)

    def _add_newer_records(self) -> None:
        """Restore rows of the old tables that are newer than any entry that was found: their last entries are lost."""
        for (table, record_id), image in self._rows.items():
            record_class = self._classes[table]
            if (table, record_id) in self._unplaced:
                continue  # its entry could not be used, so its row can't be either
            if self._is_newer(record_class, from_json(image), self._newest_image(table, record_id)):
                if not self._broken:
                    self._broken = True
                    self.report.missing.append([self._old_seq + 1, None])
                    body = "Recovered from a damaged file: the end of this stream is missing."
                    self._add_event(body, {"missing": self.report.missing[-1]})
                self._add_record(record_class, record_id, image, FROM_TABLE)

    def _is_newer(self, record_class: type[Record], row: Values, known: Values | None) -> bool:
        """Return whether a row has a change that no entry has. A row that differs only in its time was damaged."""
        if known is None or known.get("removed"):
            return True
        said = record_class.upcast(known)
        differing = {name for name in row if row[name] != said.get(name)}
        is_later = str(row.get("updated_at") or "") > str(said.get("updated_at") or "")
        return is_later and differing != {"updated_at"}

    def _newest_image(self, table: str, record_id: str) -> Values | None:
        sql = "select payload from entries where record_table = :table and record_id = :id order by seq desc limit 1"
        row = self._log.db.read(lambda: self._log.db.one(sql, {"table": table, "id": record_id}))
        return from_json(row[0]) if row else None

    def _add_record(self, record_class: type[Record], record_id: str, image: str, body: str) -> bool:
        change = {
            "kind": "change",
            "subtype": "changed",
            "body": body,
            "payload": image,
            "record_table": record_class.table,
            "record_id": record_id,
            "task_id": record_class.task_of(from_json(image)),
        }
        is_placed = self._append_one({**_EMPTY_ENTRY, **change})
        self.report.from_tables += is_placed and body == FROM_TABLE
        return is_placed

    def _ensure_run(self) -> None:
        """Create a run for the stream if only its entries are left."""
        run_class = self._classes["runs"]
        if self._stream.startswith("@") or self._newest_image("runs", self._stream) is not None:
            return
        self._broken = True
        if self._put_lost(run_class, self._stream):
            return
        now = to_text(self._log.clock.now())
        known = {"id": self._stream, "goal": "(lost with a damaged file)", "status": "active", "metadata": "{}"}
        image = {**run_class.upcast(known), "cycles": 0, "replans": 0, "started_at": now, "updated_at": now}
        change = {"kind": "change", "subtype": "added", "body": STAND_IN, "payload": to_json(image)}
        self._receive([{**_EMPTY_ENTRY, **change, "record_table": "runs", "record_id": self._stream}])


def _to_json_value(value: object) -> object:
    """Convert a damaged value to one that JSON and databases accept."""
    text = value.decode(errors="replace") if isinstance(value, bytes) else value
    return text.replace("\0", "\ufffd") if isinstance(text, str) else text
