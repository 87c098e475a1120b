"""SQLite through apsw: one writer at a time, any number of readers, in WAL mode."""

import os
import time
from collections.abc import Callable, Iterator, Mapping
from functools import wraps
from itertools import islice
from operator import itemgetter
from threading import Lock
from typing import Any, TypeVar

import apsw

from decklog.core import fork_safety as forks
from decklog.core.clock import Clock
from decklog.core.errors import Damaged
from decklog.db import schema
from decklog.db.base import Row
from decklog.db.search.marks import not_indexed
from decklog.db.sqlite import errors, file, migrate
from decklog.db.sqlite.clock import BootClock
from decklog.db.sqlite.connections import SqliteConnections
from decklog.db.sqlite.search import SqliteSearch
from decklog.db.sqlite.upkeep import SqliteUpkeep
from decklog.db.sqlite.watcher import Watcher
from decklog.db.statements import Statements, by_place
from decklog.db.text_search import Span
from decklog.records.values import Values

# Read as hexadecimal digits and kept as bytes, which are half as long; by table and name, the column that holds them.
_KEPT_AS_BYTES = {("entries", "hash"): "hash_bytes"}


Method = TypeVar("Method", bound=Callable[..., Any])


def _translates(method: Method) -> Method:
    """Raise Decklog errors instead of SQLite's."""

    @wraps(method)
    def translated(database: "SqliteDatabase", *args: Any) -> Any:
        try:
            return method(database, *args)
        except errors.TRANSLATED as problem:
            raise errors.translate(problem, database.target) from problem

    return translated  # type: ignore[return-value]


class SqliteDatabase(SqliteSearch, SqliteUpkeep):
    """A log in a SQLite file."""

    engine = "sqlite"
    finds_tags_by_search = True
    forgets_words_slowly = True
    locks_rows = False
    packs_blobs = True
    most_transactions = 1
    # Of all logs of a process: how a statement is spelled depends on nothing else.
    _spelled: Statements[tuple[str, Callable[[Mapping[str, Any]], Any]]] = Statements()

    def __init__(self, connections: SqliteConnections, *, values: Values, clock: Clock) -> None:
        super().__init__(connections)
        self.target = connections.path
        self.read_only = connections.read_only
        self.values = values
        self.clock = clock
        self._names: Statements[tuple[str, ...]] = Statements()
        self._inserts: dict[tuple[str, tuple[str, ...]], str] = {}
        self._watching: Watcher | None = None
        self._opening_watcher = Lock()
        forks.notify_of_forks(self)

    # Statements

    def _spell(self, sql: str) -> tuple[str, Callable[[Mapping[str, Any]], Any]]:
        """Write a statement for SQLite, with a function that puts its parameters in order.

        A writer has the whole file, so there is nothing to lock row by row. Binding by place takes half the time of binding
        by name.
        """
        text, names = by_place(sql.replace(" for update skip locked", "").replace(" for update", ""))
        return self._spelled.keep(sql, (text, _in_order(names)))

    def _execute(self, sql: str, parameters: Mapping[str, Any]) -> apsw.Cursor:
        connections = self.connections
        connection = connections.writing() if self.is_writing else connections.readers.mine().connection
        text, ordered = self._spelled.get(sql) or self._spell(sql)
        return connection.execute(text, ordered(parameters))

    @_translates
    def rows(self, sql: str, parameters: Mapping[str, Any]) -> tuple[tuple[str, ...], list[Row]]:
        cursor = self._execute(sql, parameters)
        first = cursor.fetchone()
        if first is None:
            return (), []  # SQLite names the columns of a row only
        names = self._names.get(sql)
        if names is None:
            names = self._names.keep(sql, tuple(column[0] for column in cursor.get_description()))
        return names, [first, *cursor.fetchall()]

    @_translates
    def one(self, sql: str, parameters: Mapping[str, Any]) -> Row | None:
        rows = self._execute(sql, parameters).fetchall()
        return rows[0] if rows else None

    @_translates
    def count(self, sql: str, parameters: Mapping[str, Any]) -> int:
        text, ordered = self._spelled.get(sql) or self._spell(sql)
        return self.connections.writing_cursor().execute(text, ordered(parameters)).connection.changes()

    def each(self, sql: str, parameters: Mapping[str, Any]) -> Iterator[Row]:
        try:
            yield from self._execute(sql, parameters)
        except errors.TRANSLATED as problem:
            raise errors.translate(problem, self.target) from problem

    def each_as_is(self, sql: str, parameters: Mapping[str, Any]) -> Iterator[Row]:
        read = 0
        try:
            for row in self.each(sql, parameters):
                yield row
                read += 1
        except Damaged as problem:
            if not isinstance(problem.__cause__, UnicodeDecodeError):
                raise
            # From here on texts come as bytes, and are read one by one.
            yield from islice(self._each_decoded(sql, parameters), read, None)

    def _each_decoded(self, sql: str, parameters: Mapping[str, Any]) -> Iterator[Row]:
        text, ordered = self._spell(sql)
        names: list[str] = []

        def notice(cursor: apsw.Cursor, *_: object) -> bool:
            names.extend(column[0] for column in cursor.get_description())
            return True

        cursor = self.connections.readers.mine().connection.cursor()
        cursor.exec_trace = notice
        cursor.execute(f"select * from ({text}) limit 0", ordered(parameters))
        raw = "typeof({0}), case typeof({0}) when 'text' then cast({0} as blob) else {0} end"
        for row in self.each(f"select {', '.join(map(raw.format, names))} from ({sql})", parameters):
            yield tuple(_decoded(kind, value) for kind, value in zip(row[::2], row[1::2], strict=True))

    @_translates
    def many(self, sql: str, parameters: list[dict[str, Any]]) -> None:
        text, ordered = self._spell(sql)
        self.connections.writing_cursor().executemany(text, map(ordered, parameters))

    def insert_of(self, table: str, names: tuple[str, ...]) -> str:
        columns = ", ".join(_KEPT_AS_BYTES.get((table, name), name) for name in names)
        places = ", ".join(f"unhex(:{name})" if (table, name) in _KEPT_AS_BYTES else f":{name}" for name in names)
        return f"insert into {table} ({columns}) values ({places})"

    @_translates
    def insert(self, table: str, names: tuple[str, ...], rows: list[Row]) -> None:
        text = self._inserts.get((table, names))
        if text is None:
            text = self._inserts[table, names] = self._spell(self.insert_of(table, names))[0]
        self.connections.writing_cursor().executemany(text, rows)

    def lock_stream(self, stream: str) -> int | None:
        # The whole file is ours for the length of a write.
        row = self.one("select no from streams where name = :stream", {"stream": stream})
        return row[0] if row else None

    def wait_for_change(self, seconds: float, stream: str | None = None) -> None:  # noqa: ARG002 - one counter for all
        end = time.monotonic() + seconds
        while True:
            self.connections.check_in_place_now_and_then()
            if self.connections.readers.notices_change():
                return
            if (left := end - time.monotonic()) <= 0:
                return
            time.sleep(min(0.01, left))

    def watch(self, stream: str | None, wake: Callable[[], None]) -> Callable[[], None]:  # noqa: ARG002 - the same
        with self._opening_watcher:
            # One that was made before a fork has no thread here.
            if self._watching is None or self._watching.process != os.getpid():
                self._watching = Watcher(self.connections)
            watcher = self._watching
        return watcher.watch(wake)

    # Search

    def unindexed(self, stream_no: int | None, *, going_on: bool = False, first: int = 0) -> list[Span]:
        connection = None if self.is_writing else self.connections.readers.mine().connection
        # Only where a statement has settled which version of the file this read sees.
        if connection is None or not connection.txn_state("main"):
            return not_indexed(self, stream_no, going_on=going_on, first=first)
        indexed, version = self.connections.readers.mine().indexed, connection.data_version()
        if indexed.get(stream_no) == version or indexed.get(None) == version:
            return []
        spans = not_indexed(self, stream_no, going_on=going_on, first=first)
        if not (spans or going_on or first):
            indexed[stream_no] = version
        return spans

    # The schema

    def prepare(self, state: file.FileState) -> None:
        """Leave the file ready to use at the schema that this Decklog knows, or raise and leave it as it was."""
        self.version = schema.latest("sqlite")
        migrate.prepare(self.connections, state, self.clock)

    def migrate(self) -> list[str]:
        return migrate.migrate(self.connections, self.clock)


def _decoded(kind: str, value: Any) -> Any:
    if kind != "text":
        return value
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value


def _in_order(names: list[str]) -> Callable[[Mapping[str, Any]], Any]:
    if len(names) > 1:
        return itemgetter(*names)
    if not names:
        return lambda _: ()
    [name] = names
    return lambda parameters: (parameters[name],)


def open_sqlite(
    path: str,
    *,
    values: Values,
    clock: Clock | None,
    durability: str = "full",
    read_only: bool = False,
    busy_seconds: float = 30.0,
    allow_network_fs: bool = False,
) -> SqliteDatabase:
    """Open a file, making it or bringing it up to date first; refuse what is not a Decklog log."""
    file.check_engine()
    path = os.path.abspath(path)
    file.check_place(path, allow_network=allow_network_fs or bool(os.environ.get("DECKLOG_ALLOW_NETWORK_FS")))
    state = file.look(path)
    read_only = read_only or (state == "database" and not os.access(path, os.W_OK))
    connections = SqliteConnections(path, durability=durability, read_only=read_only, busy_seconds=busy_seconds)
    database = SqliteDatabase(connections, values=values, clock=clock or BootClock(connections.lock_path))
    try:
        database.prepare(state)
    except BaseException:
        database.close()
        raise
    return database
