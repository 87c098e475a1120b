"""Read a foreign SQLite file safely, from a private copy: no writes, no code of its schema, limits on size and time."""

import os
import shutil
import stat
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import apsw

from decklog.core.errors import Conflict, Damaged, Invalid, NotADatabase, NotFound, TimedOut, TooLarge

PREFIX = "decklog-import-"
_OFF = (
    apsw.SQLITE_DBCONFIG_ENABLE_TRIGGER,
    apsw.SQLITE_DBCONFIG_ENABLE_VIEW,
    apsw.SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION,
    apsw.SQLITE_DBCONFIG_ENABLE_FTS3_TOKENIZER,
    apsw.SQLITE_DBCONFIG_TRUSTED_SCHEMA,
    apsw.SQLITE_DBCONFIG_WRITABLE_SCHEMA,
    apsw.SQLITE_DBCONFIG_DQS_DML,
    apsw.SQLITE_DBCONFIG_DQS_DDL,
)
_LIMITS = {
    apsw.SQLITE_LIMIT_ATTACHED: 0,
    apsw.SQLITE_LIMIT_COLUMN: 400,
    apsw.SQLITE_LIMIT_EXPR_DEPTH: 50,
    apsw.SQLITE_LIMIT_SQL_LENGTH: 100_000,
    apsw.SQLITE_LIMIT_TRIGGER_DEPTH: 1,
    apsw.SQLITE_LIMIT_VDBE_OP: 25_000,
}
_READS = {apsw.SQLITE_SELECT, apsw.SQLITE_READ}
_FUNCTIONS = {"typeof", "count", "current_timestamp", "current_date", "current_time", "datetime", "date", "strftime"}
_STEPS = 10_000
_MOST_BYTES = 8 * 1024**3
_LONGEST_VALUE = 64 * 1024**2
# Columns of plain tables; hidden 2 and 3 are generated ones.
_PLAIN_COLUMNS = """
select t.name, c.name
  from sqlite_schema t, pragma_table_xinfo(t.name) c
 where t.type = 'table' and t.rootpage > 0 and t.name not like 'sqlite\\_%' escape '\\' and c.hidden not in (2, 3)
 order by t.rowid, c.cid
"""
_ROW_NUMBERS = ("rowid", "_rowid_", "oid")


class SqliteSource:
    """The tables of a SQLite file and their rows.

    A private copy is read, so the file itself, its folder and its locks are never touched, and what was read
    can't change meanwhile. Views, virtual tables, triggers and generated columns are left alone.
    """

    def __init__(self, path: str, *, seconds: float = 600, most_bytes: int = _MOST_BYTES, most_rows: int = 20_000_000) -> None:
        self.path = path
        self._until = time.monotonic() + seconds
        self._most_rows = most_rows
        self._folder = tempfile.TemporaryDirectory(prefix=PREFIX)
        try:
            self._db = self._opened(_copied(path, self._folder.name, most_bytes))
            self.columns = self._columns()
        except BaseException:
            self._folder.cleanup()
            raise

    def _opened(self, copy: str) -> apsw.Connection:
        db = apsw.Connection(copy, flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_NOFOLLOW)
        db.enable_load_extension(False)
        db.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 1)
        for setting in _OFF:
            db.config(setting, 0)
        for limit, value in _LIMITS.items():
            db.limit(limit, value)
        db.limit(apsw.SQLITE_LIMIT_LENGTH, _LONGEST_VALUE)
        db.set_progress_handler(lambda: time.monotonic() > self._until, _STEPS)
        return db

    def _columns(self) -> dict[str, list[str]]:
        """List the plain tables with their columns, then close the door to all but reading them."""
        with _explained(self.path):
            self._encoding: str = self._db.execute("pragma encoding").get
            found: dict[str, list[str]] = {}
            for table, column in self._db.execute(_PLAIN_COLUMNS):
                found.setdefault(table, []).append(column)
        self._db.authorizer = _authorize
        return found

    def __contains__(self, table: str) -> bool:
        return table in self.columns

    def count(self, table: str) -> int:
        """Count a table's rows, for progress; 0 when the table is missing or damaged."""
        if table not in self.columns:
            return 0
        try:
            return int(self._db.execute(f"select count(*) from {quoted(table)}").get)
        except apsw.CorruptError:
            return 0

    def rows(self, table: str, by: Sequence[str] = ()) -> Iterator[dict[str, Any]]:
        """Yield a table's rows by column name, as they were written or ordered by some columns; a missing table has none."""
        names = self.columns.get(table, [])
        if not names:
            return
        with _explained(self.path, table):
            order = [quoted(name) for name in by if name in names] or self._row_number(table, names)
            ordering = f"order by {', '.join(order)}" if order else ""
            found = self._db.execute(f"select {_cells(names)} from {quoted(table)} {ordering}")
            for number, cells in enumerate(found, 1):
                if number > self._most_rows:
                    raise TooLarge(f"{table} has more than {self._most_rows} rows; raise the limit to take it", table=table)
                yield _row(names, cells, self._encoding)

    def _row_number(self, table: str, names: list[str]) -> list[str]:
        """Find the name of a table's row numbers; a table without them has the order of its key."""
        taken = {name.lower() for name in names}
        name = next((name for name in _ROW_NUMBERS if name not in taken), None)
        try:
            self._db.execute(f"select {name} from {quoted(table)} limit 0")
        except apsw.SQLError:
            return []
        return [] if name is None else [name]

    def close(self) -> None:
        self._db.close(True)
        self._folder.cleanup()

    def __enter__(self) -> "SqliteSource":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _copied(path: str, folder: str, most_bytes: int) -> str:
    """Copy a database and its write-ahead log; when it changes meanwhile, try again."""
    target = os.path.join(folder, "source.db")
    for _ in range(3):
        before = _state(path)
        if sum(size for size, _, _ in before if size > 0) > most_bytes:
            raise TooLarge(f"{path} is larger than {most_bytes} bytes; raise the limit to take it", path=path)
        _copy(path, target)
        with suppress(FileNotFoundError):
            os.unlink(f"{target}-wal")
        if before[1][0] > 0:
            _copy(f"{path}-wal", f"{target}-wal")
        if _state(path) == before:
            return target
    raise Conflict(f"{path} is being written to; stop the program that uses it, or copy the file first", path=path)


def _state(path: str) -> list[tuple[int, int, int]]:
    """Describe a file and its write-ahead log, so that a change shows."""
    states = []
    for name in (path, f"{path}-wal"):
        try:
            found = os.stat(name)
        except FileNotFoundError:
            if name == path:
                raise NotFound(f"there is no file {path}", path=path) from None
            states.append((-1, 0, 0))
            continue
        if not stat.S_ISREG(found.st_mode):
            raise Invalid(f"{name} is not a plain file", path=name)
        states.append((found.st_size, found.st_mtime_ns, found.st_ino))
    return states


def _copy(path: str, target: str) -> None:
    # Not blocking: a pipe that took the file's place would hold us for ever.
    with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as source, open(target, "wb") as copy:
        shutil.copyfileobj(source, copy, 1024 * 1024)


def _authorize(action: int, _first: str | None, second: str | None, *_: object) -> int:
    """Allow reading, the functions that our own statements need, and the time functions that columns' defaults use."""
    if action in _READS or (action == apsw.SQLITE_FUNCTION and (second or "").lower() in _FUNCTIONS):
        return apsw.SQLITE_OK
    return apsw.SQLITE_DENY


@contextmanager
def _explained(path: str, table: str | None = None) -> Iterator[None]:
    """Raise SQLite's errors as ours."""
    try:
        yield
    except apsw.NotADBError as problem:
        raise NotADatabase(f"{path} is not a SQLite database", path=path) from problem
    except apsw.InterruptError as problem:
        raise TimedOut(f"reading {path} took too long", hint="Give it more time.", path=path) from problem
    except apsw.Error as problem:
        raise Damaged(f"{path} can't be read: {problem}", path=path, table=table) from problem


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _cells(names: list[str]) -> str:
    """Build the select list: columns with their types, and text as bytes, because any bytes may be declared as text."""
    return ", ".join(
        f"typeof({quoted(name)}), case when typeof({quoted(name)}) = 'text' then cast({quoted(name)} as blob)"
        f" else {quoted(name)} end"
        for name in names
    )


def _row(names: list[str], cells: Sequence[Any], encoding: str) -> dict[str, Any]:
    values = zip(cells[::2], cells[1::2], strict=True)
    read = (value.decode(encoding, "replace") if kind == "text" else value for kind, value in values)
    return dict(zip(names, read, strict=True))
