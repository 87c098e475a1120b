"""The schema of a PostgreSQL log: which one it has, and bringing it up to date when that is asked for."""

from abc import abstractmethod

from decklog.db import schema
from decklog.db.postgres.bulk import PostgresBulk
from decklog.errors import SchemaTooNew, SchemaTooOld

TYPE_CHECKING = False
if TYPE_CHECKING:
    from contextlib import AbstractContextManager
    from typing import Any

    import psycopg


class PostgresSchema(PostgresBulk):
    """The verbs of a PostgreSQL database about its tables as such."""

    read_only: bool

    @abstractmethod
    def _block(self, begin: str) -> "AbstractContextManager[psycopg.Connection[Any]]": ...

    def migrate(self) -> list[str]:
        """Apply the missing steps, each in a transaction with its version row, one process at a time."""
        applied = []
        for step in schema.steps("postgres"):
            with self._block("begin") as connection:
                connection.execute("select pg_advisory_xact_lock(4919131752989213)")
                if step.version > self._version():
                    connection.execute(schema.text_of(step, "postgres").encode())
                    self._note(step)
                    applied.append(step.name)
        return applied

    def _note(self, step: "schema.Step") -> None:
        from decklog.clock import to_text

        self.rows(
            "insert into schema_steps (version, name, checksum, applied_at) values (:version, :name, :sum, :at)",
            {
                "version": step.version,
                "name": step.name,
                "sum": schema.checksum_of(step),
                "at": to_text(self.clock.now()),
            },
        )

    def _version(self) -> int:
        found = self.one("select to_regclass('schema_steps')::text", {})
        if found is None or found[0] is None:
            return 0
        newest = self.one("select max(version) from schema_steps", {})
        return int(newest[0]) if newest and newest[0] else 0

    def check_version(self) -> None:
        """Refuse a schema that is not the one this Decklog knows."""
        version = self.read(self._version)
        latest = schema.latest("postgres")
        if version < latest:
            raise SchemaTooOld(
                f"this database has schema {version} and this Decklog needs {latest}",
                hint="Run: decklog migrate",
                found=version,
                supported=latest,
            )
        if version > latest:
            raise SchemaTooNew(
                f"this database has schema {version}; this Decklog knows up to {latest}",
                hint="Upgrade Decklog: pip install --upgrade decklog",
                found=version,
                supported=latest,
            )

    def facts(self) -> "dict[str, Any]":
        def look() -> "dict[str, Any]":
            row = self.one("select version(), pg_database_size(current_database()), current_database()", {})
            assert row is not None
            return {
                "engine": "postgres",
                "engine_version": row[0].split(" ")[1],
                "database": row[2],
                "schema": self._version(),
                "schema_supported": schema.latest("postgres"),
                "bytes": row[1],
                "read_only": self.read_only,
            }

        return self.read(look)
