"""Questions in SQL from outside, on a connection of their own that can only read and has little time."""

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain, repeat
from typing import Any

import apsw

from decklog.core.errors import Denied, Invalid, TimedOut
from decklog.db import packing
from decklog.db.sqlite import errors

_ALLOWED = {apsw.SQLITE_SELECT, apsw.SQLITE_READ, apsw.SQLITE_FUNCTION, apsw.SQLITE_RECURSIVE}
_FORBIDDEN = {"load_extension", "fts3_tokenizer"}
_STEPS_BETWEEN_LOOKS = 2_000


@contextmanager
def answered(
    address: str,
    path: str,
    sql: str,
    parameters: Sequence[Any],
    *,
    views: Mapping[str, str],
    seconds: float,
    most_bytes: int,
) -> Iterator[tuple[list[str], Iterator[tuple[Any, ...]]]]:
    """Run one statement that only reads, and give its columns and rows; `views` go before tables of the same name."""
    connection = apsw.Connection(address, flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI)
    try:
        connection.execute("pragma temp_store = memory")
        packing.add_decompress_function(connection)
        for name, select in views.items():
            connection.execute(f"create temp view {name} as {select}")
        _confine(connection, seconds, most_bytes)
        cursor = connection.cursor()
        # The first statement is let through, and no other.
        is_first = chain([True], repeat(False))
        cursor.exec_trace = lambda *_: next(is_first)
        cursor.execute(sql, tuple(parameters))
        yield _names(cursor), cursor
    except apsw.ExecTraceAbort:
        raise Invalid("one statement at a time, please", field="sql") from None
    except apsw.InterruptError:
        raise TimedOut(
            f"the query took more than {seconds} seconds and was stopped", hint="Ask for less, or add a limit."
        ) from None
    except apsw.AuthError as problem:
        raise Denied(f"a query only reads: {problem}", hint="Use the commands to write.") from None
    except apsw.BindingsError as problem:
        raise Invalid(f"the parameters don't fit the statement: {problem}", field="params") from None
    except apsw.Error as problem:
        raise errors.translate(problem, path) from problem
    finally:
        connection.close()


def _names(cursor: apsw.Cursor) -> list[str]:
    try:
        return [column[0] for column in cursor.get_description()]
    except apsw.ExecutionCompleteError:
        return []  # no row came, so nobody needs the names


def _confine(connection: apsw.Connection, seconds: float, most_bytes: int) -> None:
    """Let a connection read and compute, for a while; large values and everything else are refused."""
    deadline = time.monotonic() + seconds
    connection.limit(apsw.SQLITE_LIMIT_LENGTH, most_bytes)
    connection.execute("pragma query_only = on")
    connection.set_progress_handler(lambda: time.monotonic() > deadline, _STEPS_BETWEEN_LOOKS)
    connection.authorizer = _authorize


def _authorize(action: int, _table: str | None, name: str | None, *_: str | None) -> int:
    if action not in _ALLOWED or (action == apsw.SQLITE_FUNCTION and (name or "").lower() in _FORBIDDEN):
        return apsw.SQLITE_DENY
    return apsw.SQLITE_OK


def tables_of(path: str) -> set[str]:
    """Name the tables of a SQLite file that is not a log; a file that can't be read has none."""
    if not os.path.isfile(path):
        return set()
    try:
        connection = apsw.Connection(path, flags=apsw.SQLITE_OPEN_READONLY)
        try:
            return {row[0] for row in connection.execute("select name from sqlite_schema where type = 'table'")}
        finally:
            connection.close()
    except apsw.Error:
        return set()
