"""What two databases, or two logs, have in common: rows and records, without how JSON and times are spelled."""

import json
from collections.abc import Iterable
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import apsw

from decklog import Decklog
from decklog.importing.source import SqliteSource

# Made anew by every import: the ids of what had none.
_MADE = {"charges": ("id",), "learnings": ("id",), "self_edits": ("id",), "sightings": ("id", "lesson_id")}


def rows_of(path: Path, tables: Iterable[str]) -> dict[str, list[dict[str, object]]]:
    """Give the rows of each table in an order of their own."""
    with SqliteSource(str(path)) as source:
        return {table: in_order([_meant(row) for row in source.rows(table)]) for table in tables}


def in_order(rows: list[dict[str, object]]) -> list[dict[str, object]]:
    return sorted(rows, key=lambda row: json.dumps(row, sort_keys=True, default=repr))


def _meant(row: dict[str, object]) -> dict[str, object]:
    return {name: _value(value) for name, value in row.items()}


def _value(value: object) -> object:
    if not isinstance(value, str):
        return value
    try:
        if value[:1] in "[{" and value:
            return json.loads(value)
        moment = datetime.fromisoformat(value)
    except ValueError:
        return value
    return moment.replace(tzinfo=moment.tzinfo or UTC).timestamp()


def records_of(log: Decklog) -> dict[str, list[dict[str, object]]]:
    """Give every record of a log."""

    def read() -> dict[str, list[dict[str, object]]]:
        found = {}
        for table in log.record_classes():
            names, rows = log.db.rows(f"select * from {table}", {})
            records = [dict(zip(names, row, strict=True)) for row in rows]
            for record in records:
                for name in _MADE.get(table, ()):
                    record.pop(name)
            found[table] = in_order(records)
        return {table: rows for table, rows in found.items() if rows}

    return log.db.read(read)


def said_in(log: Decklog) -> list[tuple[object, ...]]:
    """Give what the entries say that no import made for itself, run by run."""

    def read() -> list[tuple[object, ...]]:
        sql = """
            select stream, kind, subtype, agent, task_id, body, payload, at, key from entries
             where kind <> 'change' and coalesce(substr(subtype, 1, 8), '') <> 'imported'
             order by stream, seq
            """
        return [tuple(row) for row in log.db.rows(sql, {})[1]]

    return log.db.read(read)


def execute(path: Path, *statements: str, bound: Any = ()) -> list[Any]:
    """Run statements on a database of another system, and return the rows."""
    with closing(apsw.Connection(str(path))) as db:
        return db.execute(";".join(statements), bound).fetchall()


def settings_of(path: Path) -> tuple[str, int, str]:
    """Say how a database is kept: its journal mode, its version, and whether it is whole."""
    db = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    mode, version, whole = (db.pragma(name) for name in ("journal_mode", "user_version", "integrity_check"))
    db.close()
    return mode, version, whole


def schema_of(path: Path, table: str) -> dict[str, tuple[str, bool, object, bool]]:
    """Give each column of a table: its type, whether it must be filled, its default, and whether it is part of the key."""
    db = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    rows = list(db.execute('select name, type, "notnull", dflt_value, pk from pragma_table_info(?)', (table,)))
    db.close()
    return {name: (kind, bool(needed), default, bool(key)) for name, kind, needed, default, key in rows}
