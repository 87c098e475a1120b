"""Taking a great many rows into PostgreSQL, and leaving the text index to the server meanwhile."""

import re
from abc import abstractmethod
from contextlib import contextmanager
from operator import itemgetter

import psycopg

from decklog.db import postgres_errors, postgres_text_index
from decklog.db.base import Database, upsert_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import Any

    from decklog.db.base import Row

    Connection = psycopg.Connection[Any]

_PLAIN_INSERT = re.compile(r"insert into (?P<table>\w+) \((?P<names>[\w, ]+)\)\s+values \((?P<values>[\w:, ]+)\)")
_WORTH_A_COPY = 50


class PostgresBulk(Database):
    """The verbs of a PostgreSQL database that write many rows at once."""

    read_only: bool
    _asides: "list[Connection]"
    _has_text_index = False

    @abstractmethod
    def _here(self) -> "Connection": ...

    @abstractmethod
    def _spell(self, sql: str) -> str: ...

    def many(self, sql: str, parameters: "list[dict[str, Any]]") -> None:
        plain = _PLAIN_INSERT.fullmatch(sql.strip()) if len(parameters) >= _WORTH_A_COPY else None
        try:
            with self._here().cursor() as cursor:
                if plain is None:
                    cursor.executemany(self._spell(sql), parameters)
                else:
                    _copy(cursor, plain["table"], plain["names"], map(_ordered(plain["names"]), parameters))
        except psycopg.Error as problem:
            raise postgres_errors.translate(problem) from problem

    def insert(self, table: str, names: "tuple[str, ...]", rows: "list[Row]") -> None:
        try:
            with self._here().cursor() as cursor:
                _copy(cursor, table, ", ".join(names), rows)
        except psycopg.Error as problem:
            raise postgres_errors.translate(problem) from problem

    def put(self, table: str, names: "tuple[str, ...]", identity: "tuple[str, ...]", rows: "list[dict[str, Any]]") -> None:
        if len(rows) < _WORTH_A_COPY:
            super().put(table, names, identity, rows)
            return
        staged, columns = f"staged_{table}", ", ".join(names)
        try:
            with self._here().cursor() as cursor:
                cursor.execute(f"create temporary table if not exists {staged} (like {table}) on commit delete rows".encode())
                cursor.execute(f"truncate {staged}".encode())
                _copy(cursor, staged, columns, map(_ordered(columns), rows))
                cursor.execute(upsert_of(table, names, identity, f"select {columns} from {staged}").encode())
        except psycopg.Error as problem:
            raise postgres_errors.translate(problem) from problem

    # The text index

    @contextmanager
    def filling(self) -> "Iterator[None]":
        """Leave the text index of an empty log out, and have the server make it in the end, which nobody waits for.

        To maintain it while entries come in would take most of the time.
        """
        if self.read(lambda: self.one("select 1 from entries limit 1", {})) is None:
            self.write(lambda: postgres_text_index.leave_out(self))
        self._has_text_index = False
        try:
            yield
        finally:
            self.prepare_search(None)

    def prepare_search(self, stream_no: int | None) -> None:  # noqa: ARG002 - one index has the entries of all streams
        """Have the server make the text index, if a move left it out and did not come to its end.

        Until it is there, entries are searched one by one: nothing is missed, and it takes longer.
        """
        if self._has_text_index or self.read_only:
            return
        state = self.read(lambda: postgres_text_index.state(self))
        self._has_text_index = state == "ready"
        if state == "missing":
            aside = postgres_text_index.start(self.target)
            if aside is not None:
                self._asides.append(aside)


def _ordered(names: str) -> "Callable[[dict[str, Any]], Any]":
    return itemgetter(*names.split(", "))


def _copy(cursor: "psycopg.Cursor[Any]", table: str, names: str, rows: "Iterable[Row]") -> None:
    """Insert rows with COPY, which takes a tenth of the time of as many inserts."""
    with cursor.copy(f"copy {table} ({names}) from stdin".encode()) as copy:
        write = copy.write_row
        for row in rows:
            write(row)
