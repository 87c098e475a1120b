"""Answer SQL queries over bazinga's tables: one read-only statement with limits."""

import os
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from decimal import Decimal
from functools import lru_cache
from hashlib import sha256
from typing import Any

from decklog.core.errors import Denied, TooLarge
from decklog.db.base import Database
from decklog.db.sqlite.file import address_of
from decklog.db.sqlite.query import answered
from decklog.plugins.importers.bazinga.mirror import questions

SCHEMA = "bazinga"
_MAKING = 4919131752989214


@lru_cache
def shipped_views() -> dict[str, str]:
    """Return the name and the select of each view that this version ships."""
    with open(os.path.join(os.path.dirname(__file__), "views.postgres.sql"), encoding="utf-8") as file:
        lines = [line for line in file if not line.startswith("--")]
    found = {}
    for statement in "".join(lines).split(";\n"):
        name, _, select = statement.strip().removeprefix("create view ").partition(" as\n")
        if select:
            found[name] = select
    return found


def make_views(database: Database) -> None:
    """Create or update the views; do nothing without the right to."""
    if database.read_only or not database.read(lambda: missing_views(database)):
        return
    try:
        database.write(lambda: _create_views(database))
    except Denied:
        # A role without this right defines the views in each query.
        return


def missing_views(database: Database) -> dict[str, str]:
    """Return the views that a log lacks or that differ."""
    found = database.one("select obj_description(to_regnamespace(:schema)::oid, 'pg_namespace')", {"schema": SCHEMA})
    return {} if found == (_views_digest(),) else dict(shipped_views())


def _create_views(database: Database) -> None:
    database.rows("select pg_advisory_xact_lock(:number)", {"number": _MAKING})
    if missing_views(database):
        database.rows(f"drop schema if exists {SCHEMA} cascade", {})
        database.rows(f"create schema {SCHEMA}", {})
        for name, select in shipped_views().items():
            database.rows(f"create view {SCHEMA}.{name} as\n{select}", {})
        database.rows(f"comment on schema {SCHEMA} is '{_views_digest()}'", {})


def _views_digest() -> str:
    return sha256(repr(shipped_views()).encode()).hexdigest()


SECONDS = 1.5
ROWS = 10_000
BYTES = 8 * 1024 * 1024


def ask(database: Database, sql: str, parameters: Sequence[Any] = ()) -> list[dict[str, Any]]:
    """Run one read-only statement; return its rows. Repeated column names get a suffix."""
    asking: Any = _ask_log if database.engine == "sqlite" else _ask_postgres
    with asking(database, sql, parameters) as (names, rows):
        return _build_rows(names, rows)


def ask_file(path: str, sql: str, parameters: Sequence[Any] = ()) -> list[dict[str, Any]]:
    """Run one statement on the file for readers."""
    found = answered(address_of(path), path, sql, parameters, views={}, seconds=SECONDS, most_bytes=BYTES)
    with found as (names, rows):
        return _build_rows(names, rows)


def _ask_log(database: Any, sql: str, parameters: Sequence[Any]) -> AbstractContextManager[Any]:
    """Query the log itself, on a connection with bazinga's tables as views."""
    where = database.connections
    limits: dict[str, Any] = {"seconds": SECONDS, "most_bytes": BYTES}
    return answered(where.address(), where.path, sql, parameters, views=questions("main"), **limits)


def _ask_postgres(database: Any, sql: str, parameters: Sequence[Any]) -> AbstractContextManager[Any]:
    # psycopg is an optional dependency.
    from decklog.db.postgres.query import answered as answered_by_server

    lacking = database.read(lambda: missing_views(database))
    return answered_by_server(database.connections, sql, parameters, views=lacking, schema=SCHEMA, seconds=SECONDS)


def _build_rows(names: list[str], rows: Iterable[Sequence[Any]]) -> list[dict[str, Any]]:
    columns, size = _unique_names(names), 0
    found: list[dict[str, Any]] = []
    for row in rows:
        if len(found) == ROWS:
            raise TooLarge(f"the answer has more than {ROWS} rows", hint="Add a limit to the query.", limit=ROWS)
        shown = [_value(value) for value in row]
        size += sum(len(value) for value in shown if isinstance(value, str))
        if size > 8 * BYTES:
            raise TooLarge(f"the answer has more than {8 * BYTES} characters", hint="Ask for fewer columns or rows.")
        found.append(dict(zip(columns, shown, strict=True)))
    return found


def _unique_names(names: list[str]) -> list[str]:
    """Return unique column names: repeated ones get the suffixes _2, _3 …"""
    taken: set[str] = set()
    columns = []
    for name in names:
        place, column = 1, name
        while column in taken:
            place += 1
            column = f"{name}_{place}"
        taken.add(column)
        columns.append(column)
    return columns


def _value(value: Any) -> Any:
    """Convert a value to JSON; show bytes as SQL does."""
    if isinstance(value, (bytes, memoryview, bytearray)):
        return f"x'{bytes(value).hex()}'"
    if isinstance(value, Decimal):
        value = int(value) if value == value.to_integral_value() else float(value)
    if isinstance(value, float) and value - value != 0:
        return str(value)  # JSON has no infinity and no "not a number"
    return value if value is None or isinstance(value, (str, int, float, dict, list)) else str(value)


def faults_of(database: Database) -> list[str]:
    """Return the problems that SQLite finds in its file; PostgreSQL checks its own."""
    if database.engine != "sqlite":
        return []
    rows = database.read(lambda: database.rows("pragma integrity_check(20)", {})[1])
    return [str(row[0]) for row in rows if row[0] != "ok"]
