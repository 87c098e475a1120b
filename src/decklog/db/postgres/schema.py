"""The schema of a PostgreSQL log: which one it has, and bringing it up to date when that is asked for."""

from typing import TYPE_CHECKING

from decklog.core.clock import to_text
from decklog.core.errors import SchemaTooNew
from decklog.db import schema

if TYPE_CHECKING:
    from typing import Any

    from decklog.db.base import Database, Row
    from decklog.db.postgres.transactions import PostgresTransactions

_MIGRATING = 4919131752989213


def migrate(database: "Database", transactions: "PostgresTransactions") -> list[str]:
    """Apply the missing steps, each in a transaction with its version row, one process at a time."""
    applied = []
    for step in schema.steps("postgres"):
        # A step may take as long as it takes: an index over years of entries is not made in a moment.
        with transactions.held(patience_seconds=None):
            connection = transactions.here()
            connection.execute("select pg_advisory_xact_lock(%s)", (_MIGRATING,))
            applied_before = _applied(database)
            schema.check_steps(applied_before, "postgres", "this database")
            if all(step.version > version for version, _, _ in applied_before):
                connection.execute(schema.text_of(step, "postgres").encode())
                _note(database, step)
                applied.append(step.name)
    return applied


def _note(database: "Database", step: "schema.MigrationStep") -> None:
    database.rows(
        "insert into schema_steps (version, name, checksum, applied_at) values (:version, :name, :sum, :at)",
        {
            "version": step.version,
            "name": step.name,
            "sum": schema.checksum_of(step, "postgres"),
            "at": to_text(database.clock.now()),
        },
    )
    database.many(schema.WRITE_DIGEST, [*schema.missing_digests(database.rows(schema.APPLIED, {})[1])])


def _applied(database: "Database") -> "list[Row]":
    """Read the steps that were applied; none in a database without a log."""
    found = database.one("select to_regclass('schema_steps')::text", {})
    if found is None or found[0] is None:
        return []
    return database.rows("select version, name, checksum from schema_steps order by version", {})[1]


def check_version(database: "Database") -> int:
    """Refuse a schema that is not the one this Decklog knows; give its version."""
    applied = _applied(database)
    version = max((row[0] for row in applied), default=0)
    latest = schema.latest("postgres")
    if version < latest:
        raise schema.too_old("this database", version, "postgres", hint="Run: decklog migrate")
    if version > latest:
        raise SchemaTooNew(
            f"this database has schema {version}; this Decklog knows up to {latest}",
            hint="Upgrade Decklog, and try again.",
            found=version,
            supported=latest,
        )
    schema.check_steps(applied, "postgres", "this database")
    return latest


def may_append(database: "Database") -> bool:
    """Return whether this role may write entries; one that may not has a log that is for reading only."""
    row = database.one("select has_table_privilege('entries', 'insert')", {})
    return bool(row and row[0])


def facts(database: "Database") -> "dict[str, Any]":
    """Describe the server and the schema for `doctor`."""
    row = database.one("select version(), pg_database_size(current_database()), current_database()", {})
    assert row is not None
    return {
        "engine": "postgres",
        "engine_version": row[0].split(" ")[1],
        "database": row[2],
        "schema": max((version for version, _, _ in _applied(database)), default=0),
        "schema_supported": schema.latest("postgres"),
        "bytes": row[1],
        "read_only": database.read_only,
    }
