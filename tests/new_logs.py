"""New SQLite logs as copies of one that the steps have made: the steps take ten times as long, and few tests are about them.

Tests of the steps themselves and of opening, and processes that are started from nothing, go through them.
"""

import os
import tempfile
from pathlib import Path

import apsw

from decklog import Decklog
from decklog.db import schema
from decklog.db.sqlite import migrate

BY_STEPS = tuple(f"tests/db/test_{name}.py" for name in ("migrations", "new_logs", "opening"))

_apply = migrate._apply


class Copying:
    """Takes the place of what applies a step, and gives a new file all of them at once."""

    def __init__(self) -> None:
        self.is_on = False
        # By its steps, since a test may have other steps.
        self._made: dict[tuple[str, ...], bytes] = {}

    def begin(self) -> None:
        migrate._apply = self.apply_or_copy

    def end(self) -> None:
        migrate._apply = _apply

    def apply_or_copy(self, connection: apsw.Connection, step: schema.MigrationStep, now: str) -> str:
        if not self.is_on:
            return _apply(connection, step, now)
        if step.version == 1:
            self._copy(connection, now)
        elif _version(connection) < step.version:
            return _apply(connection, step, now)
        return step.name

    def _copy(self, connection: apsw.Connection, now: str) -> None:
        steps = tuple(schema.checksum_of(step, "sqlite") for step in schema.steps("sqlite"))
        if steps not in self._made:
            self._made[steps] = self._by_steps()
        made = apsw.Connection(":memory:")
        made.deserialize("main", self._made[steps])
        with connection.backup("main", made, "main") as copying:
            copying.step()
        made.close()
        connection.execute("update schema_steps set applied_at = ?, digest = null", (now,))
        migrate.write_digests(connection)

    def _by_steps(self) -> bytes:
        self.is_on = False
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "decklog.db")
            Decklog.open(path).close()
            connection = apsw.Connection(os.fspath(path))
            # Only a file can have a write-ahead log.
            connection.execute("pragma journal_mode = delete")
            content = connection.serialize("main")
            connection.close()
        self.is_on = True
        return content


def _version(connection: apsw.Connection) -> int:
    return int(connection.execute("select max(version) from schema_steps").get)
