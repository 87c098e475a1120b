"""Export records in another system's format: a new file or folder that appears when it is complete."""

import errno
import json
import os
import re
import shutil
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import MISSING, fields
from datetime import datetime
from enum import Enum
from functools import cached_property, partial
from typing import Any, ClassVar, Self, TypeVar

import apsw

from decklog.core.clock import to_text
from decklog.core.disk import sync, sync_descriptor
from decklog.core.errors import Conflict, Denied, DiskFull, Invalid, NotFound
from decklog.importing.row import from_storable
from decklog.importing.source import quoted
from decklog.journal.entry import IMPORT_KEY_PREFIX, IMPORTED_COLUMNS, IMPORTED_ROW
from decklog.log import Decklog
from decklog.records.record import Record, find_all
from decklog.records.values import to_json

R = TypeVar("R", bound=Record)


class Schema:
    """The tables of an older system, from the file `schema.sql` in the folder of a module."""

    def __init__(self, module_file: str) -> None:
        with open(os.path.join(os.path.dirname(module_file), "schema.sql"), encoding="utf-8") as file:
            self._text = file.read()
        db = apsw.Connection(":memory:")
        db.execute(self._text)
        found: list[Any] = db.execute("select tbl_name, sql from sqlite_schema where sql is not null order by rowid").fetchall()
        self._statements: list[tuple[str, str]] = [(table, sql) for table, sql in found if not table.startswith("sqlite_")]
        names = "select name from pragma_table_xinfo(?)"
        tables = dict.fromkeys(table for table, _ in self._statements)
        # Columns by table, in their order.
        self.tables: dict[str, tuple[str, ...]] = {
            table: tuple(str(name) for (name,) in db.execute(names, (table,))) for table in tables
        }
        db.close()

    def create(self, db: apsw.Connection, table: str | None = None) -> None:
        """Create one table with its indexes, or all of them."""
        if table is None:
            db.execute(self._text)
        for _, sql in [found for found in self._statements if found[0] == table]:
            db.execute(sql)


class LeftoverRows:
    """What imports of one system kept in the journal: columns by the record they belong to, and rows by their table.

    What imports of other systems kept is only counted.
    """

    def __init__(self, log: Decklog, system: str, *, of_json: bool = False, runs: Collection[str] | None = None) -> None:
        self._log = log
        self._of_json = of_json
        # Only what was kept with these, since the items of two sources may have the same names; with None, all.
        self._runs = runs
        self._system = system
        self.of_others: dict[str, int] = {}
        self._columns = {_name(payload): payload for payload in self._payloads(IMPORTED_COLUMNS, "columns", "instead")}
        self._whole: dict[str, list[tuple[str, dict[str, Any]]]] = {}
        for payload in self._payloads(IMPORTED_ROW, "row"):
            self._whole.setdefault(payload["table"], []).append((payload["id"], payload["row"]))

    def _payloads(self, subtype: str, *parts: str) -> Iterator[dict[str, Any]]:
        """Yield what this system's imports wrote; anyone can write an entry that only looks like it."""
        for entry in find_all(self._log.journal.find, subtype=subtype, oldest_first=True):
            payload = entry.payload
            if not isinstance(payload, dict) or not all(isinstance(payload.get(part), dict) for part in parts):
                continue
            if self._runs is not None and entry.stream not in self._runs:
                continue
            if payload.get("system") != self._system:
                system = str(payload.get("system"))
                self.of_others[system] = self.of_others.get(system, 0) + 1
            elif {"table", "id"} <= payload.keys():
                yield payload

    def columns(self, name: str) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return the kept columns of a record, and the values that the record has instead of some of them."""
        payload = self._columns.get(name)
        if payload is None:
            return {}, {}
        columns = {column: from_storable(value, of_json=self._of_json) for column, value in payload["columns"].items()}
        return columns, payload["instead"]

    def restored(self, name: str, row: dict[str, Any], defaults: dict[str, Any] | None = None) -> dict[str, Any]:
        """Restore kept columns, unless the value used instead was changed since; then fill empty columns by their defaults."""
        columns, instead = self.columns(name)
        for column, value in columns.items():
            here = row.get(column)
            if column not in instead or (to_text(here) if isinstance(here, datetime) else here) == instead[column]:
                row[column] = value
        for column, value in (defaults or {}).items():
            if row.get(column) is None:
                row[column] = value
        return row

    def tables(self) -> list[str]:
        """Return the tables of which whole rows were kept."""
        return list(self._whole)

    def rows(self, table: str) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield the rows of a table that were kept whole, each with its id, in the order in which they came."""
        for row_id, columns in self._whole.get(table, ()):
            yield row_id, {name: from_storable(value, of_json=self._of_json) for name, value in columns.items()}


def _name(payload: dict[str, Any]) -> str:
    """Return the name that kept columns are found by: the record that the row became, or the row's id."""
    row_id = payload["instead"].get("id") or payload["id"]
    return payload.get("made") or f"{payload['table']} {row_id}"


# Fields of a task that each format has a place for, or that say nothing where there are no leases.
TASK_FIELDS = (
    *("id", "run_id", "title", "objective", "state", "acceptance", "created_at", "updated_at", "open_dependencies", "worker"),
    *("leased_at", "leased_until", "fence"),
)
MOST_REFUSALS = 200
_LONGEST = 300


class ExportReport:
    """Counts rows per table of the old system, and what is left out per kind of record or field of one."""

    def __init__(self, path: str, progress: Callable[[str, int, int], None] | None = None) -> None:
        self.path = path
        self.tables: dict[str, int] = {}
        self.refused: list[str] = []
        self.refused_more = 0
        self.left_out: dict[str, int] = {}
        self._progress = progress

    def count(self, table: str) -> None:
        self.tables[table] = self.tables.get(table, 0) + 1
        if self._progress:
            self._progress(table, self.tables[table], 0)

    def refuse(self, what: str, why: object) -> None:
        """Report something that could not be written, up to a few hundred times."""
        if len(self.refused) < MOST_REFUSALS:
            self.refused.append(f"{what[:_LONGEST]}: {why}")
        else:
            self.refused_more += 1

    def leave_out(self, what: str, count: int = 1) -> None:
        """Count something that has no place there."""
        if count:
            self.left_out[what] = self.left_out.get(what, 0) + count

    def leave_out_fields(self, table: str, record: Record, placed: Collection[str]) -> None:
        """Count the fields that say something and are not among those with a place."""
        for field in fields(record):
            if field.name not in placed and getattr(record, field.name) not in (_default(field), None):
                self.leave_out(f"{table}.{field.name}")

    def leave_out_tables(self, log: Decklog, placed: Collection[str]) -> None:
        """Count the records of every kind that is not among those with a place."""
        for table in log.record_classes():
            if table not in placed:
                [(count,)] = log.db.read(partial(log.db.rows, f"select count(*) from {table}", {}))[1]
                self.leave_out(table, count)

    def leave_out_kept(self, of_others: dict[str, int]) -> None:
        """Count what the imports of other systems kept, which only their own formats have a place for."""
        for system, count in of_others.items():
            self.leave_out(f"what the import from {system} kept", count)

    def as_dict(self) -> dict[str, Any]:
        more = [f"and {self.refused_more} more"] if self.refused_more else []
        return {"path": self.path, "tables": self.tables, "refused": self.refused + more, "left_out": self.left_out}


def _default(field: Any) -> object:
    if field.default_factory is not MISSING:
        return field.default_factory()
    return None if field.default is MISSING else field.default


_PREFIX = ".decklog-export-"
_WAITING = "waiting_"
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_REFUSALS = (apsw.ConstraintError, apsw.MismatchError)


class Export:
    """Writes an older system's database. It is built as a temporary file and moved into place when it is complete.

    Times in a row are written by `spell`, and lists and objects of a record by `dump`. With `wal`, the file is left in
    that mode, which SQLite remembers in it.
    """

    def __init__(
        self,
        log: Decklog,
        path: str,
        system: str,
        *,
        report: ExportReport | None = None,
        kept: LeftoverRows | None = None,
        spell: Callable[[datetime], str] = to_text,
        dump: Callable[[Any], str] = to_json,
        wal: bool = False,
    ) -> None:
        self.log = log
        self.path = path
        self.system = system
        self.report = report or ExportReport(path)
        self._given = kept
        self._spell = spell
        self._dump = dump
        self._wal = wal
        self._names: dict[str, set[str]] = {}
        if os.path.lexists(path):
            raise Conflict(f"{path} is there already; name a file that is not", path=path)

    def __enter__(self) -> Self:
        opened, self._file = tempfile.mkstemp(dir=folder_of(self.path), prefix=_PREFIX)
        os.close(opened)
        self.db = apsw.Connection(self._file)
        try:
            self.kept = self._given or LeftoverRows(self.log, self.system)
            self.db.execute("begin")
        except BaseException:
            self._clear()
            raise
        return self

    def __exit__(self, _kind: object, problem: BaseException | None, _trace: object) -> None:
        self._clear()
        refuse_full(self.path, problem)

    def _clear(self) -> None:
        """Leave nothing behind but what `finish` put in its place."""
        self.db.close(True)
        for ending in ("", "-journal", "-wal", "-shm"):
            if os.path.exists(self._file + ending):
                os.unlink(self._file + ending)

    def write(self, table: str, name: str, row: dict[str, Any], defaults: dict[str, Any] | None = None) -> dict[str, Any]:
        """Write a row with the columns that an import kept; give it as it was written.

        `name` is what kept columns are found by. Columns that are empty even then take their defaults.
        """
        row = self.restored(name, row, defaults)
        self.insert(table, row)
        return row

    def restored(self, name: str, row: dict[str, Any], defaults: dict[str, Any] | None = None) -> dict[str, Any]:
        """Return a row with its kept columns. A value that equals its default counts as unknown."""
        unknown = [column for column, value in (defaults or {}).items() if row.get(column) == value]
        return self.kept.restored(name, {**row, **dict.fromkeys(unknown)}, defaults)

    def write_record(
        self,
        table: str,
        record: Any,
        columns: str,
        *,
        name: str = "",
        defaults: dict[str, Any] | None = None,
        placed: Collection[str] = (),
        **more: Any,
    ) -> dict[str, Any]:
        """Write a record as a row with some `columns` of it and `more`, and count its fields that have no place there.

        `placed` are fields without a column that other columns imply, or that say nothing there.
        """
        row = {**columns_of(record, columns), **more}
        row = {column: self._dump(value) if isinstance(value, (dict, list)) else value for column, value in row.items()}
        row = self.write(table, f"{table} {name or record.id}", row, defaults)
        written = [column.rpartition("=")[2] for column in columns.split()]
        self.report.leave_out_fields(record.table, record, [*written, *placed])
        return row

    def insert(self, table: str, row: dict[str, Any]) -> bool:
        """Insert a row; one that the old system's own rules refuse is reported."""
        try:
            self._insert(table, row)
        except _REFUSALS as problem:
            self.report.refuse(f"{table} {row}", problem)
            return False
        self.report.count(table)
        return True

    def _insert(self, table: str, row: dict[str, Any]) -> None:
        known = self._columns(table)
        fitting = {name: value for name, value in row.items() if name in known}
        for name in row.keys() - known:
            self.report.leave_out(f"{table.removeprefix(_WAITING)}.{name}")
        marks = ", ".join("?" for _ in fitting)
        values = tuple(self._spell(value) if isinstance(value, datetime) else value for value in fitting.values())
        self.db.execute(f"insert into {quoted(table)} ({', '.join(map(quoted, fitting))}) values ({marks})", values)

    def _columns(self, table: str) -> set[str]:
        if not self._names.get(table):
            self._names[table] = {name for (name,) in self.db.execute("select name from pragma_table_xinfo(?)", (table,))}
        return self._names[table]

    def insert_numbered(self, table: str, row: dict[str, Any], number: int | None) -> None:
        """Insert a row under the number it had there; one that had none waits for `insert_waiting`."""
        if number is not None and not self.has(table, number):
            self.insert(table, {**row, "id": number})
            return
        waiting = _WAITING + table
        if not self._columns(waiting):
            self.db.execute(f"create temp table {quoted(waiting)} as select * from {quoted(table)} limit 0")
        self._insert(waiting, {name: value for name, value in row.items() if name != "id"})

    def has(self, table: str, number: int) -> bool:
        """Return whether a number is taken: two files that were imported may have used the same ones."""
        return self.db.execute(f"select 1 from {quoted(table)} where id = ?", (number,)).get is not None

    def insert_waiting(self, table: str, by: str = "rowid") -> None:
        """Insert the rows that wait for a number, after all that had one, in the order of a column or of their coming."""
        waiting = _WAITING + table
        names = [name for name in self._columns(waiting) if name != "id"]
        if names:
            for values in self.db.execute(f"select {', '.join(map(quoted, names))} from {quoted(waiting)} order by {by}, rowid"):
                self.insert(table, dict(zip(names, values, strict=True)))

    def write_kept(self, tables: Iterable[str] | None = None) -> None:
        """Write the rows that no record could hold back as they were: all, or those of some tables."""
        for table in self.kept.tables() if tables is None else tables:
            for _, row in self.kept.rows(table):
                if not self._columns(table):
                    self.db.execute(f"create table {quoted(table)} ({', '.join(map(quoted, row))})")
                self.insert(table, row)

    def finish(self) -> dict[str, Any]:
        """Put the file in its place; say how many rows each table has, what was refused and what was left out."""
        self.db.execute("commit")
        if self._wal:
            self.db.execute("pragma journal_mode = wal")
        self.db.close()
        put_new(self._file, self.path)
        return self.report.as_dict()


class Folder:
    """A folder that only its owner can enter, built under a temporary name and renamed when it is complete."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._place = os.path.realpath(path)
        if os.path.lexists(self._place) and not (os.path.isdir(self._place) and not os.listdir(self._place)):
            raise Conflict(f"{path} is there already and is no empty folder; name one that is not there", path=path)

    def __enter__(self) -> str:
        self._made = tempfile.mkdtemp(dir=folder_of(self._place), prefix=_PREFIX)
        return self._made

    def __exit__(self, _kind: object, problem: BaseException | None, _trace: object) -> None:
        shutil.rmtree(self._made, ignore_errors=True)
        refuse_full(self.path, problem)

    def finish(self) -> None:
        """Put the folder in its place, where at most an empty one is."""
        try:
            os.rename(self._made, self._place)
        except OSError as problem:
            raise Conflict(f"{self.path} can't be put in its place: {problem.strerror}", path=self.path) from None


def put_new(made: str, path: str) -> None:
    """Give a complete file its name, unless there is another of this name."""
    try:
        os.link(made, os.path.abspath(path))
    except FileExistsError:
        raise Conflict(f"{path} is there already; name a file that is not", path=path) from None


def folder_of(path: str) -> str:
    """Return the folder of a new file, which must exist."""
    folder = os.path.dirname(os.path.abspath(path))
    if not os.path.isdir(folder):
        raise NotFound(f"there is no folder {folder} to write to", hint="Make it first, or name another place.", path=folder)
    if not os.access(folder, os.W_OK | os.X_OK):
        raise Denied(f"nothing can be written to {folder}", hint="Name another place.", path=folder)
    return folder


def refuse_full(path: str, problem: BaseException | None) -> None:
    """Raise DiskFull if the problem is a full disk."""
    if isinstance(problem, apsw.FullError) or (isinstance(problem, OSError) and problem.errno in _FULL):
        hint = "Free some space, or name another place."
        raise DiskFull(f"there is no room to write {path}; nothing of it was kept", hint=hint, path=path) from problem


def each(log: Decklog, record_class: type[R], order: str, condition: str = "", **bound: Any) -> Iterator[R]:
    """Yield every record of a kind, one by one; inside a read, so that all are of one moment."""
    names = record_class.columns()
    sql = f"select {', '.join(names)} from {record_class.table} {condition} order by {order}"
    for row in log.db.each(sql, bound):
        yield record_class.from_row(names, row)


def columns_of(record: object, columns: str, spell: Callable[[datetime], Any] | None = None) -> dict[str, Any]:
    """Return fields of a record as a row: `column`, or `column=field` where the names differ. Enumerations become words."""
    row = {}
    for column in columns.split():
        name, _, field = column.partition("=")
        value = getattr(record, field or name)
        if isinstance(value, Enum):
            value = value.value
        row[name] = spell(value) if spell is not None and isinstance(value, datetime) else value
    return row


def text_of(value: Any) -> str | None:
    """Write JSON for a column; nothing stays nothing."""
    return None if value is None else to_json(value)


class NewFile:
    """A new file that appears under its name when it is whole. With `replace`, it takes the place of an existing one."""

    def __init__(self, path: str, *, replace: bool = False) -> None:
        self.path = path
        self._replace = replace
        if os.path.lexists(path) and not replace:
            raise Conflict(f"{path} is there already; name a file that is not, or say --replace", path=path)

    def __enter__(self) -> Self:
        # Where a link leads, not in its place: who made it wants the other file to change.
        self._place = os.path.realpath(self.path)
        opened, self._file = tempfile.mkstemp(dir=folder_of(self._place), prefix=_PREFIX)
        self._out = os.fdopen(opened, "wb")
        return self

    def write(self, text: str | bytes) -> None:
        self._out.write(text.encode() if isinstance(text, str) else text)

    def __exit__(self, _kind: object, problem: BaseException | None, _trace: object) -> None:
        self._out.close()
        if os.path.exists(self._file):
            os.unlink(self._file)
        refuse_full(self.path, problem)

    def publish(self, instead_of: bytes | None = None) -> None:
        """Move the file to its destination, and sync its folder; refuse to replace anything but a known content, if given."""
        self._out.flush()
        sync_descriptor(self._out.fileno())
        if self._replace:
            if os.path.exists(self._place):
                # Keep the permissions of the replaced file.
                os.chmod(self._file, os.stat(self._place).st_mode & 0o777)
            if instead_of is not None:
                self._refuse_changed(instead_of)
            os.rename(self._file, self._place)
        else:
            put_new(self._file, self.path)
        sync(folder_of(self._place))

    def _refuse_changed(self, known: bytes) -> None:
        with open(self._place, "rb") as file:
            if file.read() != known:
                hint = "Run it again: what came into the log stays."
                raise Conflict(f"{self.path} was written to meanwhile", hint=hint, path=self.path)


class TextExport(NewFile, ABC):
    """Writes one file, as everything is at one moment. A subclass names its system and writes the text in `write_all`."""

    system: ClassVar[str] = ""

    def __init__(
        self,
        log: Decklog,
        path: str,
        *,
        run_id: str | None = None,
        replace: bool = False,
        progress: Callable[[str, int, int], None] | None = None,
    ) -> None:
        super().__init__(path, replace=replace)
        self.log = log
        self.report = ExportReport(path, progress)
        self.run_id = run_id
        # The runs that are written; None for all.
        self.runs: Collection[str] | None = None if run_id is None else [run_id]

    def run(self) -> dict[str, Any]:
        """Write the file, and return what was written and what was left out."""
        if self.run_id is not None:
            self.log.runs.get(self.run_id)
        with self:
            self.log.db.read(self.write_all)
            self.publish()
        return self.report.as_dict()

    @abstractmethod
    def write_all(self) -> None:
        """Write the whole text; called once, inside of a read."""

    @cached_property
    def kept(self) -> LeftoverRows:
        """What imports of this system kept in the runs that are written."""
        return LeftoverRows(self.log, self.system, of_json=True, runs=self.runs)


_STRING_OR_INFINITY = re.compile(r'"(?:[^"\\]|\\.)*"|Infinity')


def json_text(value: Any, **spelling: Any) -> str:
    """Write JSON that other programs read: numbers beyond all bounds as such, and half a character spelled out."""
    try:
        text = json.dumps(value, ensure_ascii=False, **spelling)
        if "Infinity" in text:
            text = _STRING_OR_INFINITY.sub(lambda found: "1e999" if found[0] == "Infinity" else found[0], text)
        text.encode()
    except UnicodeEncodeError:
        return json.dumps(value, **spelling)
    except RecursionError:
        raise Invalid("it holds a value that is nested too deep to be written") from None
    return text


def number_of(key: str | None, system: str, table: str) -> int | None:
    """Return the number that a row had in the source, from the key of the record made of it."""
    prefix = f"{IMPORT_KEY_PREFIX}{system}:{table}:"
    return whole_number(key.removeprefix(prefix)) if key and key.startswith(prefix) else None


def whole_number(text: object) -> int | None:
    """Parse a number that a database can hold."""
    digits = str(text)
    return int(digits) if digits.isascii() and digits.isdigit() and len(digits) < 19 else None


def short_time(moment: datetime | None) -> str | None:
    """Spell a time without the fractions that it does not have."""
    return None if moment is None else to_text(moment).replace(".000000Z", "Z")
