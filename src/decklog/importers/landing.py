"""Where rows of a source arrive: each once, all of it, or kept as it was when no record can hold it."""

from contextlib import contextmanager
from datetime import datetime
from hashlib import sha256

from decklog.errors import Closed, Damaged, DecklogError, Invalid, NotFound, ReadOnly
from decklog.importers.report import Fate, Report
from decklog.importers.row import Row, plain
from decklog.records import Record
from decklog.stores.base import Store
from decklog.stores.entry import Entry, Kind

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import Any

    from decklog.app import Decklog

    Mapping = Callable[[Row], Fate]

ROW = "imported.row"
COLUMNS = "imported.columns"
_BATCH = 500


class _DryRun(Exception):
    """Ends a dry run, so that nothing of it stays."""


class Landing:
    """Writes what mappings make of rows, through the stores, and counts it."""

    def __init__(self, log: "Decklog", report: Report, progress: "Callable[[str, int, int], None] | None" = None) -> None:
        self.log = log
        self.report = report
        self._progress = progress

    @contextmanager
    def open(self) -> "Iterator[None]":
        """Hold a dry run in one transaction, and undo it; otherwise every batch is committed for itself."""
        if not self.report.dry_run:
            yield
            return
        try:
            with self.log.transaction():
                yield
                raise _DryRun
        except _DryRun:
            return

    def take_all(self, rows: "Iterable[Row]", mapping: "Mapping", whole: int = 0) -> None:
        """Take rows over, some hundreds in a transaction."""
        batch: list[Row] = []
        done = 0
        try:
            for row in rows:
                batch.append(row)
                if len(batch) == _BATCH:
                    done += self._take_batch(batch, mapping, done, whole)
                    batch = []
        except Damaged as problem:
            # What stands before the damage is taken, and the other tables may be whole.
            self.report.note(f"{problem.message}; {done + len(batch)} of {whole} rows were read")
        self._take_batch(batch, mapping, done, whole)

    def _take_batch(self, batch: "list[Row]", mapping: "Mapping", done: int, whole: int) -> int:
        if not batch:
            return 0
        with self.log.transaction():
            fates = [self.take(row, mapping) for row in batch]
        # Counted only now: what is not committed did not arrive.
        for row, fate in zip(batch, fates, strict=True):
            self.report.count(row.table, fate)
        if self._progress:
            self._progress(batch[0].table, done + len(batch), whole)
        return len(batch)

    def take(self, row: Row, mapping: "Mapping") -> Fate:
        """Take one row over: as its mapping says, or else as it is."""
        try:
            with self.log.transaction():
                fate = mapping(row)
                self._keep_columns(row, fate)
                return fate
        except DecklogError as problem:
            if problem.retryable or isinstance(problem, (Closed, ReadOnly)):
                raise
            return self.keep(row, problem.message)

    def _keep_columns(self, row: Row, fate: Fate) -> None:
        """Keep what the mapping left over, beside the record or entry that it made."""
        if not row.left or fate in (Fate.KEPT, Fate.REFUSED):
            return
        columns = {name: plain(value) for name, value in row.left.items()}
        entry = self._append(
            row, COLUMNS, {"columns": columns, "instead": row.instead, "made": row.made}, f"{row}: columns as they were"
        )
        if not entry.already and set(columns) - {"id"}:
            self.report.note(f"{row}: {', '.join(sorted(set(columns) - {'id'}))} kept beside the record")

    def keep(self, row: Row, why: str, at: "datetime | None" = None) -> Fate:
        """Keep a whole row in the journal; nothing that was on record gets lost because we have no place for it."""
        payload = {"row": plain(row.columns), "why": why}
        row.left = {}
        try:
            with self.log.transaction():
                entry = self._append(row, ROW, payload, f"{row}: {why}", at)
        except NotFound:
            row.stream = "@desk"
            entry = self._append(row, ROW, payload, f"{row}: {why}", at)
        except Invalid as problem:
            self.report.note(f"{row} was refused: {problem.message}")
            return Fate.REFUSED
        if entry.already:
            return Fate.ALREADY
        self.report.note(f"{row} is kept as it was: {why}")
        return Fate.KEPT

    def _append(self, row: Row, subtype: str, payload: "dict[str, Any]", body: str, at: "datetime | None" = None) -> Entry:
        return self.log.journal.append(
            row.stream,
            body,
            kind=Kind.EVENT,
            subtype=subtype,
            payload={"system": self.report.system, "table": row.table, "id": row.id, **payload},
            key=f"{self.key(row)}:{row.digest()}",
            at=at,
        )

    def key(self, row: Row) -> str:
        """Name a row of the source; where it has no run, ids of two files may be the same, and its content tells them apart."""
        name = f"import:{self.report.system}:{row.table}:{row.id}"
        return f"{name}:{row.digest()}" if row.stream.startswith("@") else name

    # What mappings write with

    def entry(self, row: Row, **fields: "Any") -> Fate:
        """Append an entry to the row's stream, once."""
        entry = self.log.journal.append(row.stream, **{"key": self.key(row), **fields})
        row.made = entry.id
        return told(entry)

    def first_time(self, row: Row) -> bool:
        """Say whether a row was never taken before, and remember that it was: for verbs that know neither key nor id."""
        marked = self.log.journal.append(
            row.stream,
            f"{row} was taken over",
            kind=Kind.EVENT,
            subtype="imported",
            payload={"system": self.report.system, "table": row.table, "id": row.id},
            key=self.key(row),
        )
        return not marked.already

    def record(
        self, store: Store, record_class: type[Record], *, clock: str | None = None, new_stream: bool = False, **fields: "Any"
    ) -> Fate:
        """Add a record as it is. One that is here already becomes the source's when that is newer, by the time in `clock`."""
        identity = [fields[name] for name in record_class.identity]
        present = Store.seek(store, record_class, identity)
        if present is None:
            Store.add(store, record_class, new_stream=new_stream, note="imported", **fields)
            return Fate.NEW
        if clock is None or getattr(present, clock) >= fields[clock]:
            return Fate.ALREADY
        return self.change(store, record_class, clock=clock, **fields)

    def change(self, store: Store, record_class: type[Record], *, clock: str | None = None, **fields: "Any") -> Fate:
        """Write fields of a record that is here as they are; with a `clock`, only over what is older."""
        older = f" and {clock} < :{clock}" if clock else ""
        changes = ", ".join(f"{name} = :{name}" for name in fields if name not in record_class.identity)
        which = " and ".join(f"{name} = :{name}" for name in record_class.identity)
        changed = Store.change_all(
            store,
            record_class,
            f"update {record_class.table} set {changes} where {which}{older} returning *",
            note="imported",
            **fields,
        )
        return Fate.CHANGED if changed else Fate.ALREADY


def run_id_of(name: str) -> str:
    """Name the run of something that the source calls so: the same, unless a run can't be called that."""
    if 0 < len(name) <= 200 and name[0] != "@" and ":" not in name and not any(c.isspace() for c in name):
        return name
    return f"run-{sha256(name.encode()).hexdigest()[:24]}"


def told(record: Record) -> Fate:
    """Read from what a verb gave back whether there was anything left to do."""
    return Fate.ALREADY if record.already else Fate.NEW
