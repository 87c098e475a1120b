"""The mechanism that every exporter shares: a new file or folder that is there when it is whole, and rows made of records."""

import errno
import os
import shutil
import tempfile
from datetime import datetime
from typing import TYPE_CHECKING

import apsw

from decklog.core.clock import to_text
from decklog.core.errors import Conflict, Denied, DiskFull, NotFound
from decklog.importing.exports.report import ExportReport
from decklog.importing.leftovers import LeftoverRows
from decklog.importing.pages import every
from decklog.records.values import to_json

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import Any, Self, TypeVar

    from decklog.log import Decklog
    from decklog.records.record import Record

    R = TypeVar("R", bound=Record)

__all__ = ["Export", "Folder", "each", "every", "text_of"]

_PREFIX = ".decklog-export-"
_WAITING = "waiting_"
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_REFUSALS = (apsw.ConstraintError, apsw.MismatchError)


class Export:
    """Writes one older system's database. It is made beside its place and put there when it is whole.

    Times in a row are written as `spell` says. With `wal`, the file is left in that mode, which SQLite remembers in it.
    """

    def __init__(
        self,
        log: "Decklog",
        path: str,
        system: str,
        *,
        report: ExportReport | None = None,
        kept: LeftoverRows | None = None,
        spell: "Callable[[datetime], str]" = to_text,
        wal: bool = False,
    ) -> None:
        self.log = log
        self.path = path
        self.system = system
        self.report = report or ExportReport(path)
        self._given = kept
        self._spell = spell
        self._wal = wal
        self._names: dict[str, set[str]] = {}
        if os.path.lexists(path):
            raise Conflict(f"{path} is there already; name a file that is not", path=path)

    def __enter__(self) -> "Self":
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
        if self._given is None:
            self.kept.close()
        self._clear()
        refuse_full(self.path, problem)

    def _clear(self) -> None:
        """Leave nothing behind but what `finish` put in its place."""
        self.db.close(True)
        for ending in ("", "-journal", "-wal", "-shm"):
            if os.path.exists(self._file + ending):
                os.unlink(self._file + ending)

    def write(self, table: str, name: str, row: "dict[str, Any]", defaults: "dict[str, Any] | None" = None) -> "dict[str, Any]":
        """Write a row with the columns that an import kept; give it as it was written.

        `name` is what kept columns are found by. Columns that are empty even then take their defaults.
        """
        row = self.kept.restored(name, row, defaults)
        self.insert(table, row)
        return row

    def insert(self, table: str, row: "dict[str, Any]") -> bool:
        """Insert a row; one that the old system's own rules refuse is reported."""
        try:
            self._insert(table, row)
        except _REFUSALS as problem:
            self.report.refuse(f"{table} {row}", problem)
            return False
        self.report.count(table)
        return True

    def _insert(self, table: str, row: "dict[str, Any]") -> None:
        known = self._columns(table)
        fitting = {name: value for name, value in row.items() if name in known}
        for name in row.keys() - known:
            self.report.leave_out(f"{table.removeprefix(_WAITING)}.{name}")
        marks = ", ".join("?" for _ in fitting)
        values = tuple(self._spell(value) if isinstance(value, datetime) else value for value in fitting.values())
        self.db.execute(f"insert into {_quoted(table)} ({', '.join(map(_quoted, fitting))}) values ({marks})", values)

    def _columns(self, table: str) -> set[str]:
        if not self._names.get(table):
            self._names[table] = {name for (name,) in self.db.execute("select name from pragma_table_xinfo(?)", (table,))}
        return self._names[table]

    def insert_numbered(self, table: str, row: "dict[str, Any]", number: int | None) -> None:
        """Insert a row under the number it had there; one that had none waits for `insert_waiting`."""
        if number is not None and not self.has(table, number):
            self.insert(table, {**row, "id": number})
            return
        waiting = _WAITING + table
        if not self._columns(waiting):
            self.db.execute(f"create temp table {_quoted(waiting)} as select * from {_quoted(table)} limit 0")
        self._insert(waiting, {name: value for name, value in row.items() if name != "id"})

    def has(self, table: str, number: int) -> bool:
        """Return whether a number is taken: two files that were imported may have used the same ones."""
        return self.db.execute(f"select 1 from {_quoted(table)} where id = ?", (number,)).get is not None

    def insert_waiting(self, table: str, by: str = "rowid") -> None:
        """Insert the rows that wait for a number, after all that had one, in the order of a column or of their coming."""
        waiting = _WAITING + table
        names = [name for name in self._columns(waiting) if name != "id"]
        if names:
            for values in self.db.execute(
                f"select {', '.join(map(_quoted, names))} from {_quoted(waiting)} order by {by}, rowid"
            ):
                self.insert(table, dict(zip(names, values, strict=True)))

    def write_kept(self, tables: "Iterable[str] | None" = None) -> None:
        """Write the rows that no record could hold back as they were: all, or those of some tables."""
        for table in self.kept.tables() if tables is None else tables:
            for _, row in self.kept.rows(table):
                if not self._columns(table):
                    self.db.execute(f"create table {_quoted(table)} ({', '.join(map(_quoted, row))})")
                self.insert(table, row)

    def finish(self) -> "dict[str, Any]":
        """Put the file in its place; say how many rows each table has, what was refused and what was left out."""
        self.db.execute("commit")
        if self._wal:
            self.db.execute("pragma journal_mode = wal")
        self.db.close()
        try:
            os.link(self._file, os.path.abspath(self.path))
        except FileExistsError:
            raise Conflict(f"{self.path} is there already; name a file that is not", path=self.path) from None
        return self.report.as_dict()


class Folder:
    """A folder that only its owner can enter, made beside its place and put there when it is whole."""

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


def folder_of(path: str) -> str:
    """Name the folder that something goes into, which must be there."""
    folder = os.path.dirname(os.path.abspath(path))
    if not os.path.isdir(folder):
        raise NotFound(f"there is no folder {folder} to write to", hint="Make it first, or name another place.", path=folder)
    if not os.access(folder, os.W_OK | os.X_OK):
        raise Denied(f"nothing can be written to {folder}", hint="Name another place.", path=folder)
    return folder


def refuse_full(path: str, problem: BaseException | None) -> None:
    """Say in our words that the disk was full."""
    if isinstance(problem, apsw.FullError) or (isinstance(problem, OSError) and problem.errno in _FULL):
        hint = "Free some space, or name another place."
        raise DiskFull(f"there is no room to write {path}; nothing of it was kept", hint=hint, path=path) from problem


def each(log: "Decklog", record_class: "type[R]", order: str, condition: str = "", **bound: "Any") -> "Iterator[R]":
    """Yield every record of a kind, one by one; inside a read, so that all are of one moment."""
    names = record_class.columns()
    sql = f"select {', '.join(names)} from {record_class.table} {condition} order by {order}"
    for row in log.db.each(sql, bound):
        yield record_class.from_row(names, row)


def text_of(value: "Any") -> "str | None":
    """Write JSON for a column; nothing stays nothing."""
    return None if value is None else to_json(value)


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
