"""Makes a new log, or brings an older one up to date after a backup copy; refuses a newer one."""

import os
from typing import Any

import apsw

from decklog.core.clock import Clock, to_text
from decklog.core.errors import NotADatabase, NotFound
from decklog.db import schema
from decklog.db.sqlite import errors, file
from decklog.db.sqlite.connections import SqliteConnections
from decklog.db.sqlite.damage import check_unused


def prepare(connections: SqliteConnections, state: file.FileState, clock: Clock) -> None:
    """Leave the file ready to use at the latest version, or raise and leave it as it was."""
    latest = schema.latest("sqlite")
    if state != "database":
        if file.has_wal(connections.path):
            check_unused(connections.path)
        if connections.read_only:
            raise NotFound(f"there is no log at {connections.path}", hint="Run: decklog init")
        file.make_file(connections.path)
    found = _looked_over(connections)
    if found >= latest:
        return
    if connections.read_only:
        raise schema.too_old(connections.path, found, "sqlite", hint="Open it once for writing, or run: decklog migrate")
    migrate(connections, clock)


def _looked_over(connections: SqliteConnections) -> int:
    """Read the schema version of a file that is sound as far as a short look shows; one that is not stays just as it is."""
    connection = connections.readers.mine().connection
    # Closing the last connection copies the write-ahead log back and removes it, with what SQLite can't read of it.
    connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
    found = check_version(connections)
    connections.check_wal()
    connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, int(connections.keeps_wal))
    return found


def check_version(connections: SqliteConnections) -> int:
    """Return the newest step of the log; raise an error for a schema that is too new, and for files of other programs."""
    connection = connections.readers.mine().connection
    try:
        required = _number(connection, "pragma user_version")
        application = _number(connection, "pragma application_id")
        if application != file.APPLICATION_ID:
            if required or application or _number(connection, "select count(*) from sqlite_schema"):
                raise NotADatabase(
                    f"{connections.path} is a SQLite database of another program, and was left as it is",
                    hint="Name another file; `decklog import` takes over the logs of older systems.",
                )
            return 0
        schema.check_required(required, "sqlite", connections.path)
        sql = "select version, name, checksum from schema_steps order by version"
        applied: list[tuple[Any, ...]] = connection.execute(sql).fetchall()
    except errors.TRANSLATED as problem:
        raise errors.translate(problem, connections.path) from problem
    schema.check_steps(applied, "sqlite", connections.path)
    return int(applied[-1][0])


def _number(connection: apsw.Connection, sql: str) -> int:
    row = connection.execute(sql).fetchone()
    return int(row[0]) if row else 0


def migrate(connections: SqliteConnections, clock: Clock) -> list[str]:
    """Set the journal mode and apply the missing steps under the write lock, each in a transaction with its version row."""
    latest = schema.latest("sqlite")
    connection = connections.connect()
    connections.lock.acquire()
    try:
        found = check_version(connections)
        if not found:
            # Only before anything is written. Free pages can then be given back a few at a time.
            connection.execute("pragma auto_vacuum = incremental")
        # The mode is the file's own, and a tool that copies or edits files may have left another one.
        connection.execute("pragma journal_mode = wal")
        if found >= latest:
            return []
        if found:
            _back_up(connection, connections.path, found)
        now = to_text(clock.now())
        return [_apply(connection, step, now) for step in schema.steps("sqlite") if step.version > found]
    except apsw.Error as problem:
        raise errors.translate(problem, connections.path) from problem
    finally:
        connections.lock.release()
        connection.close()


def _back_up(connection: apsw.Connection, target: str, version: int) -> None:
    """Copy the log next to itself; a copy of the same schema from an earlier, failed try is replaced by this newer one."""
    copy = f"{target}.schema-{version}.bak"
    partial = copy + ".partial"
    os.close(os.open(partial, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600))
    destination = apsw.Connection(partial)
    try:
        with destination.backup("main", connection, "main") as backup:
            while not backup.done:
                backup.step(1000)
    finally:
        destination.close()
    os.replace(partial, copy)


def _apply(connection: apsw.Connection, step: schema.MigrationStep, now: str) -> str:
    connection.execute("begin immediate")
    try:
        connection.execute(schema.text_of(step, "sqlite"))
        connection.execute(
            "insert into schema_steps (version, name, checksum, applied_at) values (?, ?, ?, ?)",
            (step.version, step.name, schema.checksum_of(step, "sqlite"), now),
        )
        write_digests(connection)
        connection.execute(f"pragma application_id = {file.APPLICATION_ID}")
        # Each write reads it: the newest step that a program must know.
        [(required,)] = connection.execute(schema.REQUIRED)
        connection.execute(f"pragma user_version = {required}")
        connection.execute("commit")
    except BaseException:
        if connection.in_transaction:
            connection.execute("rollback")
        raise
    return step.name


def write_digests(connection: apsw.Connection) -> None:
    """Chain the steps that have no digest yet."""
    connection.executemany(schema.WRITE_DIGEST, [*schema.missing_digests(connection.execute(schema.APPLIED))])
