"""Questions in SQL from outside: one statement, read-only, limited in time, rows and size, on a connection of its own."""

import os
import time
from contextlib import closing
from decimal import Decimal
from itertools import chain

from decklog.errors import Denied, Invalid, TimedOut, TooLarge

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any

    import apsw

    from decklog.db.base import Database
    from decklog.db.postgres.database import PostgresDatabase
    from decklog.db.sqlite.database import SqliteDatabase

SECONDS = 1.5
ROWS = 10_000
BYTES = 8 * 1024 * 1024
_STEPS_BETWEEN_LOOKS = 2_000
_ONE = "one statement at a time, please"


def ask(database: "Database", sql: str, parameters: "Sequence[Any]" = ()) -> "list[dict[str, Any]]":
    """Answer one statement that only reads; give its rows, a column that comes twice under a name of its own."""
    if database.engine == "sqlite":
        return _ask_sqlite(database, sql, parameters)  # type: ignore[arg-type]
    return _ask_postgres(database, sql, parameters)  # type: ignore[arg-type]


def _ask_sqlite(database: "SqliteDatabase", sql: str, parameters: "Sequence[Any]") -> "list[dict[str, Any]]":
    import apsw

    from decklog.db.sqlite import errors

    connection = apsw.Connection(database.connections.address(), flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI)
    try:
        _name_as_bazinga(connection)
        _confine(connection)
        cursor = connection.cursor()
        cursor.exec_trace = _OneStatement()
        cursor.execute(sql, tuple(parameters))
        return _shown(_names(cursor), cursor)
    except apsw.ExecTraceAbort:
        raise Invalid(_ONE, field="sql") from None
    except apsw.InterruptError:
        raise _late() from None
    except apsw.AuthError as problem:
        raise Denied(f"a query only reads: {problem}", hint="Use the commands to write.") from None
    except apsw.BindingsError as problem:
        raise Invalid(f"the parameters don't fit the statement: {problem}", field="params") from None
    except apsw.Error as problem:
        raise errors.translate(problem, database.target) from problem
    finally:
        connection.close()


def _names(cursor: "apsw.Cursor") -> list[str]:
    import apsw

    try:
        return [column[0] for column in cursor.get_description()]
    except apsw.ExecutionCompleteError:
        return []  # no row came, so nobody needs the names


class _OneStatement:
    """Lets the first statement of a text through, and no other."""

    def __init__(self) -> None:
        self._seen = False

    def __call__(self, *_: object) -> bool:
        first, self._seen = not self._seen, True
        return first


def _confine(connection: "apsw.Connection") -> None:
    """Let a connection read and compute, for a while; large values and everything else are refused."""
    import apsw

    allowed = {apsw.SQLITE_SELECT, apsw.SQLITE_READ, apsw.SQLITE_FUNCTION, apsw.SQLITE_RECURSIVE}
    forbidden = {"load_extension", "fts3_tokenizer"}

    def authorize(action: int, _table: str | None, name: str | None, *_: str | None) -> int:
        if action not in allowed or (action == apsw.SQLITE_FUNCTION and (name or "").lower() in forbidden):
            return apsw.SQLITE_DENY
        return apsw.SQLITE_OK

    deadline = time.monotonic() + SECONDS
    connection.limit(apsw.SQLITE_LIMIT_LENGTH, BYTES)
    connection.execute("pragma query_only = on")
    connection.set_progress_handler(lambda: time.monotonic() > deadline, _STEPS_BETWEEN_LOOKS)
    connection.authorizer = authorize


def _name_as_bazinga(connection: "apsw.Connection") -> None:
    """Put bazinga's shape of them before tables that have the same name in both."""
    connection.execute("pragma temp_store = memory")
    for name, sql in SAME_NAMES.items():
        connection.execute(f"create temp view {name} as {sql}")


_AT = "replace(substr({0}, 1, 26), 'T', ' ')"
# PostgreSQL has these as views in a schema; SQLite has no schemas, so each such connection makes them for itself.
SAME_NAMES = {
    "context_packages": f"""
        select p.number as id, p.run_id as session_id, p.group_id, p.package_type, p.file_path, p.producer as producer_agent,
               p.priority, p.summary, p.size_bytes, p.version, o.number as supersedes_id, p.scope,
               {_AT.format("p.created_at")} as created_at
          from main.context_packages p
          left join main.context_packages o on o.id = p.supersedes_id
    """,
    "error_patterns": f"""
        select pattern_hash, project as project_id, signature as signature_json, solution, confidence, occurrences, lang,
               {_AT.format("last_seen_at")} as last_seen, {_AT.format("created_at")} as created_at, ttl_days
          from main.error_patterns
    """,
    "strategies": f"""
        select id as strategy_id, project as project_id, topic, insight, helpfulness, lang, framework,
               {_AT.format("last_seen_at")} as last_seen, {_AT.format("created_at")} as created_at
          from main.strategies
    """,
    "workflow_transitions": """
        select rowid as id, agent as current_agent, status as response_status, next_agent, action, include_context,
               escalation_check, model_override, fallback_agent, bypass_qa, max_parallel, then_action
          from main.workflow_transitions
    """,
}


def _ask_postgres(database: "PostgresDatabase", sql: str, parameters: "Sequence[Any]") -> "list[dict[str, Any]]":
    import psycopg

    from decklog.db.postgres import errors

    try:
        with psycopg.connect(database.target, autocommit=True) as connection, connection.cursor() as cursor:
            cursor.execute("begin read only")
            cursor.execute(f"set local statement_timeout = {int(SECONDS * 1000)}")
            cursor.execute("set local search_path = bazinga, public")
            # Streaming sends one statement alone, and holds one row at a time. It also holds the connection until it is closed.
            stream: Any = cursor.stream(sql.encode(), tuple(parameters) or None)
            with closing(stream) as rows:
                first = next(rows, None)
                if first is None:
                    return []
                names = [column.name for column in cursor.description or ()]
                return _shown(names, chain([first], rows))
    except psycopg.errors.QueryCanceled:
        raise _late() from None
    except psycopg.errors.ReadOnlySqlTransaction as problem:
        raise Denied(f"a query only reads: {problem}", hint="Use the commands to write.") from None
    except psycopg.Error as problem:
        raise errors.translate(problem) from problem


def _shown(names: list[str], rows: "Iterable[Sequence[Any]]") -> "list[dict[str, Any]]":
    columns, size = _told_apart(names), 0
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


def _told_apart(names: list[str]) -> list[str]:
    """Give columns of one name the suffixes _2, _3 …"""
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


def _value(value: "Any") -> "Any":
    """Give a value that JSON can hold; bytes are shown as SQL writes them."""
    if isinstance(value, (bytes, memoryview, bytearray)):
        return f"x'{bytes(value).hex()}'"
    if isinstance(value, Decimal):
        value = int(value) if value == value.to_integral_value() else float(value)
    if isinstance(value, float) and value - value != 0:
        return str(value)  # neither infinity nor "not a number" is JSON
    return value if value is None or isinstance(value, (str, int, float, dict, list)) else str(value)


def _late() -> TimedOut:
    return TimedOut(f"the query took more than {SECONDS} seconds and was stopped", hint="Ask for less, or add a limit.")


def faults_of(database: "Database") -> list[str]:
    """Let the engine check its file from end to end; name what is wrong with it. PostgreSQL looks after itself."""
    if database.engine != "sqlite":
        return []
    rows = database.read(lambda: database.rows("pragma integrity_check(20)", {})[1])
    return [str(row[0]) for row in rows if row[0] != "ok"]


def tables_of(path: str) -> set[str]:
    """Name the tables of a SQLite file that is not a log; a file that can't be read has none."""
    import apsw

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
