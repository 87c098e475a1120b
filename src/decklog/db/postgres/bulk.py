"""Taking a great many rows into PostgreSQL."""

import re
from operator import itemgetter
from typing import TYPE_CHECKING

import psycopg

from decklog.db.base import upsert_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    from decklog.db.base import Row

    Connection = psycopg.Connection[Any]

_PLAIN_INSERT = re.compile(r"insert into (?P<table>\w+) \((?P<names>[\w, ]+)\)\s+values \((?P<values>[\w:, ]+)\)")
WORTH_A_COPY = 50


def many(connection: "Connection", sql: str, spelled: str, parameters: "list[dict[str, Any]]") -> None:
    """Run one statement for each set of parameters; a plain insert of many rows is a copy."""
    plain = _PLAIN_INSERT.fullmatch(sql.strip()) if len(parameters) >= WORTH_A_COPY else None
    with connection.cursor() as cursor:
        if plain is None:
            cursor.executemany(spelled.encode(), parameters)
        else:
            _copy(cursor, plain["table"], plain["names"], map(_ordered(plain["names"]), parameters))


def insert(connection: "Connection", table: str, names: "tuple[str, ...]", rows: "list[Row]") -> None:
    """Insert rows, each with its values in the order of the names."""
    with connection.cursor() as cursor:
        _copy(cursor, table, ", ".join(names), rows)


def put(
    connection: "Connection", table: str, names: "tuple[str, ...]", identity: "tuple[str, ...]", rows: "list[dict[str, Any]]"
) -> None:
    """Insert rows, each in the place of the one that has its key."""
    staged, columns = f"staged_{table}", ", ".join(names)
    with connection.cursor() as cursor:
        cursor.execute(f"create temporary table if not exists {staged} (like {table}) on commit delete rows".encode())
        cursor.execute(f"truncate {staged}".encode())
        _copy(cursor, staged, columns, map(_ordered(columns), rows))
        cursor.execute(upsert_of(table, names, identity, f"select {columns} from {staged}").encode())


def _ordered(names: str) -> "Callable[[dict[str, Any]], Any]":
    return itemgetter(*names.split(", "))


def _copy(cursor: "psycopg.Cursor[Any]", table: str, names: str, rows: "Iterable[Row]") -> None:
    """Insert rows with COPY, which takes a tenth of the time of as many inserts."""
    with cursor.copy(f"copy {table} ({names}) from stdin".encode()) as copy:
        write = copy.write_row
        for row in rows:
            write(row)
