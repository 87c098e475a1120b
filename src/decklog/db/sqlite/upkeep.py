"""What a SQLite file needs now and then: a look at its health, and its space given back."""

import os
import re
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache
from typing import Any

import apsw

from decklog.core.errors import Damaged, DecklogError, TimedOut
from decklog.db import schema
from decklog.db.base import Database, Row
from decklog.db.schema import Objects
from decklog.db.sqlite import backup, errors, file
from decklog.db.sqlite.damage import Cause, damage_of
from decklog.db.sqlite.transactions import SqliteTransactions

# The row of an FTS5 index that counts changes of its settings.
_STRUCTURE_ID = 10
# How often a migration sets something of a text index; an index that was made anew counts none.
_MOST_SET = 1
# The mode of a file whose free pages can be given back a few at a time.
_INCREMENTAL = 2
# All pages of a smaller file are checked at once, in about a second.
_SMALL_FILE = 200_000_000
_TABLES = """
select name from sqlite_schema where type = 'table' and sql not like 'create virtual%'
 order by name = 'entries', name like 'entry_text%', name
"""
# SQLite's own statistics, which `analyze` makes, change no answer.
_OBJECTS = "select type, tbl_name, name, sql from sqlite_schema where name not like 'sqlite_stat%'"


class SqliteUpkeep(SqliteTransactions):
    """Copies, checks and shrinks the file of a log."""

    def facts(self) -> dict[str, Any]:
        connections = self.connections
        connection = connections.readers.mine().connection

        def pragma(name: str) -> Any:
            row = connection.execute(f"pragma {name}").fetchone()
            return row[0] if row else None

        wal = connections.path + "-wal"
        status = os.stat(connections.path)
        steps = connection.execute("select version, name, applied_at from schema_steps order by version").fetchall()
        return {
            "engine": "sqlite",
            "engine_version": apsw.sqlite_lib_version(),
            "path": connections.path,
            "filesystem": file.filesystem_of(connections.path),
            "schema": steps[-1][0],
            "schema_supported": schema.latest("sqlite"),
            "journal_mode": pragma("journal_mode"),
            "synchronous": {1: "normal", 2: "full"}.get(pragma("synchronous"), "other"),
            "bytes": status.st_size,
            "wal_bytes": os.path.getsize(wal) if os.path.exists(wal) else 0,
            "mode": oct(status.st_mode & 0o777),
            "read_only": connections.read_only,
            "steps": [{"version": version, "name": name, "applied_at": at} for version, name, at in steps],
        }

    def back_up(self, path: str, progress: Callable[[int, int], None]) -> None:
        with self._one_more() as connection:
            backup.copy(connection, path, progress)

    @contextmanager
    def _one_more(self) -> Iterator[apsw.Connection]:
        """Open a connection for one piece of work."""
        connection = self.connections.connect()
        try:
            yield connection
        except apsw.Error as problem:
            raise errors.translate(problem, self.connections.path) from problem
        finally:
            connection.close()

    # Space

    def drop_texts(self, given: list[dict[str, Any]]) -> None:
        """Replace the texts of entries by their digests, in the transaction that is open.

        The rows are deleted and inserted again: SQLite joins pages that became nearly empty only when rows are deleted. The
        triggers that keep entries from going are off for that long, on this connection alone.
        """
        connection = self.connections.writing()
        try:
            names = [name for _, name, *_ in connection.execute("pragma table_info(entries)")]
            dropped = {"body": "null", "payload": "null", "body_digest": ":body", "payload_digest": ":payload"}
            columns, values = ", ".join(names), ", ".join(dropped.get(name, name) for name in names)
            connection.execute("create temp table if not exists pruned as select * from entries limit 0")
            connection.config(apsw.SQLITE_DBCONFIG_ENABLE_TRIGGER, 0)
            try:
                kept = f"insert into temp.pruned ({columns}) select {values} from entries where pos = :pos and kind <> 'change'"
                connection.executemany(kept, given)
                connection.execute("delete from entries where pos in (select pos from temp.pruned)")
                connection.execute(f"insert into entries ({columns}) select {columns} from temp.pruned order by pos")
            finally:
                connection.config(apsw.SQLITE_DBCONFIG_ENABLE_TRIGGER, 1)
            connection.execute("delete from temp.pruned")
        except apsw.Error as problem:
            raise errors.translate(problem, self.connections.path) from problem

    def compact(self) -> None:
        self.write(lambda: self.count("insert into entry_text (entry_text) values ('optimize')", {}))
        with self._one_more() as connection, self.connections.lock:
            # It takes effect with the vacuum, in a file that was made without it.
            connection.execute("pragma auto_vacuum = incremental")
            connection.execute("vacuum")
            connection.execute("pragma wal_checkpoint(truncate)")

    def free_pages(self) -> int:
        # None in a file that was made without the means to give them back.
        def counted() -> int:
            [(mode,)] = self.rows("pragma auto_vacuum", {})[1]
            [(count,)] = self.rows("pragma freelist_count", {})[1]
            return int(count) if mode == _INCREMENTAL else 0

        return self.read(counted)

    def give_back(self, pages: int) -> None:
        self.rows(f"pragma incremental_vacuum({pages})", {})

    def checkpoint(self) -> None:
        with self._one_more() as connection:
            connection.execute("pragma wal_checkpoint(passive)").fetchall()
            # The file shrinks only when nothing was written meanwhile. Little is left to copy, so writers wait a moment.
            with self.connections.lock:
                connection.execute("pragma wal_checkpoint(passive)").fetchall()

    def file_bytes(self) -> int:
        return os.path.getsize(self.target)

    # Checks

    def check_wal(self) -> tuple[list[str], list[str]]:
        damage = damage_of(self.target)
        if damage is None:
            return [], []
        if damage.cause is not Cause.KILLED:
            return [damage.what], []
        # A large transaction that is still open looks the same.
        is_written = any(holder["exclusive"] for holder in file.holders_of(self.connections.lock_path))
        return [], [] if is_written else [damage.what]

    def check_indexes(self, most: int) -> list[dict[str, Any]]:
        rows = self.read(lambda: self._integrity(most))
        return [_placed(row[0]) for row in rows if row[0] != "ok"]

    def _integrity(self, most: int) -> list[Row]:
        # A connection that has searched before checks a text index by what it remembers of it, unless it searches again first.
        _, tables = self.rows("select name from sqlite_master where sql like '%using fts5(%'", {})
        for (table,) in tables:
            with suppress(DecklogError):  # the check below reports damage
                self.rows(f"select rowid from {table} where {table} match 'any' limit 1", {})
        return self.rows(f"pragma integrity_check({most})", {})[1]

    def check_schema(self) -> Iterator[dict[str, Any]]:
        applied = list(self.each_as_is(schema.APPLIED, {}))
        schema.check_known(applied, "sqlite")
        yield from schema.differences(_expected()[0], _objects_in(self.each_as_is(_OBJECTS, {})))
        yield from schema.step_differences(applied, "sqlite")
        yield from _settings_differences(self)

    def check_pages(
        self, most: int, seconds: float | None, progress: Callable[[str, int, int], None]
    ) -> tuple[list[str], list[str]]:
        if seconds is None or self.file_bytes() <= _SMALL_FILE:
            _, rows = self.read(lambda: self.rows(f"pragma quick_check({most})", {}))
            return [row[0] for row in rows if row[0] != "ok"][:most], []
        end = time.monotonic() + seconds
        # The largest tables last.
        names = [row[0] for row in self.read(lambda: self.rows(_TABLES, {}))[1]]
        wrong: list[str] = []
        left: list[str] = []
        for done, name in enumerate(names):
            progress("checking tables", done, len(names))
            try:
                with self.within(max(end - time.monotonic(), 0.01)):
                    _, rows = self.read(lambda name=name: self.rows(f"pragma quick_check({name})", {}))  # type: ignore[misc]
                wrong += [row[0] for row in rows if row[0] != "ok"]
            except TimedOut:
                left.append(name)
            except Damaged as problem:
                wrong.append(f"{name}: {problem.message}")
            if len(wrong) >= most:
                break
        return wrong[:most], left


@lru_cache
def _expected() -> tuple[Objects, dict[str, dict[str, Any]]]:
    """Make an empty log in memory; give its tables, indexes and triggers, and the settings of its text indexes."""
    connection = apsw.Connection(":memory:")
    try:
        for step in schema.steps("sqlite"):
            connection.execute(schema.text_of(step, "sqlite"))
        objects = _objects_in(connection.execute(_OBJECTS))
        names = [name for kind, _, name in objects if kind == "table" and name.endswith("_config")]
        return objects, {name: _settings_in(connection.execute, name) for name in names}
    finally:
        connection.close()


def _settings_differences(database: Database) -> Iterator[dict[str, Any]]:
    """Name the settings of the text indexes that are not as the migrations left them."""
    for index, expected in _expected()[1].items():
        found = _settings_in(database.each_as_is, index)
        for name in sorted({*found, *expected}, key=str):
            if found.get(name) != expected.get(name):
                what = f"the text index has {name} set to {found.get(name)}, and not to {expected.get(name)}"
                yield {"what": what, "table": index, "record_id": str(name), "column": "v"}


def _settings_in(execute: Callable[[str, dict[str, Any]], Iterable[Any]], index: str) -> dict[str, Any]:
    """Read the settings of an index, and whether it counts them as set a few times at most: readers look when that changes."""
    settings: dict[str, Any] = dict(execute(f"select k, v from {index}", {}))
    pages = index.removesuffix("config") + "data"
    [(times,)] = execute(f"select hex(substr(block, 1, 4)) from {pages} where id = {_STRUCTURE_ID}", {})
    return settings | {"its count of changes": int(times, 16) <= _MOST_SET}


def _placed(complaint: str) -> dict[str, Any]:
    """Return what SQLite's own check complains of as the fields of a problem, with the table and the column that it names."""
    tables = {name: table for _, table, name in _expected()[0]}
    for word in reversed(re.findall(r"\w+(?:\.\w+)?", complaint)):
        name, _, column = word.partition(".")
        if name in tables:
            return {"what": complaint, "table": tables[name], "column": column or None}
    return {"what": complaint}


def _objects_in(rows: Iterable[tuple[Any, ...]]) -> Objects:
    """Read the rows of a schema."""
    return {(str(kind), str(table), str(name)): sql if isinstance(sql, str) else "" for kind, table, name, sql in rows}
